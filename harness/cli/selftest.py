"""``python -m harness selftest``: does the evaluator still refuse what it must and accept what it must?"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from harness import EVALUATOR_VERSION
from harness.domain.vocabulary import Backend, Stage
from harness.evaluation.selftest.corpus import CorpusKernel, operator_kernels, read_corpus
from harness.evaluation.selftest.runner import CorpusResult, run_corpus
from harness.operators import registry


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--quick", action="store_true", help="the subset that must pass before promotions, about 20 s")
    parser.add_argument("--backend", choices=[str(b) for b in Backend], help="only this backend's kernels")
    parser.add_argument("--only", metavar="TEXT", help="only kernels whose name contains TEXT")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Run the corpus; exit 0 all is well, 1 something slipped through or was refused wrongly, 2 not judged."""
    kernels = chosen_kernels(quick=arguments.quick, backend=arguments.backend, text=arguments.only)
    began, results = time.monotonic(), []
    for result in run_corpus(kernels):
        results.append(result)
        if not arguments.json:
            sys.stdout.write(_line(result))
            sys.stdout.flush()
    document = report(results, quick=arguments.quick, seconds=time.monotonic() - began)
    sys.stdout.write(json.dumps(document, indent=1) + "\n" if arguments.json else _summary(document))
    if any(result.failed for result in results):
        return 1
    return 2 if not results or any(result.right is None for result in results) else 0


def chosen_kernels(*, quick: bool, backend: str | None = None, text: str | None = None) -> list[CorpusKernel]:
    """The corpus and the operators' own wrong kernels, or the parts asked for."""
    kernels = list(read_corpus())
    if quick:
        kernels = [kernel for kernel in kernels if kernel.quick]
    else:
        kernels += [kernel for spec in registry.all_operators() for kernel in operator_kernels(spec)]
    return [kernel for kernel in kernels
            if (backend is None or kernel.backend == backend) and (text is None or text in kernel.name)]


def report(results: list[CorpusResult], *, quick: bool, seconds: float) -> dict[str, Any]:
    """The self-test as a JSON document; ``passed`` is ``None`` where something could not be judged.

    ``isolation`` is the lowest level at which a kernel was really started, ``None`` where none was.
    """
    wrong = [result for result in results if result.failed]
    other = [result for result in results if result.right is False and not result.failed]
    open_ = [result for result in results if result.right is None]
    started = [result for result in results if result.stage not in (Stage.ADMIT, Stage.STATIC, Stage.ARITHMETIC)]
    levels = [result.isolation for result in started if result.isolation is not None]
    return {
        "version": 1, "evaluator": EVALUATOR_VERSION, "quick": quick,
        "environments": sorted({result.environment for result in results if result.environment}),
        "isolation": min(levels, default=None), "seconds": round(seconds, 2),
        "passed": False if wrong else None if open_ or not results else True,
        "counts": {"run": len(results), "right": sum(result.right is True for result in results),
                   "not_judged": len(open_), "refused_otherwise": len(other),
                   "slipped": sum(r.kernel.kind != "honest" for r in wrong),
                   "refused_wrongly": sum(r.kernel.kind == "honest" for r in wrong)},
        "kernels": [{
            "name": r.kernel.name, "kind": r.kernel.kind, "operator": r.kernel.operator,
            "backend": str(r.kernel.backend), "expected": [str(o) for o in r.kernel.outcomes],
            "outcome": str(r.outcome), "stage": str(r.stage), "code": r.code, "text": r.text, "right": r.right,
            "seconds": round(r.seconds, 3), "note": r.kernel.note} for r in results],
    }


def _line(result: CorpusResult) -> str:
    mark = "FAIL" if result.failed else {True: "ok  ", False: "else", None: "??  "}[result.right]
    expected = "" if result.right else f"  expected {', '.join(map(str, result.kernel.outcomes))}: {result.text}"
    return (f"{mark} {result.seconds:6.2f} s  {result.kernel.kind:6} {result.kernel.name}  {result.outcome} "
            f"at {result.stage}{expected}\n")


def _summary(document: dict[str, Any]) -> str:
    counts = document["counts"]
    if document["passed"]:
        other = counts["refused_otherwise"]
        tail = f" {other} were refused for another reason than the table names." if other else ""
        return (f"{counts['run']} kernels in {document['seconds']} s: none slipped through, no honest one refused."
                f"{tail}\n")
    if not counts["run"]:
        return "No kernel matches. Leave out --only or --backend.\n"
    return (f"{counts['slipped']} slipped through, {counts['refused_wrongly']} honest ones refused, "
            f"{counts['not_judged']} not judged, of {counts['run']} in {document['seconds']} s. "
            "Promotions must wait until this is mended.\n")
