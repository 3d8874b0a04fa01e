"""Compile-time constants of a launch as JSON that can be turned back into the same values.

Numbers, text, ``None`` and tuples (as lists) stand for themselves; everything else is an object with one telling key:
``float`` (not finite), ``dtype``, ``function`` (a kernel function of the file), ``layout`` (one of Gluon's).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

_LAYOUTS = "triton.experimental.gluon.language."


class NotAConstant(ValueError):
    """A value of a kind that plans cannot hold."""


def encode(value: Any) -> Any:
    """``value`` as JSON.

    Raises:
        NotAConstant: naming its type.
    """
    kind = type(value)
    if kind.__name__ == "constexpr":
        return encode(value.value)
    if value is None or kind is bool:
        return value
    if kind is int and value.bit_length() <= 64:
        return value
    if kind is str and not any("\ud800" <= letter <= "\udfff" for letter in value):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind in (tuple, list) or kind.__name__ == "tuple":
        return [encode(item) for item in value]
    module = kind.__module__
    if module == "triton.language.core" and kind.__name__ == "dtype":
        return {"dtype": str(value.name)}
    if kind.__name__ in ("JITFunction", "GluonJITFunction"):
        return {"function": str(value.fn.__name__)}
    if module.startswith(_LAYOUTS) and dataclasses.is_dataclass(value):
        fields = {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
        return {"layout": f"{module.removeprefix(_LAYOUTS)}.{kind.__name__}", "fields": fields}
    if kind in (int, str):
        raise NotAConstant(f"the constant {value!r:.40}")  # no document carries it
    raise NotAConstant(f"a constant of type {kind.__name__ if module == 'builtins' else f'{module}.{kind.__name__}'}")


def decode(document: Any, functions: Mapping[str, Any]) -> Any:
    """The value of ``document``; ``functions`` are the file's kernel functions by name. Imports Triton.

    Raises:
        NotAConstant: not something that ``encode`` gives, or the name of no kernel function.
    """
    if isinstance(document, list):
        return tuple(decode(item, functions) for item in document)
    if not isinstance(document, dict):
        return document
    if set(document) == {"float"}:
        return float(document["float"])
    if set(document) == {"dtype"}:
        import triton.language as tl

        return tl.dtype(document["dtype"])
    if set(document) == {"function"} and document["function"] in functions:
        return functions[document["function"]]
    if set(document) == {"layout", "fields"}:
        return _layout(document, functions)
    raise NotAConstant(f"a constant written as {', '.join(sorted(document))}")


def _layout(document: dict[str, Any], functions: Mapping[str, Any]) -> Any:
    from triton.experimental.gluon.language import _layouts

    kind = getattr(_layouts, str(document["layout"]).rpartition(".")[2], None)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise NotAConstant(f"a layout {document['layout']}")
    return kind(**{name: _listed(decode(value, functions)) for name, value in document["fields"].items()})


def _listed(value: Any) -> Any:
    """Layouts are made of lists, where kernel arguments are tuples."""
    return [_listed(item) for item in value] if isinstance(value, tuple) else value
