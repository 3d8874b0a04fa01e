"""``python -m harness selftest``: does the evaluator still refuse what it must and accept what it must?"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from harness.backends.present import absent, ensure_present
from harness.cli.numbers import JOBS
from harness.cli.selftest_text import line_of, summary_of
from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend
from harness.evaluation.selftest.corpus import CorpusKernel, read_corpus, whole_corpus
from harness.evaluation.selftest.pool import run_pooled
from harness.evaluation.selftest.report import report
from harness.evaluation.selftest.results import CorpusResult
from harness.evaluation.selftest.resume import Resumed
from harness.evaluation.selftest.runner import place_of

LAUNCHERS_AT_MOST = 8
"""Workers on one GPU by default: each holds a launcher with device memory of its own."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--quick", action="store_true", help="the subset that must pass before promotions, about 20 s")
    parser.add_argument("--backend", choices=[str(b) for b in Backend],
                        help="only this backend's kernels; triton where --hardware names a GPU")
    parser.add_argument("--hardware", metavar="GPU", help="judge the Triton kernels on this host's GPU, for instance "
                        "nvidia-h200, instead of the interpreter")
    parser.add_argument("--only", metavar="TEXT", help="only kernels whose name contains TEXT")
    parser.add_argument("--jobs", type=JOBS, metavar="N", help="worker processes; by default as many as there are "
                        "cores, at most 8 on a GPU")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="keep each result in FILE and take over those of "
                        "the last 24 hours that still count; a run that was stopped goes on where it was")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Run the corpus; exit 0 all is well, 1 something slipped through or was refused wrongly, 2 not judged, 130 stopped
    (with --resume, what was judged until then is kept)."""
    hardware = _device(arguments.hardware)
    backend = arguments.backend or ("triton" if hardware else None)
    kernels = chosen_kernels(quick=arguments.quick, backend=backend, text=arguments.only, hardware=hardware)
    kept = None if arguments.resume is None else Resumed(arguments.resume, kernels, hardware)
    began, results = time.monotonic(), [] if kept is None else list(kept.taken)
    if results and not arguments.json:
        sys.stdout.write(f"{len(results)} results of {arguments.resume} still count.\n")
    todo = kernels if kept is None else kept.open
    cores = len(os.sched_getaffinity(0))
    jobs = max(1, arguments.jobs or (cores if hardware is None else min(cores, LAUNCHERS_AT_MOST)))
    try:
        with contextlib.closing(_results(todo, jobs, hardware)) as coming:
            for result in coming:
                results.append(result)
                if kept is not None:
                    kept.add(result)
                if not arguments.json:
                    sys.stdout.write(line_of(result, len(results), len(kernels)))
                    sys.stdout.flush()
    except KeyboardInterrupt:
        where = f"they are kept in {arguments.resume}" if kept is not None else "nothing was kept, --resume would"
        sys.stderr.write(f"Stopped after {len(results)} of {len(kernels)} kernels; {where}.\n")
        return 130
    document = report(results, quick=arguments.quick, seconds=time.monotonic() - began, jobs=jobs, hardware=hardware)
    sys.stdout.write(json.dumps(document, indent=1) + "\n" if arguments.json else summary_of(document))
    if any(result.failed for result in results):
        return 1
    return 2 if not results or any(result.right is None for result in results) else 0


def chosen_kernels(*, quick: bool, backend: str | None = None, text: str | None = None,
                   hardware: str | None = None) -> list[CorpusKernel]:
    """The corpus and the operators' own wrong kernels, or the parts asked for, as far as the table says something about
    them where they would be judged."""
    if backend is not None:
        ensure_present(Backend(backend))
    here = [str(one) for one in Backend if absent(one) is None]  # what a host does without cannot slip through on it
    kernels = [kernel for kernel in read_corpus() if kernel.quick] if quick else whole_corpus()
    return [kernel for kernel in kernels
            if kernel.backend in here and (backend is None or kernel.backend == backend)
            and (text is None or text in kernel.name)
            and kernel.judged_at(place_of(kernel.backend, hardware))]


def _results(kernels: Sequence[CorpusKernel], jobs: int, hardware: str | None) -> Generator[CorpusResult, None, None]:
    return run_pooled(kernels, jobs=jobs, hardware=hardware)


def _device(name: str | None) -> str | None:
    """The GPU asked for, if this host has it.

    Raises:
        UsageError: it does not.
    """
    if name is None:
        return None
    from harness.hardware.gpu import gpu_name, present

    if not present(name):
        here = gpu_name() or "none that kernels can be launched on"
        raise UsageError(f"This host has no {name}; its GPU: {here}. Leave out --hardware to use the interpreter.")
    return name
