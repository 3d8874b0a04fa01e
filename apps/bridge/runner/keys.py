"""Keys of endpoints live in one process: the engine, where agents ask. Every other child is started without them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from harness.agents.llm.endpoints import MOST_BYTES, key_variables, load_endpoints
from harness.domain.errors import HarnessError

ALWAYS = frozenset({"OPENAI_API_KEY"})
"""What client libraries look for by themselves, named by an endpoint or not."""
NAMED = re.compile(r"""key_variable["']?\s*=\s*["']([A-Za-z_][A-Za-z0-9_]*)["']""")


def key_names(path: Path) -> frozenset[str]:
    """Environment variables that hold keys, by the endpoints file at ``path``. A file that is wrong somewhere still
    tells the names in it: a slip in a price must not hand the keys around."""
    try:
        return ALWAYS | frozenset(key_variables(load_endpoints(path)))
    except HarnessError:
        return ALWAYS | frozenset(NAMED.findall(_text(path)))


def without_keys(environment: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    """The environment of a process that asks no model."""
    return {name: value for name, value in environment.items() if name not in names}


def keys_there(environment: Mapping[str, str], path: Path) -> dict[str, bool]:
    """By endpoint with a key: whether its variable is set. Pages show this, never the key."""
    try:
        found = load_endpoints(path)
    except HarnessError:
        return {}
    return {name: bool(environment.get(one.key_variable, "").strip())
            for name, one in found.items() if one.key_variable}


def secrets_of(environment: Mapping[str, str], names: frozenset[str]) -> tuple[str, ...]:
    """The keys themselves, to keep them out of what is stored."""
    return tuple(value.strip() for name in sorted(names) if (value := environment.get(name, "").strip()))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
