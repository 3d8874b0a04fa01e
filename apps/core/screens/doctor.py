"""The last doctor report, kept as a file by whoever ran it: the web process tries nothing itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.conf import settings

STATES = {
    "ok": "ok",
    "passed": "ok",
    "pass": "ok",
    "note": "note",
    "info": "note",
    "warning": "warning",
    "warn": "warning",
    "gap": "warning",
    "error": "error",
    "fail": "error",
    "failed": "error",
}


def doctor_report() -> dict[str, list[Any]]:
    """The last report's ``checks`` and ``levels``; empty lists when no doctor has run here yet, or what it left cannot
    be read."""
    path = Path(settings.VAR_DIR) / "doctor.json"
    try:
        report = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        report = {}
    found = report if isinstance(report, dict) else {"checks": report}
    return {key: value if isinstance(value := found.get(key), list) else [] for key in ("checks", "levels")}


def doctor_rows() -> list[dict[str, Any]]:
    """Findings as cause, consequence and what to do; empty when no doctor has run here yet."""
    rows = doctor_report()["checks"]
    return [
        {
            "name": row.get("name", ""),
            "state": state_of(row),
            "text": row.get("text") or row.get("found", ""),
            "means": row.get("means", ""),
            "remedy": row.get("remedy", ""),
        }
        for row in rows
        if isinstance(row, dict)
    ]


def state_of(row: dict[str, Any]) -> str:
    """The check's word in the vocabulary of the page."""
    if "ok" in row and isinstance(row["ok"], bool):
        return "ok" if row["ok"] else ("warning" if row.get("optional") else "error")
    return STATES.get(str(row.get("state") or row.get("status") or "").lower(), "note")
