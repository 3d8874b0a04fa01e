"""What follows from a session's figures: refusals, limits of the goal, and notes on what the device did meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.domain.samples import Samples
from harness.domain.verdict import Reason, Timing
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.run import Refused, Run
from harness.evaluation.timing import figures, goal_limits
from harness.evaluation.timing.device.session import Session


def with_host(timing: Timing, native: Mapping[str, Any] | None) -> Timing:
    """``timing`` with the host-inclusive time of the shape that was called natively, where one was."""
    if not native:
        return timing
    return replace(timing, shapes=tuple(
        replace(one, host_us=native["host_us"]) if one.shape == native["shape"] else one for one in timing.shapes))


def refuse_impossible(timing: Timing, work: Mapping[str, figures.Work], stage: Stage) -> None:
    """Raises ``Refused`` with ``below_floor`` where a shape is faster than the roof allows."""
    beaten = figures.impossible(timing, work)
    if beaten:
        text = f"{beaten[0]} Work is missing or done elsewhere: a call has to read all inputs and write all outputs."
        raise Refused(Outcome.REWARD_HACK, Reason("below_floor", stage, text))


def note(run: Run, session: Session, doubts: list[str]) -> None:
    """What was seen beside the times: in the verdict's clocks, and in notes where it matters."""
    log = session.watch
    run.clocks["gpu"] = log.document()
    run.clocks["slopes"] = {label: {side: {"events_us": round(shape.us(side), 3),
                                           "judge_us": round(slope.judged_us, 3),
                                           "launcher_us": round(slope.launcher_us, 3)}
                                    for side, slope in shape.slopes.items()}
                            for label, shape in session.logs.items()}
    run.clocks["empty_us"] = {label: round(shape.empty_us, 3) for label, shape in session.logs.items()}
    if doubts:
        text = (f"The time is only claimed, not bounded: {doubts[0]}"
                + (f", and {len(doubts) - 1} more" if len(doubts) > 1 else "") + ".")
        run.notes.append(Reason("clock_disagrees", Stage.RECHECK, text))
    disturbed = [why for shape in session.logs.values() for why in shape.disturbed if why]
    if disturbed:
        text = (f"{len(disturbed)} round(s) stayed disturbed after repeats: {disturbed[0]}. The noise of the A/A "
                "control contains it.")
        run.notes.append(Reason("noisy_machine", Stage.RECHECK, text))
    if log.company:
        text = (f"{log.company} process(es) of others computed on this device during the measurement. The noise of the "
                "A/A control contains what they did.")
        run.notes.append(Reason("device_shared", Stage.RECHECK, text))
    if log.capped:
        text = (f"The power cap held the clock down in {log.capped} of {log.rounds} rounds: normal for large matrix "
                "products; both sides ran under it.")
        run.notes.append(Reason("power_capped", Stage.RECHECK, text))


def refuse_limits(run: Run, timing: Timing, samples: Samples, session: Session) -> None:
    """Hold spread and throughput against the goal.

    Raises:
        Refused: ``over_limit``; an unsteady time is only noted where the device was not quiet.
    """
    quiet = not session.watch.company and not any(why for log in session.logs.values() for why in log.disturbed)
    goal_limits.refuse_limits(run, timing, samples, quiet=quiet, where="this device")
