"""Every reason for which the engine sends a proposal back has an entry that says what to do."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_bounce_has_its_entry() -> None:
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "harness" / "engine").glob("*.py"))
    codes = set(re.findall(r'Bounce\(\s*"([a-z_]+)"', sources))
    assert {"log_not_queried", "direction_closed", "agent_failed"} <= codes
    assert not [code for code in codes if not (ROOT / "docs" / "troubleshooting" / f"{code}.md").is_file()]
