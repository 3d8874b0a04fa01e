"""The libraries' process itself, on the CPU: one operator, eager PyTorch and our baseline called natively."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.peers.process import LibraryDied, LibraryProcess

SPEC = registry.get("softmax")
SHAPE = "512x1024"


def first(peers: list[str]) -> dict[str, Any]:
    return {"operator": "softmax", "backend": "numba", "workload": "llm", "peers": peers,
            "control": {"name": "baseline", "source": SPEC.baseline(Backend.NUMBA)},
            "cores": sorted(os.sched_getaffinity(0))[-1:], "cache_bytes": 1 << 20, "memory_bytes": 1 << 28}


def test_a_shape_is_prepared_measured_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    tried: list[str] = []
    with LibraryProcess(first(["torch eager"]), tried.append) as process:
        ready = process.ask({"op": "prepare", "shape": SHAPE, "skip": []}, timeout_s=120.0)
        assert tried == ["torch eager", "baseline"] == list(ready["sides"])
        assert ready["absent"] == {}
        rounds = [process.ask({"op": "round", "shape": SHAPE, "pairs": 3}, timeout_s=60.0) for _ in range(2)]
        for one in rounds:
            assert set(one["us"]) == {"torch eager", "baseline"} and not one["dropped"]
            assert all(len(values) == 3 and min(values) > 0 for values in one["us"].values())
        checks = process.ask({"op": "check", "shape": SHAPE}, timeout_s=60.0)["checks"]
        assert all(one["right"] and 0 <= one["worst_ratio"] <= 1 for one in checks.values())
        os.kill(process._process.pid, signal.SIGKILL)
        with pytest.raises(LibraryDied, match=r"it ended by itself|it was gone already"):
            process.ask({"op": "round", "shape": SHAPE, "pairs": 1}, timeout_s=30.0)
