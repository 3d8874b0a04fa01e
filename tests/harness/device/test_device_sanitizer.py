"""Reports of compute-sanitizer as findings, and the tier on a fake device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from harness.backends.triton.device import sanitizer
from harness.backends.triton.device.findings import read_report
from harness.domain.vocabulary import Outcome, Purpose, Stage
from harness.evaluation.run import Refused, Run
from harness.operators import registry
from tests.harness.device.fakes import FakeDevice
from tests.harness.device.runs import device_run

NORM = registry.get("rms_norm")

MEMCHECK = """launcher says hello
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 2 bytes
=========     at _rms_norm+0x1b0
=========     by thread (3,0,0) in block (2,0,0)
=========     Access at 0x7f1e52c01802 is out of bounds
=========     and is 3 bytes after the nearest allocation at 0x7f1e52c00000 of size 6,126 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x3344a0] in libcuda.so.1
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call to cuStreamSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 2 errors
"""  # noqa: E501 - as the tool writes it
INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at _combine(float *, int):0x70
=========     by thread (65,0,0) in block (0,0,0)
=========     Access at 0x7f1e52c02104
=========
========= ERROR SUMMARY: 48 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at _kernel+0x510
=========     and Read access at _kernel+0x5b0 [2032 hazards]
=========
========= Warning: Race reported between Read access at _kernel+0x610
=========     and Write access at _kernel+0x5b0 [4 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
API_ONLY = """========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_NOT_SUPPORTED (error 801) due to "operation not supported" on CUDA API call to cuX.
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("text", "functions", "summary"),
    [
        (MEMCHECK, ["_rms_norm"], "2 errors"),
        (INITCHECK, ["_combine"], "48 errors"),
        (RACECHECK, ["_kernel", "_kernel"], "2 hazards displayed (1 error, 1 warning)"),
        (CLEAN, [], "0 errors"),
        (API_ONLY, [], "1 error"),
        ("", [], None),
        ("========= COMPUTE-SANITIZER\n========= Error: Target application terminated early\n", [], None),
    ],
)
def test_reports_are_read(text: str, functions: list[str], summary: str | None) -> None:
    report = read_report(text)
    assert [finding.function for finding in report.findings] == functions
    assert report.summary == summary


def test_details_are_kept_without_host_frames() -> None:
    (finding,) = read_report(MEMCHECK).findings
    assert finding.text == "Invalid __global__ write of size 2 bytes"
    assert finding.details[0] == "at _rms_norm+0x1b0"
    assert not any("Host" in line or "host" in line for line in finding.details)
    assert [found.severe for found in read_report(RACECHECK).findings] == [True, False]


@dataclass
class Watched(FakeDevice):
    """A device under a tool, which writes the report given for it."""

    report: str = CLEAN

    def finish(self, timeout_s: float = 30.0) -> str:
        """End by itself."""
        self.close()
        return self.report


def sanitized(
    monkeypatch: pytest.MonkeyPatch, reports: dict[str, str], installed: bool = True
) -> tuple[Run, list[Any]]:
    """A promotion whose sanitizers write ``reports``; the run and the devices that were started under a tool."""
    run, host, _ = device_run(monkeypatch, NORM)
    started: list[Any] = []

    def start(index: int = 0, *, sanitizer: str | None = None) -> FakeDevice:
        if sanitizer is None:
            return host()
        started.append(Watched(NORM, report=reports.get(sanitizer, CLEAN)))
        return started[-1]

    run.request = replace(run.request, purpose=Purpose.PROMOTION)
    run.open_device, run.stage, run.seed = start, Stage.PROBES, 7
    sanitizer.sanitize(run, lambda name: f"/opt/{name}" if installed else None)
    return run, started


def test_a_clean_kernel_runs_once_under_every_tool(monkeypatch) -> None:
    run, started = sanitized(monkeypatch, {})
    assert [device.calls for device in started] == [1, 1, 1]
    assert all(device.closed for device in started)
    assert run.notes == []


@pytest.mark.parametrize(
    ("tool", "report", "outcome"),
    [
        ("memcheck", MEMCHECK, Outcome.OUT_OF_BOUNDS),
        ("initcheck", INITCHECK, Outcome.INCORRECT_NONDETERMINISTIC),
    ],
)
def test_findings_refuse_with_the_tool_s_words(tool: str, report: str, outcome: Outcome, monkeypatch) -> None:
    with pytest.raises(Refused) as refused:
        sanitized(monkeypatch, {tool: report})
    assert refused.value.outcome is outcome
    (reason,) = refused.value.reasons
    assert reason.code == f"sanitizer_{tool}"
    assert read_report(report).findings[0].text in reason.text


def test_a_hazard_in_memory_that_the_compiler_placed_is_a_note(monkeypatch) -> None:
    run, _ = sanitized(monkeypatch, {"racecheck": RACECHECK})
    assert [note.code for note in run.notes] == ["sanitizer_racecheck"]


def test_without_the_tool_the_verdict_says_so(monkeypatch) -> None:
    run, started = sanitized(monkeypatch, {}, installed=False)
    assert started == []
    assert [note.code for note in run.notes] == ["sanitizer_absent"]
    assert "compute-sanitizer is not installed" in run.notes[0].text


def test_a_tool_that_wrote_nothing_found_nothing(monkeypatch) -> None:
    run, _ = sanitized(monkeypatch, {"memcheck": "", "initcheck": "", "racecheck": ""})
    assert [note.code for note in run.notes] == ["sanitizer_absent"] * 3


def test_only_promotions_and_who_asks_get_the_tier(monkeypatch) -> None:
    run, _, _ = device_run(monkeypatch, NORM)
    assert not sanitizer.wanted(run)
    run.request = replace(run.request, sanitize=True)
    assert sanitizer.wanted(run)
