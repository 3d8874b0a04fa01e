"""The sanitizer tier: the smallest case once under each tool of compute-sanitizer, before anything is promoted.

``memcheck`` (accesses outside or misaligned) and ``initcheck`` (reads of memory that nothing wrote) refuse. A hazard in
shared memory (``racecheck``) refuses where the candidate places shared memory itself (Gluon); Triton's compiler places
it otherwise, so that the finding goes to the reviewer as a note. Without the tool the verdict says that it did not run.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import time
from collections.abc import Callable
from typing import Any

from harness.backends.triton.device.findings import Finding, Report, read_report
from harness.backends.triton.device.holding import hold
from harness.backends.triton.device.opener import MODE
from harness.backends.triton.device.plans import Prepared
from harness.backends.triton.launcher.client import DeviceFault
from harness.domain.errors import InfrastructureError
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Backend, Outcome, Purpose
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.run import Refused, Run
from harness.operators.base import Case

PROGRAM = "compute-sanitizer"
TOOLS = ("memcheck", "initcheck", "racecheck")
OUTCOME = {"memcheck": Outcome.OUT_OF_BOUNDS, "initcheck": Outcome.INCORRECT_NONDETERMINISTIC,
           "racecheck": Outcome.INCORRECT_NONDETERMINISTIC}
MEANING = {
    "memcheck": "The kernel accesses memory outside its arrays or at a misaligned address.",
    "initcheck": "The kernel reads device memory that nothing wrote in this call, so its result depends on leftovers.",
    "racecheck": "Threads of a block access shared memory without a barrier between them.",
}
CALL_S = 60.0
"""Seconds for one call under a tool, which slows kernels down a hundredfold."""


def wanted(run: Run) -> bool:
    """Whether this evaluation has the sanitizer tier."""
    return run.request.purpose is Purpose.PROMOTION or run.request.sanitize


def sanitize(run: Run, which: Callable[[str], str | None] = shutil.which) -> None:
    """Run all tools, or note why they did not run. The time is not charged to the candidate's deadline.

    Raises:
        Refused: a tool found something that the candidate is to blame for.
        CandidateFault: the plan of the smallest case cannot be made.
    """
    if which(PROGRAM) is None:
        _absent(run, f"{PROGRAM} is not installed on this host")
        return
    try:
        _all_tools(run)
    except InfrastructureError as error:
        _absent(run, error.text.rstrip("."))


def _all_tools(run: Run) -> None:
    began = time.monotonic()
    case = smallest(run)
    with _lent(run, case) as lending:
        worker: Any = run.open_workers(MODE).open()
        try:
            worker.load(run.source)
            prepared = worker.prepared(lending.lent, lending.attributes)
        finally:
            worker.close()
        for done, tool in enumerate(TOOLS):
            run.progress(run.stage, done, len(TOOLS), f"{tool} on {case.name}")
            lending.poison()
            _conclude(run, tool, prepared, _report(run, tool, prepared, lending), case.name)
    run.deadline += time.monotonic() - began


def smallest(run: Run) -> Case:
    """The smoke case with the fewest bytes."""
    cases = [case for case in run.spec.cases if case.smoke]
    return min(cases, key=lambda case: run.spec.bytes_per_call(case.dims, 2))


def _lent(run: Run, case: Case) -> Lending:
    assert run.seed is not None
    dtype = case.dtype or run.workload.dtypes[Backend.TRITON]
    attributes = all_attributes(run.spec, case.attributes)
    inputs = make_inputs(run.spec, case.dims, case.regime, attributes, dtype, run.seed, "sanitizer", case.name)
    return Lending(run.spec, inputs, attributes, dtype)


def _report(run: Run, tool: str, prepared: Prepared, lending: Lending) -> Report:
    """One call under one tool. A fault on the device is what the tool is there to explain."""
    assert run.open_device is not None
    with hold(run, functools.partial(run.open_device, sanitizer=tool)) as device:
        with contextlib.suppress(DeviceFault):
            device.call(device.load(prepared.plan, prepared.binaries), lending.lent, timeout_s=CALL_S)
        return read_report(device.finish())


def _conclude(run: Run, tool: str, prepared: Prepared, report: Report, case: str) -> None:
    if report.summary is None:
        _absent(run, f"{tool} wrote no complete report")
        return
    findings = [finding for finding in report.findings if finding.severe]
    if not findings:
        return
    reasons = [_reason(run, tool, finding, case) for finding in findings[:4]]
    if tool == "racecheck" and not places_shared_memory(prepared):
        run.notes += reasons
        return
    raise Refused(OUTCOME[tool], *reasons)


def places_shared_memory(prepared: Prepared) -> bool:
    """Whether some launch is Gluon, where the author and not the compiler places shared memory and barriers."""
    return any(step["launch"]["kind"] == "ttgir" for step in prepared.plan.steps if "launch" in step)


def _reason(run: Run, tool: str, finding: Finding, case: str) -> Reason:
    where = f" in '{finding.function}'" if finding.function else ""
    details = "; ".join(finding.details)
    text = f"{MEANING[tool]} {PROGRAM} ({tool}) says{where}: {finding.text}. {details}".strip()
    return Reason(f"sanitizer_{tool}", run.stage, text, case=case)


def _absent(run: Run, why: str) -> None:
    text = f"The sanitizer tier did not run: {why}. Bounds were checked by guard bands and unmapped pages only."
    if not any(note.code == "sanitizer_absent" and note.text == text for note in run.notes):
        run.notes.append(Reason("sanitizer_absent", run.stage, text))
