# Two commands do all set-up on a fresh machine: `make run` and `make test`.
VENV ?= .venv
PY := $(VENV)/bin/python
PORT ?= 8000

.DEFAULT_GOAL := help
.PHONY: help run dev test test-browser lint clean doctor screenshots vendor

help:            ## show this list
	@grep -E '^[a-z-]+: .*##' Makefile | sed 's/:.*##/\t/' | expand -t 16

run: .setup-run  ## set up what is missing, then serve the demo on http://127.0.0.1:8000/
	@$(PY) manage.py serve --demo --port $(PORT)

dev: .setup-dev  ## the same with development tools and without the demo data
	@$(PY) manage.py serve --port $(PORT)

test: .setup-dev ## set up what is missing, then every test, browser tests included
	@scripts/test

lint: .setup-dev ## formatting, types, architecture
	@scripts/lint

doctor: .setup-run ## try what the harness needs and say how to mend each gap
	@$(PY) -m harness doctor

screenshots: .setup-dev ## pictures of every page, light and dark, wide and narrow, into out/screens
	@$(PY) scripts/screenshots.py

vendor: .setup-dev ## fetch the front-end libraries named in static/vendor/VENDOR.md again
	@scripts/vendor_frontend

clean:           ## remove the environment and every cache; keeps var/ and out/ (database, kernels, reports)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache out/screens
	find . -name __pycache__ -not -path './node_modules/*' -prune -exec rm -rf {} +

# The scripts decide by themselves whether anything is to be done, in milliseconds when nothing is.
.PHONY: .setup-run .setup-dev
.setup-run:
	@scripts/setup run $(VENV)
.setup-dev:
	@scripts/setup dev $(VENV)
