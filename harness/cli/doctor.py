"""``python -m harness doctor``: try what the harness needs on this machine and say how to mend each gap."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from harness.cli import doctor_gpu
from harness.cli.doctor_check import ASK, Check
from harness.cli.doctor_isolation import Levels
from harness.cli.doctor_trials import TRIALS
from harness.domain.errors import HarnessError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Try everything; exit 0 when nothing but optional things is missing, 2 otherwise."""
    checks: list[Check] = []
    levels = Levels()
    for trial in (*TRIALS, *levels.trials(), *doctor_gpu.TRIALS):
        checks.append(tried(trial))
        if not arguments.json:
            _print(checks[-1])
    report = json.dumps({"checks": [asdict(check) for check in checks], "levels": levels.rows}, indent=1)
    _keep(report)
    if arguments.json:
        sys.stdout.write(report + "\n")
    return 0 if all(check.ok or check.optional for check in checks) else 2


def tried(trial: Callable[[], Check]) -> Check:
    """Run one trial; whatever it raises is a finding."""
    began = time.monotonic()
    try:
        check = trial()
    except HarnessError as error:
        check = Check(_title(trial), False, error.text, "Evaluations that need it end as infra_error.", ASK)
    except Exception as error:  # noqa: BLE001 - the doctor must get to the end
        check = Check(_title(trial), False, f"{type(error).__name__}: {error}", "It does not work here.", ASK)
    return replace(check, seconds=round(time.monotonic() - began, 2))


def _title(trial: Callable[[], Check]) -> str:
    return trial.__name__.replace("_", " ").strip()


def _print(check: Check) -> None:
    mark = "ok  " if check.ok else "note" if check.optional else "GAP "
    print(f"{mark} {check.name}: {check.text} [{check.seconds:.1f} s]")
    if not check.ok:
        print(f"     means: {check.means}")
        print(f"     to do: {check.remedy}")


def _keep(report: str) -> None:
    """Leave the report where the system page looks for it, if this installation has such a place."""
    folder = os.environ.get("KERNELOPT_VAR")
    if not folder:
        return
    with contextlib.suppress(OSError):
        path = Path(folder, "doctor.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(report, "utf-8")
