"""``python -m harness tier BASE FILE``: how far a change goes and why."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from harness.cli.sources import ADVICE, MOST_BYTES
from harness.domain.codec import to_document
from harness.domain.errors import SourceError, UsageError
from harness.domain.files import read_regular
from harness.domain.verdict import TierResult
from harness.domain.vocabulary import Backend
from harness.evaluation.source.intake import read_source
from harness.evaluation.source.normal_form import normal_digest
from harness.evaluation.source.structure import KERNEL_DECORATORS, RUN, read_structure
from harness.evaluation.source.tier import classify
from harness.operators import registry
from harness.operators.base import OperatorSpec


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("base", type=Path, help="the kernel built on")
    parser.add_argument("file", type=Path, help="the changed kernel")
    parser.add_argument("--operator", help="taken from the signature of `run` where absent")
    parser.add_argument("--backend", choices=[str(b) for b in Backend], help="taken from the decorators where absent")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Print the tier and every cause; exit 0, or 2 where a file cannot be read."""
    base, new = _read(arguments.base), _read(arguments.file)
    backend = Backend(arguments.backend) if arguments.backend else guess_backend(new, arguments.file)
    spec = registry.get(arguments.operator) if arguments.operator else guess_operator(new, backend, arguments.file)
    result = classify(base, new, spec, backend)
    if arguments.json:
        document = {"version": 1, "operator": spec.name, "backend": str(backend), **to_document(result),
                    "base": normal_digest(base), "new": normal_digest(new)}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        _print(result, spec, backend)
    return 0


def guess_backend(source: str, path: Path) -> Backend:
    """The backend whose jit decorator the source uses."""
    found = [backend for backend in KERNEL_DECORATORS if read_structure(source, backend).kernels]
    if len(found) != 1:
        raise UsageError(f"{path}: the backend cannot be told from its decorators. Give --backend.")
    return found[0]


def guess_operator(source: str, backend: Backend, path: Path) -> OperatorSpec:
    """The operator whose signature `run` has."""
    function = read_structure(source, backend).hosts.get(RUN)
    names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]] if function else []
    found = [spec for spec in registry.all_operators() if [a.name for a in spec.arguments] == names]
    if len(found) != 1:
        raise UsageError(f"{path}: the operator cannot be told from the signature of `run`. Give --operator.")
    return found[0]


def _read(path: Path) -> str:
    try:
        text = read_source(read_regular(path, MOST_BYTES, ADVICE))
        read_structure(text, Backend.NUMBA)
        return text
    except SourceError as error:
        raise UsageError(f"{path}: {error.text}", code=error.code) from error


def _print(result: TierResult, spec: OperatorSpec, backend: Backend) -> None:
    sys.stdout.write(f"{result.tier}  ({spec.name}, {backend})\n")
    for why in result.why:
        where = f"line {why.line}: " if why.line else ""
        sys.stdout.write(f"  {where}{why.text}\n")
    if not result.why:
        sys.stdout.write("  comments, blank lines or local names only\n")
