"""Strategies for matmul_bias_gelu on Triton: tiles per bucket, tensor descriptors, GELU, bands, split sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.agents.playbook import edit
from harness.agents.playbook import matmul_bias_gelu_kernels as forms
from harness.agents.playbook.arithmetic import over_shapes
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier
from harness.operators.base import Dims

NAME, DESCRIBED = forms.NAME, forms.DESCRIBED
LARGE = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
SQUARE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
DEEP = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 128, "num_warps": 4, "num_stages": 3}
DEEPER = {**DEEP, "num_stages": 4}
FLAT = {"BLOCK_M": 32, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 4, "num_stages": 6}
LONG = {"BLOCK_M": 32, "BLOCK_N": 128, "BLOCK_K": 128, "num_warps": 4, "num_stages": 4}
TALL = {"BLOCK_M": 256, "BLOCK_N": 128, "num_warps": 8, "num_stages": 3}
Rows = Mapping[str, float]
TABLES = {"few": 31.82, "some": 9.25, "many": 196.8}
"""Microseconds of 32 x 4096 x 14336, 1024^3 and 4096^3 with tables alone, taken in turns with those below on an H200;
cuBLASLt with its epilogue took 32.3, 7.33 and 183.0."""
ROOT = {"few": 31.66, "some": 8.92, "many": 194.7}
"""Tables, then GELU by a power of two and a reciprocal root."""
LARGE_DESCRIBED = {**TABLES, "many": 186.9}
"""Tables, then descriptors for many rows."""
ALL_DESCRIBED = {"few": 31.58, "some": 7.64, "many": 186.9}
"""Tables, then descriptors for all; those of few and some rows were timed with one program per tile."""
DESCRIPTOR = "from triton.tools.tensor_descriptor import TensorDescriptor\n"


def _values(values: Mapping[str, Any]) -> Callable[[AgentContext], str | None]:
    """A transform that sets several PARAMS, all of them declared; where a table stands already it stays."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        held = edit.params(source)
        if not set(values) <= set(held) or not all(isinstance(held[key], int) for key in values):
            return None
        return None if all(held[key] == value for key, value in values.items()) else edit.set_params(source, values)
    return transform


def _for_many(values: Mapping[str, int], *, described: bool = False) -> Callable[[AgentContext], str | None]:
    """A transform that changes PARAMS for many rows alone; ``described``: only where descriptors bring tiles."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        held = edit.params(source)
        if not set(values) <= set(held) or (described and not forms.is_described(source)):
            return None
        tables = {key: held[key] if isinstance(held[key], dict) else dict.fromkeys(("few", "some", "many"), held[key])
                  for key in values}
        wanted = {key: {**table, "many": values[key]} for key, table in tables.items()}
        return None if wanted == tables else edit.set_params(source, wanted)
    return transform


def _one_value(key: str) -> Callable[[str], bool]:
    """One value for all rows would undo a table over them."""
    return lambda source: isinstance(edit.params(source).get(key), int)


def _by_bucket(few: Mapping[str, int], some: Mapping[str, int], many: Mapping[str, int]) -> dict[str, dict[str, int]]:
    return {key: {"few": few[key], "some": some[key], "many": many[key]} for key in many}


def _form(source: str) -> forms.Form | None:
    """The form of the kernel that takes what descriptors leave; ``None`` where that is no shape of any workload."""
    return None if forms.is_described_for_all(source) else forms.form_of(source)


def _body(**change: bool) -> Callable[[AgentContext], str | None]:
    """A transform that gives the kernels' bodies another form."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        form = _form(source)
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
    form = _form(source)
    if form is None or forms.is_split(source):
        return None
    text = forms.run_text(described=forms.is_described(source), for_all=False, split=True)
    source = edit.replace_function(source, "run", text)
    source = edit.insert_before(edit.insert_before(source, NAME, forms.partial(form)), NAME, forms.finish(form))
    return _with_torch(edit.set_params(source, {"SPLITS": 4}))


def _described(context: AgentContext) -> str | None:
    source = context.incumbent.source
    return None if forms.is_described(source) or _form(source) is None else _with_descriptors(source, for_all=False)


def _described_for_all(context: AgentContext) -> str | None:
    """After descriptors for many rows; in one step only where those alone were not kept."""
    source = context.incumbent.source
    tried = any(attempt.hypothesis.split("@")[0] == "descriptors" for attempt in context.attempts)
    if _form(source) is None or not (tried or forms.is_described(source)):
        return None
    return edit.set_params(_with_descriptors(source, for_all=True), _by_bucket(LONG, DEEPER, LARGE))


def _with_descriptors(source: str, *, for_all: bool) -> str:
    text = forms.run_text(described=True, for_all=for_all, split=forms.is_split(source))
    new = not forms.is_described(source)
    source = edit.replace_function(source, "run", text)
    if not new:
        return source
    head = "import triton.language as tl\n"
    source = _with_torch(edit.insert_before(source, "run", forms.KERNEL_DESCRIBED))
    return source.replace(head, head + DESCRIPTOR, 1)


def _with_torch(source: str) -> str:
    head = "import triton\n"
    return source if "import torch\n" in source else source.replace(head, f"import torch\n{head}", 1)


