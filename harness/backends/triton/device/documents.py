"""Announced calls as the recorder is told of them: the same documents that the lent arrays will give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.evaluation.ports import Announced
from harness.operators.base import Argument

Documents = list[dict[str, Any]]


def documents_of(arguments: Sequence[Argument], call: Announced) -> Documents:
    """Argument documents of a call to come; equal to ``planning.lent_documents`` of its ``Lending``.

    ``strided`` puts ``gap`` elements between the rows of inputs that may be strided; ``offset`` shifts every array
    by one element.
    """
    documents = []
    for argument in arguments:
        shape = [int(call.dims[name]) for name in argument.dims]
        gap = call.gap if call.layout == "strided" and argument.strided and argument.kind == "input" else 0
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1] + (gap if axis == len(shape) - 2 else 0)
        documents.append({
            "name": argument.name, "kind": argument.kind, "dtype": argument.dtype or call.dtype, "shape": shape,
            "strides": strides, "offset": 1 if call.layout == "offset" else 0,
        })
    return documents


def key_of(documents: Documents, attributes: Mapping[str, float]) -> str:
    """What a plan depends on besides the source."""
    return json.dumps([documents, dict(attributes)], sort_keys=True)


def kinds_of(documents: Documents, attributes: Mapping[str, float]) -> tuple[object, object]:
    """What calls for which Triton compiles the same code mostly have in common, narrowly and widely: dtypes, shifts,
    which sizes are 1 or divisible by 16, and narrowly their powers of two and the attributes besides. A guess that
    decides about cost alone."""
    wide = tuple((one["dtype"], one["offset"], *((size == 1, size % 16 == 0) for size in (*one["shape"],
                                                                                         *one["strides"])))
                 for one in documents)
    powers = tuple(size.bit_length() for one in documents for size in one["shape"])
    return (wide, powers, tuple(attributes.items())), wide
