"""The guide tells what is there: its tools, its limits, and examples that can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from apps.bridge.mcp import bench, message, tools
from harness.cli.mcp import ADDRESS, TOKEN

GUIDE = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """Fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_its_table_lists_the_tools_and_what_each_needs() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", GUIDE, re.MULTILINE))
    assert set(rows) == set(tools.offered())
    assert {name for name, needs in rows.items() if "may run campaigns" in needs} == bench.ANSWERS


def test_its_examples_are_json_with_the_token_from_the_environment_and_python_that_compiles() -> None:
    assert len(blocks("json")) == 3
    for block in blocks("json"):
        server = json.loads(block)["mcpServers"]["kernelopt"]
        assert TOKEN in json.dumps(server) and "ko_" not in block
    for block in blocks("python"):
        compile(block, "docs/mcp.md", "exec")
    assert ADDRESS in GUIDE


def test_its_limits_are_those_of_the_code() -> None:
    assert f"{message.BODY_LIMIT // 1024} KiB" in GUIDE and f"{message.DEPTH_LIMIT} levels" in GUIDE
    assert f"up to {tools.LONGEST_WAIT_S:g} seconds" in GUIDE


def test_every_code_that_a_tool_answers_with_has_its_entry() -> None:
    house = Path(__file__).parents[3]
    sources = "".join(path.read_text("utf-8") for path in (house / "apps" / "bridge" / "mcp").glob("*.py"))
    codes = {"not_found", "not_permitted", "invalid", "moved_on", *re.findall(r'code="([a-z_]+)"', sources)}
    assert {"not_your_turn", "signed_out"} <= codes
    assert not [code for code in codes if not (house / "docs" / "troubleshooting" / f"{code}.md").is_file()]
