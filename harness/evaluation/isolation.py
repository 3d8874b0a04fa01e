"""No candidate runs behind fewer walls than its request asks for."""

from __future__ import annotations

from collections.abc import Callable

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome
from harness.evaluation.ports import WorkerOpener
from harness.evaluation.run import Refused, Run


def walled(run: Run, openers: Callable[[str], WorkerOpener]) -> Callable[[str], WorkerOpener]:
    """``openers``, each of which is held against the level that the request of ``run`` requires when it is asked for.

    The function returned raises ``Refused`` with ``unsupported_here``: the machine is at fault, not the candidate.
    """

    def opener(mode: str) -> WorkerOpener:
        found, least = openers(mode), run.request.required.isolation
        if found.isolation < least:
            raise Refused(Outcome.UNSUPPORTED_HERE, Reason(
                code="isolation", stage=run.stage, text=f"This machine proved isolation level {found.isolation} for "
                f"'{mode}', and kernels that may come from anywhere need level {least}: the candidate was not started. "
                "Run 'python -m harness doctor' for the way to the next level."))
        return found

    return opener
