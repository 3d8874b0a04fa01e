"""Imports two verdicts into the database of a site under test: one passed and timed, one wrong in its tail."""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import django

WRONG_LINE = 14


def seed() -> dict[str, int]:
    """Their numbers: ``passed`` and ``wrong``."""
    from gate_world import baseline, goal, heavy, verdict_document

    from apps.bridge import api
    from apps.kernels.models import Operator
    from apps.kernels.services import kernel_store
    from apps.kernels.verdicts import verdict_import
    from apps.teams.models import Team

    def kept(source: bytes, reason: dict[str, Any] | None) -> int:
        request = api.verification_request(
            job=str(uuid.uuid4()), goal=goal(), operator_version="1", candidate=source,
            against={"incumbent": baseline()}, purpose="round")
        job: Any = SimpleNamespace(request=request)
        document, samples = verdict_document(job, outcome="passed" if reason is None else "incorrect_numeric")
        if reason is not None:
            document["stage"], document["reasons"] = "correctness", [reason]
            document["correctness"]["cases"][0] |= {"passed": False, "worst_ratio": 685_000.0}
        kernel = kernel_store(source=source, operator=Operator.objects.get(name="rms_norm"), backend="numba")
        return verdict_import(kernel=kernel, team=Team.objects.get(slug="core"), document=document, samples=samples,
                              workload="llm", origin="Seeded by a test.", by=None).pk

    tail = {"code": "tail_wrong", "stage": "correctness", "text": "The last columns are wrong.", "line": WRONG_LINE,
            "case": "cols=1021", "index": [3, 1020], "got": 0.0, "expected": 1.37, "bound": 2e-6}
    return {"passed": kept(heavy("1"), None), "wrong": kept(heavy("2"), tail)}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelopt_site.settings.base")
    sys.path[:0] = [str(Path.cwd()), str(Path.cwd() / "tests" / "apps" / "gate")]
    django.setup()
    sys.stdout.write(json.dumps(seed()))
