"""What an operator's ladder on Triton makes, and calls of small sizes, as the recorder takes them."""

from __future__ import annotations

import functools
from importlib import import_module
from itertools import combinations
from math import prod
from typing import Any

from harness.agents.playbook.agent import BOOKS
from harness.agents.playbook.feasible import impossible
from harness.backends.triton.planning import argument_documents
from harness.domain.vocabulary import Backend, Tier
from harness.evaluation.judge.sizes import sizes_of
from harness.operators.base import ShapePoint
from harness.operators.registry import get
from tests.harness.agents.test_elementwise_ladders import context, rungs


def strategies(operator: str) -> set[str]:
    """The keys of all moves of the ladder."""
    now = context(operator, Backend.TRITON, get(operator).baseline(Backend.TRITON))
    return {move.key for move in import_module(BOOKS[operator, Backend.TRITON]).moves(now)}


@functools.cache
def climb(operator: str) -> tuple[dict[str, str], set[str]]:
    """Files on a climb that takes the moves in turn, with the path to each: the baseline, every file of a medium or
    heavy move from every incumbent on the way, what each light move makes where it first applies. Behind them the keys
    of the moves that applied; what arithmetic refuses does not, as in a campaign. A move after which no kernel can be
    changed is made and not climbed on from."""
    source, path = get(operator).baseline(Backend.TRITON), "baseline"
    start = context(operator, Backend.TRITON, source)

    @functools.cache
    def made(source: str) -> dict[str, tuple[Tier, str]]:
        return {move.key: (move.tier, text) for move, text in rungs(operator, Backend.TRITON, source)
                if not impossible(start, text)}

    files, applied, climbed = {source: path}, set[str](), set[str]()
    while True:
        for key, (tier, text) in made(source).items():
            if tier is not Tier.LIGHT or key not in applied:
                files.setdefault(text, f"{path}, {key}")
            applied.add(key)
        up = next((key for key, (tier, text) in made(source).items() if key not in climbed and tier is not Tier.LIGHT
                   and any(after is not Tier.LIGHT for after, _ in made(text).values())), None)
        if up is None:
            return files, applied
        climbed.add(up)
        source, path = made(source)[up][1], f"{path}, {up}"


def calls(operator: str) -> list[dict[str, Any]]:
    """The workload's shapes as they are; the largest of them also with all dimensions and all but one the smallest
    there is, which is 1 nearly always."""
    dimensions = free(operator)
    small = [tuple(dimensions), *combinations(dimensions, len(dimensions) - 1)]
    points = get(operator).workloads["llm"].shapes[Backend.TRITON]
    return [_call(operator, point, ()) for point in points] + [_call(operator, largest(operator), one) for one in small]


def smallest(operator: str) -> list[dict[str, Any]]:
    """The workload's largest shape with all dimensions the smallest there is, and with all but the first one."""
    return [_call(operator, largest(operator), tuple(free(operator)[start:])) for start in (0, 1)]


def free(operator: str) -> list[str]:
    """The dimensions that have more than one size."""
    return [dim for dim, span in get(operator).domain.items() if span.low < span.high]


def largest(operator: str) -> ShapePoint:
    """The workload's shape of the largest sizes."""
    return max(get(operator).workloads["llm"].shapes[Backend.TRITON], key=lambda point: prod(point.dims.values()))


def _call(operator: str, point: ShapePoint, small: tuple[str, ...]) -> dict[str, Any]:
    """Arguments and attributes for a shape of which some dimensions are the smallest there is."""
    spec = get(operator)
    own = {dim: point.dims[dim] // (point.dims[span.times] if span.times else 1) for dim, span in spec.domain.items()}
    dims = sizes_of(spec.domain, {**own, **{dim: spec.domain[dim].low for dim in small}})
    given = {one.name: one.default for one in spec.attributes} | dict(point.attributes)
    given |= {one.name: dims[one.dim] for one in spec.attributes if one.dim}
    return {"arguments": argument_documents(spec.arguments, dims, spec.workloads["llm"].dtypes[Backend.TRITON]),
            "attributes": {one.name: int(given[one.name]) if one.kind == "int" else given[one.name]
                           for one in spec.attributes}}
