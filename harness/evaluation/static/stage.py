"""The static stage of an evaluation."""

from __future__ import annotations

from harness.domain.vocabulary import Outcome, Purpose
from harness.evaluation.run import Refused, Run
from harness.evaluation.static import second_opinion
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Severity


def static(run: Run) -> None:
    """Refuse a candidate with blocking findings, all of them named; add the others to ``run.notes``.

    Where ``kernelguard`` is installed it starts reading here; its notes are added when ``run`` settles.

    Raises:
        Refused: ``compile_error`` for syntax errors, ``policy_violation`` for everything else that blocks.
    """
    found = findings(run.source, run.spec, run.request.backend, run.request.goal.prohibited)
    blocking = [finding.reason for finding in found if finding.severity is Severity.BLOCK]
    run.notes.extend(finding.reason for finding in found if finding.severity is not Severity.BLOCK)
    if blocking:
        syntax = blocking[0].code == "syntax_error"
        raise Refused(Outcome.COMPILE_ERROR if syntax else Outcome.POLICY_VIOLATION, *blocking)
    version = second_opinion.installed()
    if version is not None and run.request.purpose is not Purpose.SELFTEST:
        scan = second_opinion.Scan(run.source, version)
        run.aside.append(lambda: run.notes.extend(scan.notes()))
