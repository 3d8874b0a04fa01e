"""``scripts/setup`` says what it does while it does it: a line per step, nothing of pip but its errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
PIP = """#!/bin/sh
echo "$*" >> "{calls}"
echo "Collecting noise"
case "$*" in *{breaks}*) echo "ERROR: no such build" >&2; exit 1;; esac
"""


def set_up(folder: Path, *, breaks: str = "nothing-breaks", **more: str) -> subprocess.CompletedProcess[str]:
    """Run it on an environment whose pip only notes what it was asked."""
    programs = folder / "venv" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / "pip").write_text(PIP.format(calls=folder / "calls", breaks=breaks))
    (programs / "python").write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo Python 3.11.0\ncat >/dev/null\n")
    for name in ("pip", "python"):
        (programs / name).chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "TORCH_INDEX"}
    return subprocess.run(["bash", "scripts/setup", "run", str(folder / "venv")], cwd=PROJECT, text=True, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          env=environment | {"PYTHON": sys.executable} | more)


def test_every_step_is_a_line_with_its_size_and_pips_noise_is_none(tmp_path: Path) -> None:
    done = set_up(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert [line[:3] for line in lines[1:5]] == ["1/4", "2/4", "3/4", "4/4"]
    assert lines[5].startswith("Ready: Python 3.11")
    assert "torch and Triton, 0.4 to 3 GB" in lines[2] and "0.2 GB" in lines[3] and "noise" not in done.stderr
    first, second = (tmp_path / "calls").read_text().splitlines()
    assert "torch==" in first and "triton==" in first and second.endswith("-r requirements.txt")
    again = set_up(tmp_path)
    assert (again.returncode, again.stderr) == (0, "")


def test_a_cpu_build_comes_from_the_index_that_is_named(tmp_path: Path) -> None:
    done = set_up(tmp_path, TORCH_INDEX="https://wheels.example.org/cpu")
    assert done.returncode == 0 and "torch from https://wheels.example.org/cpu" in done.stderr
    assert "--index-url https://wheels.example.org/cpu torch==" in (tmp_path / "calls").read_text().splitlines()[0]


@pytest.mark.parametrize(("breaks", "step"), [("torch==", "2/4"), ("requirements.txt", "3/4")])
def test_a_step_that_fails_says_which_and_with_what(tmp_path: Path, breaks: str, step: str) -> None:
    done = set_up(tmp_path, breaks=breaks)
    assert done.returncode == 1 and "ERROR: no such build" in done.stderr and "failed after" in done.stderr
    assert done.stderr.splitlines()[-1] == "Nothing is lost: run the same command again."
    assert step in done.stderr and "Ready" not in done.stderr
    assert not (tmp_path / "venv" / ".installed-run").exists()
