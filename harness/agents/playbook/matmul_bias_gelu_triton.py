"""Strategies for matmul_bias_gelu on Triton: tiles per bucket, bands of tiles, unmasked steps, split sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.agents.playbook import edit
from harness.agents.playbook import matmul_bias_gelu_kernels as forms
from harness.agents.playbook.arithmetic import multiprocessors, over_shapes
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier
from harness.operators.base import Dims

NAME = forms.NAME
LARGE = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
SQUARE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
DEEP = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 128, "num_warps": 4, "num_stages": 3}
FLAT = {"BLOCK_M": 32, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 4, "num_stages": 6}
TALL = {"BLOCK_M": 256, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 4}


def _values(values: Mapping[str, Any]) -> Callable[[AgentContext], str | None]:
    """A transform that sets several PARAMS, all of them declared and held."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        held = edit.params(source)
        if not set(values) <= set(held) or all(held[key] == value for key, value in values.items()):
            return None
        return edit.set_params(source, values)
    return transform


def _by_bucket(few: Mapping[str, int], some: Mapping[str, int], many: Mapping[str, int]) -> dict[str, dict[str, int]]:
    return {key: {"few": few[key], "some": some[key], "many": many[key]} for key in many}


def _body(**change: bool) -> Callable[[AgentContext], str | None]:
    """A transform that gives the kernels' bodies another form."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        form = forms.form_of(source)
        if form is None or replace(form, **change) == form:
            return None
        changed = replace(form, **change)
        source = edit.replace_body(source, NAME, forms.body(changed))
        if not forms.is_split(source):
            return source
        source = edit.replace_function(source, forms.PARTIAL, forms.partial(changed))
        return edit.replace_function(source, forms.FINISH, forms.finish(changed))
    return transform


def _split(context: AgentContext) -> str | None:
    source = context.incumbent.source
    form = forms.form_of(source)
    if form is None or forms.is_split(source):
        return None
    middle = forms.RUN_DESCRIBED + forms.RUN_SPLIT if forms.is_described(source) else forms.RUN_SPLIT
    source = edit.replace_function(source, "run", forms.RUN_HEAD + middle + forms.RUN_TAIL)
    source = edit.insert_before(edit.insert_before(source, NAME, forms.partial(form)), NAME, forms.finish(form))
    return _with_torch(edit.set_params(source, {"SPLITS": 4}))


def _described(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if forms.form_of(source) is None or forms.is_described(source):
        return None
    middle = forms.RUN_DESCRIBED + forms.RUN_SPLIT if forms.is_split(source) else forms.RUN_DESCRIBED
    source = edit.replace_function(source, "run", forms.RUN_HEAD + middle + forms.RUN_TAIL)
    source = _with_torch(edit.insert_before(source, "run", forms.KERNEL_DESCRIBED))
    more = "import triton.language as tl\nfrom triton.tools.tensor_descriptor import TensorDescriptor\n"
    return source.replace("import triton.language as tl\n", more, 1)


def _with_torch(source: str) -> str:
    head = "import triton\n"
    return source if "import torch\n" in source else source.replace(head, f"import torch\n{head}", 1)


def _idle(context: AgentContext) -> float:
    """What splitting gives where a shape has fewer tiles than two per multiprocessor."""
    wanted = 2 * multiprocessors(context)
    held = edit.params(context.incumbent.source)

    def speedup(dims: Dims) -> float:
        from harness.evaluation.arithmetic import values_for

        values = values_for(held, dims, context.spec.buckets)
        tiles = -(-dims["m"] // int(values.get("BLOCK_M", 64))) * -(-dims["n"] // int(values.get("BLOCK_N", 64)))
        return min(1.3, max(1.0, wanted / tiles))

    return over_shapes(context, speedup)


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("tiles-by-rows", Direction.TILING, NAME, Tier.LIGHT,
             "Tiles by the number of rows: 128 x 256 for many (each value loaded counts 128 or 256 times, and eight "
             "warps hold the accumulator in 128 registers a thread), 64 x 128 for some, so that 128 programs share "
             "1024 x 1024, 32 x 128 six stages deep for few, where b is all that moves.",
             "tiles, warps and stages as tables over rows", 0.8, 2.0, _values(_by_bucket(FLAT, DEEP, LARGE)),
             evidence="tunables", basis="bytes"),
        Move("square-tiles", Direction.TILING, NAME, Tier.LIGHT,
             "128 x 128 tiles with steps of 64 and eight warps everywhere: a quarter of the loads per product.",
             "128 x 128 x 64, 8 warps, 3 stages", 0.6, 1.2, _values(SQUARE), evidence="tunables", basis="bytes"),
        Move("tall-tiles", Direction.TILING, NAME, Tier.LIGHT,
             "256 x 128 tiles where there are many rows, four stages deep: as few loads per product as 128 x 256, with "
             "twice the rows of a for every column of b, and one more step on its way. Risk: all 255 registers of a "
             "thread are taken.", "256 x 128 tiles and 4 stages for many rows", 0.2, 0.03,
             _values(_by_bucket(FLAT, DEEP, TALL)), evidence="tunables", basis="bytes"),
        Move("bands", Direction.LAYOUT, NAME, Tier.MEDIUM,
             f"Walk the tiles in bands of {forms.BAND} tile rows: programs that run together then share rows of a and "
             "columns of b in the L2 cache.", f"tiles in bands of {forms.BAND} rows", 0.2, 0.12, _body(banded=True),
             evidence="profile.bytes"),
        Move("whole-steps", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Take whole steps without masks: rows and columns past the end are wrapped around, the last step alone "
             "is masked. Loads then need no predicates, and copies to shared memory are as wide as they can be.",
             "unmasked whole steps, a masked rest", 0.3, 0.15, _body(peeled=True), basis="latency"),
        Move("powers-of-two", Direction.PRECISION, NAME, Tier.MEDIUM,
             "GELU as s / (1 + 2^(s (c + d s^2))) with the constants folded: three instructions less per result, "
             "while the tensor cores wait.", "GELU by a power of two", 0.1, 0.02, _body(two=True)),
        Move("split-sums", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split long sums over up to four programs where a shape has fewer tiles than two per multiprocessor, and "
             "add the parts, the bias and GELU in a second kernel. Costs a launch and the parts' traffic.",
             "sums split over programs where tiles are few, then a finishing kernel", 0.3, 0.3, _split,
             evidence="hardware.multiprocessors", model=_idle),
        Move("descriptors", Direction.LAYOUT, NAME, Tier.HEAVY,
             "Where there are many rows, one program per multiprocessor walks over tiles that tensor descriptors bring "
             "in, with the epilogue in halves: a single thread starts each copy, so that addresses take no registers, "
             "and the next tile's loads run under the stores. Rows or bases that are no multiples of 16 bytes keep "
             "the other kernel.", "persistent programs, tiles by tensor descriptors", 0.2, 0.04, _described,
             basis="latency"),
        value_move(context, NAME, "num_stages", 4, what="loads run further ahead of the products", reach=0.2, most=0.08,
                   direction=Direction.PIPELINING),
        value_move(context, NAME, "num_stages", 3, what="loads run further ahead of the products", reach=0.2, most=0.1,
                   direction=Direction.PIPELINING),
        value_move(context, NAME, "num_warps", 8, what="the accumulator spread over more threads", reach=0.1, most=0.05,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK_K", 64, what="half as many steps", reach=0.2, most=0.15),
    ]
