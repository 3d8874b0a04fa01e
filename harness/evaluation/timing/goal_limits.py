"""The goal's hard limits on time, the same on a processor and on a device: steadiness and a floor of throughput."""

from __future__ import annotations

from harness.domain.samples import Samples
from harness.domain.verdict import Reason, Timing
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.run import Refused, Run
from harness.evaluation.timing import figures


def refuse_limits(run: Run, timing: Timing, samples: Samples, *, quiet: bool, where: str) -> None:
    """Hold spread and throughput against the goal. Without ``quiet`` an unsteady time is only noted: ``where`` ("this
    machine", "this device") other work ran.

    Raises:
        Refused: ``over_limit``.
    """
    limits, role = run.request.goal.limits, run.compared_role
    text = None if limits.cv is None else figures.unsteady(samples, limits.cv, str(role) if role else None)
    if text and quiet:
        raise Refused(Outcome.OVER_LIMIT, Reason("cv_limit", Stage.RECHECK, text))
    if text:
        text += f" Other work on {where} may be the cause, so that the limit was not applied."
        run.notes.append(Reason("noisy_machine", Stage.RECHECK, text))
    if limits.throughput_floor is not None:
        slow = [shape for shape in timing.shapes if (shape.gbps or 0.0) < limits.throughput_floor]
        if slow:
            text = (f"{slow[0].shape} reaches {slow[0].gbps or 0:.1f} GB/s, below the goal's floor of "
                    f"{limits.throughput_floor:g} GB/s.")
            raise Refused(Outcome.OVER_LIMIT, Reason("throughput_floor", Stage.RECHECK, text))
