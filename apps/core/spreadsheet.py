"""Values for CSV files that a person opens in a spreadsheet."""

from __future__ import annotations

import json

DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cell(value: object) -> object:
    """A value for CSV: documents as JSON; text that a spreadsheet would run as a formula is quoted by an apostrophe."""
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(DANGEROUS):
        return "'" + value
    return "" if value is None else value
