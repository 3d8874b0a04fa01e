"""Top-k in torch: inputs, reference, relations and exact problems. Nothing is computed, so everything is exact."""

from __future__ import annotations

from collections.abc import Callable

import torch

from harness.operators.base import Dims
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.symmetries import every, only
from harness.operators.topk.regimes import OWN
from harness.operators.values import mixed_rows, quantise

BEYOND = 1e300
"""Larger than every float32: where +inf is put, so that NaN can have the place of +inf."""


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """x [rows, cols] of the regimes; those about ties and special values (``OWN``) come alone."""
    rows, cols = dims["rows"], dims["cols"]
    if len(regimes) == 1 and regimes[0] in OWN:
        values = OWN[regimes[0]](rows, cols, min(int(attributes["k"]), cols), generator)
    else:
        values = mixed_rows(regimes, rows, cols, dtype, generator)
    return {"x": quantise(values, dtype)}


def _columns(x: torch.Tensor, k: int) -> torch.Tensor:
    """The columns of the k largest values of each row, falling, ties by the lower one; int64 [rows, k].

    All that is above the k-th largest is in, and of what equals it the first ones that there is room for."""
    order = x.double()
    order = torch.where(order == torch.inf, BEYOND, order)
    order = torch.where(order.isnan(), torch.inf, order)
    last = order.topk(k).values[:, -1:]
    equal = order == last
    room = k - (order > last).sum(-1, keepdim=True)
    taken = (order > last) | (equal & (equal.cumsum(-1) <= room))
    columns = taken.nonzero()[:, 1].view(-1, k)
    ranks = torch.sort(order.gather(-1, columns), dim=-1, descending=True, stable=True).indices
    return columns.gather(-1, ranks)


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """The k largest values and their columns, both in float64, which holds them exactly."""
    columns = _columns(inputs["x"], int(attributes["k"]))
    return {"values": inputs["x"].double().gather(-1, columns), "indices": columns.double()}


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """No error is allowed, so that nothing has a size."""
    nothing = torch.zeros(())
    return {"values": (nothing, 0.0), "indices": (nothing, 0.0)}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """The same values in their own dtype."""
    columns = _columns(inputs["x"], int(attributes["k"]))
    return {"values": inputs["x"].gather(-1, columns), "indices": columns}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's eager operator, which leaves the order of ties open."""
    x, k = inputs["x"], int(attributes["k"])

    def eager() -> Tensors:
        found = torch.topk(x, k)
        return {"values": found.values, "indices": found.indices}

    return {"torch eager": eager}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """Scaled values keep their places, rows their answers; columns of -inf behind all others change nothing, and a
    smaller k gives the beginning of the answer."""
    x, same, k = inputs["x"], dict(attributes), int(attributes["k"])
    fewer = int(torch.randint(1, k + 1, (), generator=generator))
    more = int(torch.randint(1, 100, (), generator=generator))
    hidden = torch.full((x.shape[0], more), -torch.inf, dtype=x.dtype)

    def of(name: str, changed: torch.Tensor, outputs: Callable[[Tensors], Tensors], wanted: int = k) -> Relation:
        return Relation(name, {"x": changed}, {**same, "k": wanted}, outputs, exact=True)

    return [
        of("x times 2 doubles the values and leaves their places", x * 2, only("values", lambda v: v * 2)),
        of("rows in another order give results in that order", x.flip(0), every(lambda v: v.flip(0))),
        of("rows given twice give results twice", torch.cat([x, x]), every(lambda v: torch.cat([v, v]))),
        of(f"{more} columns of -inf behind the others change nothing", torch.cat([x, hidden], 1), lambda o: o),
        of(f"k = {fewer} gives the first {fewer}", x, every(lambda v: v[:, :fewer]), fewer),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """The whole numbers from k down to 1 at random places among smaller ones, and rows of one value only."""
    rows, cols, k = dims["rows"], dims["cols"], dims["k"]
    places = torch.rand(rows, cols, generator=generator).argsort(-1)[:, :k]
    numbers = torch.arange(k, 0, -1).expand(rows, k)  # up to 256 of them are exact in every dtype
    x = -torch.randint(1, 100, (rows, cols), generator=generator).float()
    x.scatter_(-1, places, numbers.float())
    level = torch.randint(-8, 8, (rows, 1), generator=generator).float().expand(rows, cols)
    first = torch.arange(k).expand(rows, k).contiguous()
    return [
        ExactProbe("whole numbers at random places", {"x": x.to(dtype)}, {"k": k},
                   {"values": numbers.to(dtype), "indices": places}),
        ExactProbe("all values alike", {"x": level.to(dtype).contiguous()}, {"k": k},
                   {"values": level[:, :k].to(dtype), "indices": first}),
    ]
