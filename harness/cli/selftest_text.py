"""The self-test in words for a terminal."""

from __future__ import annotations

from typing import Any

from harness.evaluation.selftest.results import CorpusResult


def line_of(result: CorpusResult, done: int, total: int) -> str:
    """One kernel: a mark, its number, seconds, kind, name, outcome and stage; what was expected where that differs."""
    mark = "FAIL" if result.failed else {True: "ok  ", False: "else", None: "??  "}[result.right]
    wanted = ", ".join(map(str, result.kernel.expected(result.place)))
    stage = result.kernel.expected_stage(result.place)
    expected = "" if result.right else f"  expected {wanted}{f' at {stage}' if stage else ''}: {result.text}"
    return (f"{mark} {done:>{len(str(total))}}/{total} {result.seconds:6.2f} s  {result.kernel.kind:6} "
            f"{result.kernel.name}  {result.outcome} at {result.stage}{expected}\n")


def summary_of(document: dict[str, Any]) -> str:
    """The whole run: how many of each kind and backend, what slipped through, what that means for promotions."""
    counts = document["counts"]
    if not counts["run"]:
        return "No kernel matches. Leave out --only or --backend.\n"
    table = "".join(f"  {row['kind']:6} {row['backend']:6} at {row['place']:11} {row['right']} of {row['run']} as the "
                    "table says\n" for row in document["by_kind"])
    if document["passed"]:
        other = counts["refused_otherwise"]
        tail = f" {other} were refused for another reason than the table names." if other else ""
        return (f"{counts['run']} kernels in {document['seconds']} s: none slipped through, no honest one refused."
                f"{tail}\n{table}")
    return (f"{counts['slipped']} slipped through, {counts['refused_wrongly']} honest ones refused, "
            f"{counts['not_judged']} not judged, of {counts['run']} in {document['seconds']} s. "
            f"Promotions must wait until this is mended.\n{table}")
