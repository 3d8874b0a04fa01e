"""The stage ``probes`` on a device: the judge's own, then what a promotion has to show besides."""

from __future__ import annotations

import time

from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.process import compiler_for
from harness.backends.triton.device import sanitizer
from harness.backends.triton.device.holding import Holding
from harness.backends.triton.native.parity import parity
from harness.backends.triton.stages import planned_shapes
from harness.backends.triton.targets import find_target
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Purpose
from harness.evaluation.judge.probes import probes as judged
from harness.evaluation.judge.seeds import derive
from harness.evaluation.run import Refused, Run

NATIVE = "native"
"""Entry of ``run.clocks``: what the file costs when it is called natively, host code included."""
MOST_SAID = 3


def probes(run: Run) -> None:
    """The judge's probes; before a promotion also the sanitizer tier and the native run.

    Raises:
        Refused: a probe, a tool or the comparison found something.
        CandidateFault: the candidate failed.
        InfrastructureError: before a promotion, the file cannot be called natively on this host.
    """
    judged(run)
    if sanitizer.wanted(run):
        sanitizer.sanitize(run)
    if run.request.purpose is Purpose.PROMOTION:
        native(run)


def native(run: Run) -> None:
    """Call the file natively on the smallest measured shape: it must launch what its plan says. The time is not charged
    to the candidate's deadline; ``run.clocks["native"]`` gets the host-inclusive time.

    Raises:
        Refused: ``reward_hack`` where it launches something else.
        InfrastructureError: this host cannot do it.
    """
    assert run.seed is not None
    target = find_target(run.target)
    point, plan = min(zip(planned_shapes(run), run.plans, strict=True),
                      key=lambda pair: run.spec.bytes_per_call(pair[0].dims, 2))
    run.progress(run.stage, 0, 1, f"calling the file natively on {point.label}")
    (row,) = binaries_of([plan], compiler_for(target))
    holding = Holding(run)
    holding.reserve()
    began = time.monotonic()
    try:
        result = parity(run.source, run.spec, run.workload, point, plan, row, target, seed=derive(run.seed, "parity"))
    finally:
        holding.release()
        run.deadline += time.monotonic() - began
    run.clocks[NATIVE] = {"shape": point.label, "host_us": result.host_us, "first_call_s": result.first_call_s,
                          "walls": list(result.walls)}
    if not result.same:
        said = " ".join(result.differences[:MOST_SAID])
        text = (f"Called natively, the file does not launch what its plan says: {said} run() must do the same wherever "
                "it runs.")
        raise Refused(Outcome.REWARD_HACK, Reason("parity_differs", run.stage, text, case=f"measured {point.label}"))
