"""Every code that the judge gives has an entry that says what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GIVEN = re.compile(r'(?:Reason|Finding|Pattern)\(\s*(?:[\w.]+,\s*)?"([a-z_]+)"|"([a-z_]+_(?:wrong|broken|written))"')


def codes() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "harness/evaluation/judge").glob("*.py"):
        found |= {one or other for one, other in GIVEN.findall(path.read_text("utf-8"))}
    return found


@pytest.mark.parametrize("code", sorted(codes()))
def test_a_code_has_its_entry(code: str) -> None:
    assert (ROOT / "docs/troubleshooting" / f"{code}.md").is_file()


def test_the_codes_are_found() -> None:
    assert {"tile_wrong", "length_wrong", "every_nth_wrong", "not_written", "row_leak", "exact_wrong", "nan_wrong",
            "nondeterministic", "guard_broken", "scratch_over_limit"} <= codes()
