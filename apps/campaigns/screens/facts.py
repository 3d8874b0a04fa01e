"""A hardware digest as named rows. Its fields are the harness's; values become words with their unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.core import figures

UNITS = {"bytes": figures.size, "gbps": figures.gigabytes_per_second}
NOT_SHOWN = {"version", "name"}
ACRONYMS = {"cpu", "gpu", "simd", "l2"}


def fact_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of every fact that is known; a digest's own list of facts keeps its names, rules are one each."""
    listed = [one for one in (facts or {}).get("facts") or () if isinstance(one, Mapping) and one.get("value")]
    if listed:
        rows = [(one["name"], f"{one['value']} ({one['note']})" if one.get("note") else one["value"]) for one in listed]
        return rows + [("Rules", rule) for rule in facts.get("rules") or ()]
    return [
        (words(key), text)
        for key, value in (facts or {}).items()
        if key not in NOT_SHOWN and (text := value_text(key, value))
    ]


def words(key: str) -> str:
    """A field name as words, its unit left away."""
    for suffix in ("_bytes", "_gbps"):
        key = key.removesuffix(suffix)
    text = key.replace("_", " ")
    return text.upper() if text in ACRONYMS else text.capitalize()


def value_text(key: str, value: Any) -> str:
    """One value as text; empty when unknown."""
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        for suffix, write in UNITS.items():
            if key.endswith(suffix):
                return write(value)
        return figures.decimal(value, 0 if float(value).is_integer() else 2)
    if isinstance(value, Mapping):
        return ", ".join(
            f"{words(name).lower()} {text}" for name, one in value.items() if (text := value_text(name, one))
        )
    if isinstance(value, (list, tuple)):
        texts = [text for one in value if (text := value_text(key, one))]
        return " ".join(texts) if any(text.endswith(".") for text in texts) else ", ".join(texts)
    return str(value)
