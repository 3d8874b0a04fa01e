"""The profiler as a process: what it is told, and every way in which it gives no counters."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from harness.evaluation.profile import tool
from harness.evaluation.profile.metrics import METRICS
from harness.evaluation.profile.tool import NoCounters, find, profiled
from tests.harness.profile.reports import BUSY_MEMORY, report

NOTHING = {"index": 0, "calls": []}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a shell script as the profiler."""

    def install(body: str) -> Path:
        path = tmp_path / "bin" / "ncu"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo 'Version 2025.3.1.0 (build 1)' && exit\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
        return path

    return install


LOG = 'while [ "$1" != --log-file ]; do shift; done; log=$2; shift 2'


def test_counters_of_every_launch_are_read(install, tmp_path):
    (tmp_path / "csv").write_text(report(("_kernel", BUSY_MEMORY)))
    (tmp_path / "answer").write_text(json.dumps({"launches": 1}))
    install(f'echo "$@" > {tmp_path}/told; {LOG}; cat {tmp_path}/csv > "$log"; cat {tmp_path}/answer')
    found = profiled(NOTHING)
    assert found.tool == "Nsight Compute 2025.3.1.0"
    assert [row.function for row in found.rows] == ["_kernel"]
    told = (tmp_path / "told").read_text()
    assert "--clock-control none" in told and "--profile-from-start off" in told and ",".join(METRICS) in told


def test_the_program_is_the_launchers_replay(install):
    """Wrapped by a profiler that measures nothing, it starts, reads the request and answers."""
    install(f'{LOG}; exec "$@"')
    with pytest.raises(NoCounters, match=r"under the profiler|measured nothing") as caught:
        profiled(NOTHING)
    assert caught.value.code == "failed"


@pytest.mark.parametrize(("body", "code", "words"), [
    (LOG + '; echo "==ERROR== ERR_NVGPUCTRPERM - no" > "$log"', "not_permitted", "administrators"),
    ("exit 9", "failed", "measured nothing"),
    ("sleep 60", "failed", "was not done after"),
])
def test_why_there_are_none(body, code, words, install):
    install(body)
    with pytest.raises(NoCounters, match=words) as caught:
        profiled(NOTHING, timeout_s=1.0)
    assert caught.value.code == code


def test_without_a_profiler_nothing_is_started(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tool, "PLACES", ())
    assert find() is None
    with pytest.raises(NoCounters, match="not installed") as caught:
        profiled(NOTHING)
    assert caught.value.code == "absent"


def test_of_several_versions_the_last_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("2024.1.1", "2025.3.1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ncu").touch()
    monkeypatch.setattr(tool, "PLACES", (f"{tmp_path}/*/ncu",))
    assert find() == tmp_path / "2025.3.1" / "ncu"
