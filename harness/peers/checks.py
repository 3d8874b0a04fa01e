"""Whether a library computed what the operator asks for: rows of one timed call against float64, with our own bound."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.oracle import Expected, InvalidReference, expect, largest_error
from harness.evaluation.judge.rows import cut_along, cut_dims, inner_axes, inner_dim, row_dim, row_elements
from harness.operators.base import Dims, OperatorSpec
from harness.operators.implementation import Tensors
from harness.peers.base import Peer
from harness.peers.ring import Contents, rows_of

BUDGET = 1 << 22
"""Elements that the oracle looks at, about; a row that is larger is one row."""
MOST_ROWS = 64


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows of what one call left, on the host, and the start that its slot's contents were drawn with."""

    start: int
    rows: range
    outputs: Tensors


@dataclass(frozen=True, slots=True)
class Checked:
    """``error``: largest absolute error against float64; ``worst_ratio``: the largest one as a share of the evaluator's
    bound; ``right``: within it, roundings to the library's own output dtype and of an intermediate result that it is
    known to round allowed; ``why`` not, in a sentence."""

    error: float | None
    worst_ratio: float | None
    right: bool
    why: str = ""


def choose(contents: Contents, source: random.Random) -> range:
    """A random block of rows that the oracle can afford; all of them where rows are not independent."""
    dim = row_dim(contents.spec)
    if dim is None:
        return range(0)
    rows = contents.point.dims[dim]
    count = max(1, min(rows, MOST_ROWS, BUDGET // max(1, row_elements(contents.spec, contents.point.dims, dim))))
    first = source.randrange(rows - count + 1)
    return range(first, first + count)


def keep(outputs: Tensors, rows: range, start: int) -> Kept:
    """Copies of the ``rows`` on the host; an empty range means everything."""
    return Kept(start, rows, {name: (values[rows.start:rows.stop] if rows else values).detach().to("cpu", copy=True)
                              for name, values in outputs.items()})


def affordable(spec: OperatorSpec, dims: Dims, start: int) -> range | None:
    """A block of the inner dimension that the oracle can afford, placed by the contents' ``start``, of rows that are
    too large; ``None`` for all of it."""
    inner, dim = inner_dim(spec), row_dim(spec)
    if inner is None or dim is None:
        return None
    each = dims[dim] * row_elements(spec, dims, dim)
    if each <= BUDGET:
        return None
    count = max(1, BUDGET * dims[inner] // each)
    first = start % (dims[inner] - count + 1)
    return range(first, first + count)


def check(kept: Kept, contents: Contents, table: torch.Tensor, peer: Peer | None) -> Checked:
    """Hold what was kept against the oracle. ``table``: the factors, on the host."""
    spec, dim = contents.spec, row_dim(contents.spec) if kept.rows else None
    dims, inputs = rows_of(contents, kept.rows, dim, kept.start, table)
    outputs = kept.outputs
    block = affordable(spec, dims, kept.start) if dim is not None else None
    if block is not None:
        moved = inner_axes(spec, dims)
        inputs = {one.name: cut_along(inputs[one.name], one.dims, moved, block) for one in spec.inputs}
        outputs = {one.name: cut_along(outputs[one.name], one.dims, moved, block) for one in spec.outputs
                   if one.name in outputs}
        dims = cut_dims(dims, moved, block)
    try:
        answers = expect(spec, dims, inputs, contents.attributes, contents.dtype)
    except InvalidReference as invalid:
        return Checked(None, None, False, invalid.text)
    free = peer.free if peer else ()
    error, worst = 0.0, 0.0
    words: list[str] = []
    for output in spec.outputs:
        if output.name in free:
            continue
        got, answer = outputs[output.name], replace(answers[output.name], allowance=None)
        error = max(error, largest_error(got, answer.values) or 0.0)
        worst = max(worst, _share(got, answer))
        more = _own_rounding(got, answer, output.dtype or contents.dtype)
        if peer is not None and peer.rounds is not None:
            more = more + peer.rounds(inputs)[output.name]
        allowed = replace(answer, bound=answer.bound + more)
        found = compare(output.name, output.dims, got, torch.zeros(got.shape, dtype=torch.bool), allowed).finding
        if found is not None:
            words.append(found.text)
    if peer is not None and peer.holds is not None and not peer.holds(inputs, outputs):
        words.append("What it left does not belong together.")
    return Checked(error, worst if math.isfinite(worst) else None, not words, " ".join(words))


def _share(got: torch.Tensor, answer: Expected) -> float:
    finite = torch.isfinite(got) & torch.isfinite(answer.values)
    off = torch.where(finite, (got.double() - answer.values).abs(), 0.0)
    share = torch.where(off > 0.0, off / answer.bound, 0.0)  # endless where nothing is allowed
    return float(share.max()) if share.numel() else 0.0


def _own_rounding(got: torch.Tensor, answer: Expected, declared: str) -> torch.Tensor | float:
    """One rounding to the dtype that the library answers in, where that is narrower than the declared one."""
    if not got.dtype.is_floating_point or torch.finfo(got.dtype).eps <= torch.finfo(dtype_of(declared)).eps:
        return 0.0
    return answer.values.abs().nan_to_num(0.0, 0.0, 0.0) * torch.finfo(got.dtype).eps / 2


def document(checked: Checked) -> Mapping[str, Any]:
    """``checked`` for the answer."""
    return {"error": checked.error, "worst_ratio": checked.worst_ratio, "right": checked.right,
            "why": checked.why[:400]}
