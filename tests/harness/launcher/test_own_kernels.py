"""The launcher's own device code is valid for every architecture that plans are compiled for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import triton.backends.nvidia

from harness.backends.triton.launcher.own_kernels import ptx

PTXAS = Path(triton.backends.nvidia.__path__[0]) / "bin" / "ptxas"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_ptx_assembles(architecture: str, tmp_path: Path) -> None:
    source = tmp_path / "own.ptx"
    source.write_text(ptx())
    done = subprocess.run([PTXAS, f"--gpu-name={architecture}", "-v", source, "-o", tmp_path / "own.o"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # three renewals, five comparisons, fingerprint, read, stamp, hold, health
    assert done.stderr.count("0 bytes spill stores") == 13
