"""The self-test as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import EVALUATOR_VERSION
from harness.domain.codec import to_document
from harness.domain.vocabulary import Backend
from harness.evaluation.selftest.corpus import BEFORE_A_PROCESS, KINDS
from harness.evaluation.selftest.results import CorpusResult
from harness.hardware.detect import environment


def report(results: Sequence[CorpusResult], *, quick: bool, seconds: float, jobs: int = 1,
           hardware: str | None = None) -> dict[str, Any]:
    """Counts, environments and every kernel; ``passed`` is ``None`` where something could not be judged.

    ``environments`` are the classes that verdicts named, ``machines`` what this machine is like for each backend that
    ran: processor, GPU, driver, versions. ``hardware`` is the GPU that was asked for.
    ``isolation`` is the lowest level at which a kernel was really started, ``None`` where none was. ``seconds`` is this
    run's own time: results that it took over from an earlier one cost nothing.
    """
    wrong = [result for result in results if result.failed]
    other = [result for result in results if result.right is False and not result.failed]
    open_ = [result for result in results if result.right is None]
    started = [result for result in results if result.stage not in BEFORE_A_PROCESS]
    levels = [result.isolation for result in started if result.isolation is not None]
    return {
        "version": 1, "evaluator": EVALUATOR_VERSION, "quick": quick, "jobs": jobs,
        "environments": sorted({result.environment for result in results if result.environment}),
        "machines": {str(backend): to_document(environment(backend, hardware if backend is Backend.TRITON else None))
                     for backend in sorted({result.kernel.backend for result in results})},
        "isolation": min(levels, default=None), "seconds": round(seconds, 2),
        "passed": False if wrong else None if open_ or not results else True,
        "counts": {"run": len(results), "right": sum(result.right is True for result in results),
                   "not_judged": len(open_), "refused_otherwise": len(other),
                   "slipped": sum(r.kernel.kind != "honest" for r in wrong),
                   "refused_wrongly": sum(r.kernel.kind == "honest" for r in wrong)},
        "by_kind": _by_kind(results),
        "kernels": [{
            **r.document(), "kind": r.kernel.kind, "operator": r.kernel.operator, "backend": str(r.kernel.backend),
            "expected": [str(o) for o in r.kernel.expected(r.place)], "note": r.kernel.note}
            for r in sorted(results, key=lambda r: r.kernel.name)],
    }


def _by_kind(results: Sequence[CorpusResult]) -> list[dict[str, Any]]:
    """How many of each kind, backend and place ran and came out as the table says."""
    groups: dict[tuple[int, str, str], list[CorpusResult]] = {}
    for result in results:
        key = (KINDS.index(result.kernel.kind), str(result.kernel.backend), str(result.place))
        groups.setdefault(key, []).append(result)
    return [{"kind": KINDS[kind], "backend": backend, "place": place, "run": len(found),
             "right": sum(result.right is True for result in found),
             "operators": sorted({result.kernel.operator for result in found})}
            for (kind, backend, place), found in sorted(groups.items())]
