"""From the text of a call's arguments to values: all that the schema asks for, or what to change. Nothing is guessed,
repaired or defaulted."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from harness.agents.llm.tools.tool import Refused, Tool
from harness.domain import strict_json
from harness.domain.words import one_line, visible

MAX_CHARACTERS = 200_000
MAX_FINDINGS = 5
MOST_LOOKED_AT = 50
"""Violations that are looked for: an array may hold a hundred thousand of them, each of which takes time."""


def arguments_of(tool: Tool, text: str) -> dict[str, Any]:
    """The arguments of one call.

    Raises:
        Refused: not JSON, not an object, or against the tool's schema; what to send is part of the sentence.
    """
    if not text.strip():
        raise Refused(f"The call of {tool.name} came without arguments. {usage(tool)}")
    if len(text) > MAX_CHARACTERS:
        raise Refused(f"The arguments of {tool.name} have {len(text):,} characters; at most {MAX_CHARACTERS:,} are "
                      "read. Send less.")
    try:
        value = strict_json.loads(text)
        found = _violations(tool, value) or _unreadable(value)
    except RecursionError:
        raise Refused(f"The arguments of {tool.name} are nested too deeply. {usage(tool)}") from None
    except ValueError as error:
        raise Refused(f"The arguments of {tool.name} are not valid JSON: {one_line(str(error), 200)}. Nothing was run. "
                      f"{usage(tool)}") from None
    if found:
        listed = " ".join(f"({n}) {sentence}" for n, sentence in enumerate(found[:MAX_FINDINGS], start=1))
        raise Refused(f"The arguments of {tool.name} are wrong and nothing was run. {listed} {usage(tool)}")
    assert isinstance(value, dict)
    return _whole(value, tool.schema)


def usage(tool: Tool) -> str:
    """What a call has to bring, in one sentence."""
    parts = [f"{name} ({_kind(schema)}: {schema.get('description', '')})"
             for name, schema in tool.schema["properties"].items()]
    return f"{tool.name} takes one JSON object with exactly these keys: {'; '.join(parts)}."


def _violations(tool: Tool, value: Any) -> list[str]:
    import jsonschema  # here: a command that asks no model does not pay for it

    errors = islice(jsonschema.Draft202012Validator(tool.schema).iter_errors(value), MOST_LOOKED_AT)
    ordered = sorted(errors, key=lambda error: [str(part) for part in error.absolute_path])
    return [_sentence(error) for error in ordered]


def _sentence(error: Any) -> str:
    path = ".".join(str(part) for part in error.absolute_path)
    where = f"'{path}'" if path else "The object"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"{where} lacks {', '.join(missing)}."
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        unknown = islice((one_line(str(key), 40) for key in error.instance if key not in known), MAX_FINDINGS)
        return f"{where} has unknown keys: {', '.join(unknown)}."
    if error.validator == "enum":
        return f"{where} must be one of {', '.join(map(str, error.validator_value))}."
    if error.validator == "type":
        return f"{where} must be of type {_types(error.validator_value)}, not {_named(error.instance)}."
    return f"{where}: {one_line(error.message, 200)}."


def _unreadable(value: Any, path: str = "") -> list[str]:
    """Texts with characters that no reader sees (a lone surrogate could not even be stored). The source has a check of
    its own for those that may stand in a text but not in a kernel."""
    if isinstance(value, str):
        odd = next((c for c in value if c not in "\n\t" and not visible(c)), None)
        name = f"'{path}'" if path else "A text"
        return [] if odd is None else [f"{name} contains the invisible character U+{ord(odd):04X}. Leave it out."]
    if isinstance(value, Mapping):
        return [found for key, item in value.items() for found in _unreadable(item, f"{path}.{key}".lstrip("."))]
    if isinstance(value, list):
        return [found for n, item in enumerate(value) for found in _unreadable(item, f"{path}.{n}".lstrip("."))]
    return []


def _whole(value: Any, schema: Mapping[str, Any]) -> Any:
    """JSON has one kind of number: 3.0 is an integer to the schema and becomes one here."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {key: _whole(item, properties.get(key, {})) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item, schema.get("items", {})) for item in value]
    if isinstance(value, float) and "integer" in _as_list(schema.get("type")):
        return int(value)
    return value


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join("null" if word is None else str(word) for word in schema["enum"])
    return _types(schema.get("type"))


def _types(kinds: Any) -> str:
    return " or ".join(_as_list(kinds))


def _as_list(kinds: Any) -> list[str]:
    return [kinds] if isinstance(kinds, str) else list(kinds or [])


def _named(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
