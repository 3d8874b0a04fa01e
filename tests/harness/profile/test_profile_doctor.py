"""The doctor tries the profiler and the matmul library where there is a GPU, and says how to permit counters."""

from __future__ import annotations

import pytest

from harness.cli import doctor_gpu
from harness.evaluation.profile import tool
from harness.evaluation.profile.table import read_table
from harness.evaluation.profile.tool import NoCounters, Report
from harness.hardware import gpu, matmul
from harness.hardware.matmul import MatmulRoof
from tests.harness.profile.reports import BUSY_MEMORY, report


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A host with a GPU and a profiler that answers or raises what the test gives it."""

    def host(answer):
        def profiled(request, *, timeout_s):
            assert request["trial"] and not request["calls"]
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(gpu, "gpu_name", lambda: "nvidia-h200")
        monkeypatch.setattr(tool, "find", lambda: tmp_path / "ncu")
        monkeypatch.setattr(tool, "profiled", profiled)
        return doctor_gpu.ncu()

    return host


def test_counters_that_were_read_are_counted(host):
    check = host(Report(read_table(report(("health", BUSY_MEMORY))), "Nsight Compute 2025.3.1.0"))
    assert check.ok and f"{len(BUSY_MEMORY)} of {len(tool.METRICS)} metrics read" in check.text


def test_a_missing_permission_is_explained_with_its_remedy(host):
    check = host(NoCounters("not_permitted", tool.PERMISSION))
    assert not check.ok and check.optional
    assert "ERR_NVGPUCTRPERM" in check.text and "clock" in check.means
    for word in ("NVreg_RestrictProfilingToAdminUsers=0", "/etc/modprobe.d", "CAP_SYS_ADMIN"):
        assert word in check.remedy


def test_any_other_failure_is_told_in_its_own_words(host):
    check = host(NoCounters("failed", "Nsight Compute measured nothing: no such device"))
    assert not check.ok and check.optional and "no such device" in check.text and "ncu" in check.remedy


def test_without_profiler_or_gpu_nothing_is_started(monkeypatch, tmp_path):
    monkeypatch.setattr(tool, "profiled", lambda *_, **__: pytest.fail("nothing may start"))
    monkeypatch.setattr(tool, "find", lambda: None)
    absent = doctor_gpu.ncu()
    assert not absent.ok and absent.optional and "not found" in absent.text
    monkeypatch.setattr(tool, "find", lambda: tmp_path / "ncu")
    monkeypatch.setattr(gpu, "gpu_name", lambda: None)
    assert doctor_gpu.ncu().ok and "not tried" in doctor_gpu.ncu().text


def test_the_matmul_roof_is_measured_or_its_absence_explained(monkeypatch):
    monkeypatch.setattr(gpu, "gpu_name", lambda: "nvidia-h200")
    monkeypatch.setattr(matmul, "measured", lambda: MatmulRoof(8.246e14, "cuBLAS 13.1.0"))
    assert "825 TFLOP/s (cuBLAS 13.1.0)" in doctor_gpu.gpu_matmul().text
    monkeypatch.setattr(matmul, "measured", lambda: MatmulRoof(None, "libcublas is not installed here"))
    check = doctor_gpu.gpu_matmul()
    assert not check.ok and check.optional and "libcublas" in check.text and "toolkit" in check.remedy
