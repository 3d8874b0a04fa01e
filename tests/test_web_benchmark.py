"""The benchmark of the pages still fills its database and reads every page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_every_page_of_the_benchmark_answers() -> None:
    command = [sys.executable, "benchmarks/web.py", "--repeat", "1", "--campaigns", "1", "--rounds", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Pages with 1 campaigns and 2 rounds" in done.stdout
    for page in ("home", "campaign of 2 rounds", "verdict", "slot", "board", "sign in"):
        assert f"\n{page} " in done.stdout, page
