"""JSON documents to frozen dataclasses and back, with errors that name the key.

The schemas in ``schema/`` are checked by ``jsonschema`` at the door; ``cattrs`` then builds the
dataclasses and refuses unknown keys, so that the two cannot drift apart unnoticed.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from harness.domain.errors import DocumentError
from harness.domain.words import one_line

if TYPE_CHECKING:  # imported where it is used: a command that reads and writes no document starts sooner
    import cattrs
    from jsonschema.exceptions import ValidationError

SCHEMA_DIR = Path(__file__).parent / "schema"
MESSAGE_KEPT = 400
"""Characters of a sentence about a wrong value, which quotes the value, however large."""
T = TypeVar("T")
ADDED = {"added": True}
"""``metadata`` of a field that documents with a digest got later: left out while it has its default, so that documents
and digests from before the field stay what they are."""


@functools.cache
def _converter() -> cattrs.Converter:
    import cattrs
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    # JSON carries whole floats as integers; a float field accepts both and keeps them as floats.
    # By identity: a hook registered for ``str`` by class would also catch every string enumeration.
    for plain, read in ((float, _number), (int, _integer), (str, _text), (bool, _boolean)):
        converter.register_structure_hook_func(functools.partial(_is, plain), functools.partial(_apply, read))
    converter.register_structure_hook_func(lambda kind: kind is Any, lambda value, _: value)
    converter.register_structure_hook(float | str | None, lambda value, _: _scalar(value))
    # A trailing underscore keeps a Python keyword out of the dataclass (``class_``); JSON has the plain word.
    for factory, make in ((converter.register_structure_hook_factory, make_dict_structure_fn),
                          (converter.register_unstructure_hook_factory, make_dict_unstructure_fn)):
        factory(_has_special_field, functools.partial(_special, converter, make))
    return converter


def _is(plain: type, kind: Any) -> bool:
    return kind is plain


def _apply(read: Any, value: Any, _: Any) -> Any:
    return read(value)


def _has_special_field(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) and any(_is_keyword(f) or _is_added(f) for f in dataclasses.fields(kind))


def _is_keyword(field: Any) -> bool:
    return field.name.endswith("_")


def _is_added(field: Any) -> bool:
    return bool(field.metadata.get("added"))


def _special(converter: cattrs.Converter, make: Any, kind: Any) -> Any:
    from cattrs.gen import make_dict_structure_fn, override

    fields = dataclasses.fields(kind)
    names = {f.name: override(rename=f.name.rstrip("_")) for f in fields if _is_keyword(f)}
    names |= {f.name: override(omit_if_default=True) for f in fields if _is_added(f)}
    extra = {"_cattrs_forbid_extra_keys": True} if make is make_dict_structure_fn else {}
    return make(kind, converter, **extra, **names)


def _scalar(value: Any) -> float | str | None:
    return value if value is None or isinstance(value, str) else _number(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {value!r}")
    return float(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected an integer, got {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r}")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {value!r}")
    return value


def to_document(value: Any) -> Any:
    """A dataclass as plain JSON values (dict, list, str, number, bool, None)."""
    return _lists(_converter().unstructure(value))


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return value


def from_document(document: Any, kind: type[T]) -> T:
    """Build ``kind`` from a JSON document.

    Raises:
        DocumentError: an unknown, missing or mistyped key; ``key`` is its path.
    """
    try:
        return _converter().structure(document, kind)
    except Exception as error:  # cattrs raises a group of whatever the hooks raised
        import cattrs

        sentences = cattrs.transform_error(error, path="$", format_exception=_sentence)
        first = sentences[0] if sentences else str(error)
        key = first.rpartition("@ ")[2].removeprefix("$").lstrip(".") if "@ " in first else ""
        text = f"{kind.__name__} document is invalid: {'; '.join(sentences) or error}"
        raise DocumentError(text, key=key) from error


def _sentence(error: BaseException, kind: Any) -> str:
    """cattrs words its own errors well; ours already say what was expected."""
    if isinstance(error, TypeError | ValueError) and error.args and type(error) in (TypeError, ValueError):
        return str(error)
    import cattrs

    return cattrs.v.format_exception(error, kind)


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """The JSON schema ``name`` (``goal``, ``verdict``, ...), with its committed example under ``examples``."""
    return json.loads((SCHEMA_DIR / f"{name}.json").read_text("utf-8"))


@functools.cache
def _validator(name: str) -> Any:
    import jsonschema  # here, so that readers of plain dataclasses do not pay for it

    return jsonschema.Draft202012Validator(schema(name))


def check_schema(document: Any, name: str) -> None:
    """Refuse a document that does not follow schema ``name``.

    Raises:
        DocumentError: with the dotted path of the first wrong value and what was expected there.
    """
    errors = sorted(_validator(name).iter_errors(document), key=lambda error: list(map(str, error.absolute_path)))
    if errors:
        first = _meant(errors[0])
        key = ".".join(map(str, first.absolute_path))
        where = f"'{key}'" if key else "the document"
        raise DocumentError(f"{name}: {where}: {one_line(first.message, MESSAGE_KEPT)}", key=key)


def _meant(error: ValidationError) -> ValidationError:
    """Of a value that fits none of several forms, what is wrong with the one that was meant: the first whose kind of
    value it is ("-1 is less than the minimum", where nothing or a number of at least 0 may stand)."""
    forms: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        forms.setdefault(inner.schema_path[0], []).append(inner)
    for told in forms.values():
        if not any(inner.validator == "type" and not inner.path for inner in told):
            return _meant(told[0])
    return error


__all__ = ["check_schema", "from_document", "schema", "to_document"]
