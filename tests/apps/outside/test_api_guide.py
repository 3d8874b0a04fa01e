"""The guide to the HTTP API tells what is there: every address, every code of a refusal, and an example that runs."""

from __future__ import annotations

import re
from pathlib import Path

from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

from apps.kernels import api

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "api.md").read_text("utf-8")
PREFIX = "api/v1/"


def addresses() -> set[str]:
    """What the site serves below its API's prefix, with names of arguments left out."""
    found: set[str] = set()
    for entry in get_resolver().url_patterns:
        if isinstance(entry, URLResolver) and str(entry.pattern) == PREFIX:
            found |= {plain(f"/{PREFIX}{one.pattern}") for one in entry.url_patterns if isinstance(one, URLPattern)}
    return found


def plain(address: str) -> str:
    return re.sub(r"<[^>]*>", "<>", address)


def test_its_table_lists_every_address() -> None:
    told = {plain(address) for address in re.findall(r"^\| `(?:GET|POST) ([^`]+)`", GUIDE, re.MULTILINE)}
    assert told == addresses() and len(told) == 5


def test_what_a_fetcher_is_refused_with_has_its_row_and_its_entry() -> None:
    source = Path(api.__file__).read_text("utf-8")
    codes = {*re.findall(r'code="([a-z_]+)"', source), "slot_empty", "slot_quarantined", "not_found", "signed_out"}
    rows = set(re.findall(r"\[([a-z_]+)\]\(troubleshooting/\1\.md\)", GUIDE))
    assert codes == rows
    assert not [code for code in rows if not (DOCS / "troubleshooting" / f"{code}.md").is_file()]


def test_its_example_compiles_and_holds_no_token() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    compile(example, "docs/api.md", "exec")
    assert "KERNELOPT_TOKEN" in example and "ko_" not in GUIDE
