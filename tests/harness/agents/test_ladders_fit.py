"""Whatever dtype and size the judge draws, what a ladder ends in fits the device, not only at the workload's shapes.

Arithmetic and the plans of a campaign see the workload's dtype and shapes, the interpreter has no shared memory, and
Triton's front end ends before it is allotted: twice the bytes a value showed on a GPU alone, in the judge's probes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.backends.triton.compiler.compiled import compile_plans
from harness.backends.triton.compiler.process import compiler_for
from harness.backends.triton.planning import record_plans
from harness.backends.triton.targets import find_target
from harness.domain.plan import LaunchPlan
from harness.domain.vocabulary import Backend
from harness.evaluation.judge.sizes import sizes_of
from harness.evaluation.ports import CandidateFault
from harness.operators import registry
from harness.operators.base import OperatorSpec, ShapePoint
from tests.harness.agents.climbing import climb, largest
from tests.harness.agents.test_attention_ladder import CLIMB as ATTENTION
from tests.harness.agents.test_product_ladders import CLIMB as PRODUCT
from tests.harness.agents.test_product_ladders import climbed

TARGET = find_target("nvidia-h200")
CLIMBED = {"decode_attention": ATTENTION, "matmul_bias_gelu": PRODUCT}
"""Climbs that end in tables; the others' tops are those of a climb that takes all moves."""
NARROW = 256
"""Dimensions that never exceed this have their largest size beside the workload's: heads, widths of heads, k."""
SIXTEEN, FLOAT32 = "bfloat16", "float32"
"""float16 has values of the first one's size."""


def top(operator: str) -> str:
    """The kernel at the upper end of the ladder."""
    if operator in CLIMBED:
        return climbed(operator, Backend.TRITON, CLIMBED[operator])
    files, _ = climb(operator)
    return max(files, key=lambda text: files[text].count(","))


def points(spec: OperatorSpec, *, wide: bool) -> list[ShapePoint]:
    """A shape of every bucket; ``wide``: with the largest of what is narrow."""
    point, buckets = largest(spec.name), spec.buckets
    assert buckets is not None
    own = {dim: point.dims[dim] // (point.dims[span.times] if span.times else 1) for dim, span in spec.domain.items()}
    if wide:
        own |= {dim: span.high for dim, span in spec.domain.items() if span.high <= NARROW}
    made, beyond = [], 2
    for name, bound in buckets.bounds:
        size = bound or min(beyond, spec.domain[buckets.dim].high)
        beyond = 2 * size
        dims = sizes_of(spec.domain, {**own, buckets.dim: size})
        given = {one.name: dims[one.dim] for one in spec.attributes if one.dim}
        made.append(replace(point, label=name, dims=dims, attributes={**point.attributes, **given}))
    return made


def recorded(spec: OperatorSpec, source: str, shapes: Sequence[ShapePoint], dtype: str) -> list[LaunchPlan]:
    """The plans of ``source`` for ``shapes``; what needs more shared memory than the device has is refused."""
    from harness.evaluation.sandbox import opener

    attributes = {one.name: one.default for one in spec.attributes}
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": TARGET.name})
    try:
        return record_plans(worker, source, spec.arguments, shapes, dtype, TARGET, attributes)
    finally:
        worker.close()


def test_every_bucket_has_a_shape_of_it() -> None:
    for operator in registry.NAMES:
        spec = registry.get(operator)
        assert spec.buckets is not None
        sizes = [point.dims[spec.buckets.dim] for point in points(spec, wide=False)]
        for size, (_, bound), last in zip(sizes, spec.buckets.bounds, [0, *sizes], strict=False):
            assert last < size and (bound is None or size <= bound), operator


@pytest.mark.sandbox
def test_a_tile_of_float32_that_does_not_fit_is_found() -> None:
    """The launch that an H200 refused: 32 x 128 tiles, four stages of 128 float32 terms, by tensor descriptors."""
    spec, source = registry.get("matmul_bias_gelu"), top("matmul_bias_gelu")
    line = next(line for line in source.split("\n") if "block_n, block_k = min(" in line)
    as_judged = source.replace(line, line.split("block_n,")[0] + "pass").replace("if lined == 8 and", "if")
    few = points(spec, wide=False)[:1]
    assert recorded(spec, as_judged, few, SIXTEEN)[0].refusals == ()
    with pytest.raises(CandidateFault, match="out of resource: shared memory"):
        recorded(spec, as_judged, few, FLOAT32)
    assert recorded(spec, source, few, FLOAT32)[0].refusals == ()


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize("operator", registry.NAMES)
def test_the_top_of_a_ladder_fits_whatever_the_dtype_and_the_bucket(operator: str) -> None:
    """Both sizes of a value; narrow dimensions at the workload's sizes and at their largest."""
    spec, source = registry.get(operator), top(operator)
    plain, wide = points(spec, wide=False), points(spec, wide=True)
    plans = recorded(spec, source, plain if plain == wide else plain + wide, FLOAT32)
    plans += recorded(spec, source, wide, SIXTEEN)
    assert [plan.refusals for plan in plans] == [()] * len(plans)


@pytest.mark.sandbox
def test_products_of_float32_tiles_spill_no_registers() -> None:
    """As large as the tables' tiles, they spilled up to 452 bytes by pointers and 43 KB by descriptors."""
    spec = registry.get("matmul_bias_gelu")
    plans = recorded(spec, top(spec.name), points(spec, wide=False), FLOAT32)
    rows = [row for one in compile_plans(plans, compiler_for(TARGET), deadline_s=120.0) for row in one.launches]
    assert [row.function for row in rows] == ["_matmul"] * 3
    assert [row.spill_bytes for row in rows] == [0, 0, 0]
    assert all(row.shared_bytes <= TARGET.shared_optin for row in rows)