def _measured(before: Rows, after: Rows, *, described: Rows | None = None) -> Callable[[AgentContext], float]:
    """The gain of what turns the times ``before`` into those ``after``; ``described`` stands for ``before`` where
    many rows go by descriptors already."""
    def model(context: AgentContext) -> float:
        from harness.evaluation.arithmetic import values_for

        first = described if described is not None and forms.is_described(context.incumbent.source) else before
        ratios = {key: first[key] / after[key] for key in after}

        def speedup(dims: Dims) -> float:
            return float(values_for({"ratio": ratios}, dims, context.spec.buckets)["ratio"])

        return over_shapes(context, speedup)
    return model


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone.

    Predictions of descriptors and of the root come from times on an H200. The judge called whole steps 15.8 % and
    split sums 10.5 % slower than tables: of them, of bands and of other tiles little is expected."""
    return [
        Move("tiles-by-rows", Direction.TILING, NAME, Tier.LIGHT,
             "Tiles by the number of rows: 128 x 256 for many (each value loaded counts 128 or 256 times, and eight "
             "warps hold the accumulator in 128 registers a thread), 64 x 128 for some, so that 128 programs share "
             "1024 x 1024, 32 x 128 six stages deep for few, where b is all that moves.",
             "tiles, warps and stages as tables over rows", 0.8, 2.0, _values(_by_bucket(FLAT, DEEP, LARGE)),
             evidence="tunables", basis="bytes"),
        Move("square-tiles", Direction.TILING, NAME, Tier.LIGHT,
             "128 x 128 tiles with steps of 64 and eight warps everywhere: a quarter of the loads per product. Tables "
             "over rows are better, so that it stands in for them alone.",
             "128 x 128 x 64, 8 warps, 3 stages", 0.6, 1.2, _values(SQUARE), evidence="tunables", basis="bytes"),
        Move("descriptors", Direction.LAYOUT, NAME, Tier.HEAVY,
             "Where there are many rows, one program per multiprocessor walks over tiles that tensor descriptors bring "
             "in, with the epilogue in halves and GELU by a power of two and a root: a single thread starts each copy, "
             "so that addresses take no registers, and the next tile's loads run under the stores. Rows or bases that "
             "are no multiples of 16 bytes keep the other kernel, and so does float32, whose tiles would not fit.",
             "persistent programs, tiles by tensor descriptors", 0.3, 0.03,
             _described, basis="latency", model=_measured(TABLES, LARGE_DESCRIBED)),
        Move("descriptors-for-all", Direction.LAUNCH, DESCRIBED, Tier.HEAVY,
             "Descriptors for fewer rows too: every thread of a small problem waits for the addresses and predicates "
             "of its own copies, a descriptor's copies have neither, and three steps of 128 terms are under way while "
             "a fourth is multiplied.", "tiles by tensor descriptors whatever the number of rows", 0.3, 0.05,
             _described_for_all, basis="latency",
             model=_measured(TABLES, ALL_DESCRIBED, described=LARGE_DESCRIBED)),
        Move("powers-of-two", Direction.PRECISION, NAME, Tier.MEDIUM,
             "GELU as s / (1 + 2^(s (c + d s^2))) with the constants folded and the quotient as the square of a "
             "reciprocal root: about ten instructions less per result, none for denormals, none for the quotient's "
             "range, while the tensor cores wait.", "GELU by a power of two and a reciprocal root", 0.2, 0.02,
             _body(two=True), model=_measured(TABLES, ROOT, described={**TABLES, "many": ROOT["many"]})),
        Move("bands", Direction.LAYOUT, NAME, Tier.MEDIUM,
             f"Walk the tiles in bands of {forms.BAND} tile rows: programs that run together then share rows of a and "
             "columns of b in the L2 cache.", f"tiles in bands of {forms.BAND} rows", 0.2, 0.006, _body(banded=True),
             evidence="profile.bytes"),
        Move("whole-steps", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Take whole steps without masks: rows and columns past the end are wrapped around, the last step alone "
             "is masked. Loads then need no predicates. Risk: what is wrapped around is a remainder per row, and the "
             "compiler no longer knows that neighbours are neighbours.",
             "unmasked whole steps, a masked rest", 0.1, 0.002, _body(peeled=True), basis="latency"),
        Move("split-sums", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split long sums over up to four programs where a shape has fewer tiles than two per multiprocessor, and "
             "add the parts, the bias and GELU in a second kernel. Risk: it costs a launch and the parts' traffic.",
             "sums split over programs where tiles are few, then a finishing kernel", 0.1, 0.002, _split,
             evidence="hardware.multiprocessors"),
        Move("four-stages", Direction.PIPELINING, DESCRIBED, Tier.LIGHT,
             "Four steps in shared memory where there are many rows: 192 KB of tiles and 32 KB of results fit, and a "
             "late copy is waited for less often.", "4 stages for many rows", 0.1, 0.003,
             _for_many({"num_stages": 4}, described=True), evidence="tunables"),
        Move("tall-tiles", Direction.TILING, NAME, Tier.LIGHT,
             "256 x 128 tiles where there are many rows: as few loads per product as 128 x 256, with twice the rows of "
             "a for every column of b. Risk: all 255 registers of a thread are taken.",
             "256 x 128 tiles for many rows", 0.1, 0.001, _for_many(TALL), evidence="tunables", basis="bytes"),
        value_move(context, NAME, "num_stages", 4, what="loads run further ahead of the products", reach=0.2, most=0.08,
                   direction=Direction.PIPELINING, applies=_one_value("num_stages")),
        value_move(context, NAME, "num_stages", 3, what="loads run further ahead of the products", reach=0.2, most=0.1,
                   direction=Direction.PIPELINING, applies=_one_value("num_stages")),
        value_move(context, NAME, "num_warps", 8, what="the accumulator spread over more threads", reach=0.1, most=0.05,
                   direction=Direction.OCCUPANCY, applies=_one_value("num_warps")),
        value_move(context, NAME, "BLOCK_K", 64, what="half as many steps", reach=0.2, most=0.15,
                   applies=_one_value("BLOCK_K")),
    ]
