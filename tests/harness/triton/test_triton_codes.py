"""Every code that recording, deriving or compiling can refuse with has its troubleshooting entry."""

from __future__ import annotations

import re
from pathlib import Path

import harness.backends.triton
from harness.backends.triton.stages import OUTCOME_OF_PROBLEM, OUTCOME_OF_REFUSAL

HERE = Path(next(iter(harness.backends.triton.__path__)))
FILES = [*HERE.glob("*.py"), *(HERE / "recorder").glob("*.py"), *(HERE / "derive").glob("*.py")]
SPELLINGS = (
    r'(?:refuse|note|_refusing)\(\s*"(\w+)"', r'fault\(\s*"\w+",\s*"(\w+)"', r'\bcode="(\w+)"', r'"code": "(\w+)"',
    r'_add\(found, "(\w+)"', r'^\s+\("(\w+)", launch', r'timing = \(\s*"(\w+)"',
)
ENTRIES = HERE.parents[2] / "docs" / "troubleshooting"


def codes() -> set[str]:
    found = {code for path in FILES for spelling in SPELLINGS
             for code in re.findall(spelling, path.read_text("utf-8"), re.MULTILINE)}
    return found | set(OUTCOME_OF_REFUSAL) | {f"compile_{problem}" for problem in OUTCOME_OF_PROBLEM} - {
        "compile_refused", "compile_forged"}  # these two have codes of their own


def test_codes_have_entries():
    assert len(codes()) > 40
    assert sorted(code for code in codes() if not (ENTRIES / f"{code}.md").is_file()) == []
