"""The threat model says what the code does: its tables are the attacks that are tried, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.evaluation.sandbox import cgroup, proof, walls
from tests.harness.sandbox_attacks.table import rendered

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "THREAT_MODEL.md").read_text("utf-8")
MARK = "<!-- attacks -->\n"
ROOMS = ("", "harness/", "harness/evaluation/")


def test_the_tables_are_the_attacks_that_are_tried():
    assert TEXT.partition(MARK)[2].strip() == rendered(), "Paste table.rendered() below the mark."


PATHS = sorted(set(re.findall(r"`(\w+(?:/[\w.]+)+)`", TEXT.partition(MARK)[0])))


@pytest.mark.parametrize("path", PATHS)
def test_every_place_named_exists(path):
    assert any((ROOT / room / path).exists() for room in ROOMS), path


def test_every_wall_is_described():
    for wall in (*walls.OPTIONAL, *proof.NAMESPACES, "cgroup"):
        assert f"`{wall}`" in TEXT, wall
    assert cgroup.OVERRIDE in TEXT
