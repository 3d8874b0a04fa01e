"""Strategies for softmax on Triton: launch values per bucket, rows in registers, results that stay, long rows split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.agents.playbook import edit
from harness.agents.playbook import softmax_kernels as kernels
from harness.agents.playbook.arithmetic import LAUNCH_US, call_us, fill, from_traffic, over_shapes
from harness.agents.playbook.move import Move
from harness.agents.playbook.row_moves import STAYS, long_rows, table, wide_rows
from harness.agents.playbook.row_runs import Path, run_text
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier
from harness.operators.base import Dims

NAME = kernels.NAME
BLOCKS = {"short": 1024, "medium": 4096, "long": 8192, "vocabulary": 8192}
WARPS = {"short": 4, "medium": 8, "long": 8, "vocabulary": 8}
"""Measured on an H200, 8192x8192, results marked evict-last: 63.9 us with 8 warps, 64.4 with 4, 66.1 with 16; unmarked
66.4 with 8. Rows of 4096 columns and parts of a vocabulary take 8."""
LANES_IDLE = 0.44
"""Measured on an H200: the gain of 4096x4096 from a BLOCK as wide as its rows instead of 8192."""
SPLIT_PARTS = 32


def _kept(source: str) -> bool:
    form = kernels.form_of(source)
    return form is not None and form.kept


def _one_width(source: str) -> bool:
    return _kept(source) and isinstance(edit.params(source).get("BLOCK"), int)


def _plain(source: str) -> bool:
    return kernels.form_of(source) is not None and not _kept(source)


def _form(params: Mapping[str, object] | None = None, *, of_kept: bool = False, **change: Any
          ) -> Callable[[AgentContext], str | None]:
    """A transform to another form of the body; ``of_kept`` is about rows in registers and applies where no kernel of
    their own takes them."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        form, launches = kernels.form_of(source), kernels.launches_of(source)
        if form is None or launches is None or replace(form, **change) == form:
            return None
        if of_kept and (not form.kept or launches.path != "loops"):
            return None
        changed = edit.replace_body(source, NAME, kernels.body(replace(form, **change)))
        return edit.set_params(changed, params) if params else changed
    return transform


def _split(context: AgentContext) -> str | None:
    source = context.incumbent.source
    now = kernels.launches_of(source)
    if now is None or now.split:
        return None
    changed = edit.replace_function(source, "run", run_text(replace(now, split=True), kernels.TEXTS))
    changed = edit.insert_before(edit.insert_before(changed, "run", kernels.PARTIAL), "run", kernels.COMBINE)
    changed = edit.set_params(changed, {"PARTS": SPLIT_PARTS})
    return changed.replace("import triton\n", "import torch\nimport triton\n", 1)


def _add(function: str, path: Path, params: Mapping[str, object]) -> Callable[[AgentContext], str | None]:
    """A transform that adds a kernel for rows that fit one block: ``own`` beside the loops, the others beside it."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        now = kernels.launches_of(source)
        if now is None or now.path != ("loops" if path == "own" else "own") or not _kept(source):
            return None
        changed = edit.replace_function(source, "run", run_text(replace(now, path=path), kernels.TEXTS))
        changed = edit.insert_before(changed, "run", function)
        return edit.set_params(changed, params) if params else changed
    return transform


def _filled(context: AgentContext) -> float:
    """The gain of spreading few long rows over the device: the time is divided by the share of it that had work, one
    more read of x (from the cache) and one more launch are paid for."""
    def speedup(dims: Dims) -> float:
        us, busy = call_us(context, dims), fill(dims["rows"], context)
        return max(1.0, us / (us * busy + LAUNCH_US)) if busy < 1.0 and dims["cols"] > 16384 else 1.0

    return over_shapes(context, speedup)


def _stays_gain(context: AgentContext) -> float:
    """Measured on an H200: 66.6 to 63.9 us at 8192x8192, nothing at 4096x4096 but for lanes that were idle."""
    return long_rows(context, 0.042, LANES_IDLE if _one_width(context.incumbent.source) else 0.0)


def _fewer_reads(context: AgentContext) -> float:
    """The gain of three quarters of the traffic on the rows that still take the loops."""
    source = context.incumbent.source
    now = kernels.launches_of(source)
    split, kept = now is not None and now.split, _kept(source)
    return over_shapes(context, lambda dims: from_traffic(4, 3) + 1.0 if not kept or (
        dims["cols"] > 16384 and not split) else 1.0)


def _split_has(source: str) -> bool:
    return "PARTS" in edit.params(source)


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("one-read", Direction.FUSION, NAME, Tier.MEDIUM,
             "Keep a row that fits one block and its exponentials in registers: x is read once instead of three times, "
             "half the traffic, each exponential is taken once, and no loop runs. Longer rows take the loops as "
             "before.",
             "rows of up to BLOCK columns stay in registers; BLOCK 8192, 8 warps", 0.6, from_traffic(4, 2),
             _form({"BLOCK": 8192, "num_warps": 8}, kept=True), evidence="profile.bytes"),
        Move("online-maximum", Direction.ALGORITHM, NAME, Tier.MEDIUM,
             "Find maximum and sum of a long row in one loop, rescaling the sum when the maximum grows: two reads of x "
             "instead of three, at the cost of one more exponential per element.",
             "running maximum and sum in one loop", 0.05, from_traffic(4, 3), _form(loops="online"),
             evidence="profile.bytes", basis="bytes", model=_fewer_reads),
        Move("one-division", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Divide once per row and multiply by the reciprocal: a division is about eight instructions, a product is "
             "one. Costs one more rounding in float32.", "one reciprocal per row", 0.1, 0.006,
             _form(of_kept=True, once=True), evidence="profile.flops"),
        Move("split-rows", Direction.SPLIT_REDUCTION, "_partial_softmax", Tier.HEAVY,
             f"Split each of few long rows over {SPLIT_PARTS} programs, each holding its part in registers, with a "
             "maximum and a sum per part; a second kernel combines them and writes. 32 rows leave three quarters of "
             "the multiprocessors without work. Costs one more launch and a second read of x, from the cache.",
             f"rows longer than a block over {SPLIT_PARTS} programs where there are at most 64 of them", 1.0, 0.4,
             _split, evidence="hardware.multiprocessors", model=_filled),
        Move("results-stay", Direction.LAYOUT, NAME, Tier.MEDIUM,
             STAYS + " BLOCK and warps are those of each bucket's rows.",
             "long rows' results marked evict_last; BLOCK 1024/4096/8192/8192 and num_warps 4/8/8/8 by bucket", 1.0,
             0.25, _form({"BLOCK": BLOCKS, "num_warps": WARPS}, of_kept=True, stays=True), model=_stays_gain,
             evidence="profile.bytes"),
        Move("whole-rows", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Leave the masks out where a row fills its block: a comparison and a predicate less for every load and "
             "store, and fewer registers live. Needs BLOCK as wide as the rows.",
             "no masks where cols equals BLOCK", 0.1, 0.002, _form(of_kept=True, whole=True), basis="latency"),
        table(context, NAME, "row-tables",
              {"BLOCK": BLOCKS, "num_warps": WARPS},
              text="Let BLOCK be as wide as the rows of each bucket: rows of 4096 columns leave half of 8192 lanes "
              "without work and registers.", direction=Direction.TILING, basis="occupancy",
              model=lambda now: wide_rows(now, 4096, LANES_IDLE), applies=_one_width),
        table(context, NAME, "fewer-warps", {"num_warps": {"short": 1, "medium": 4, "long": 4, "vocabulary": 8}},
              text="Fewer warps a row: maximum and sum over fewer warps wait less at their barriers, and every thread "
              "has more loads under way.", direction=Direction.OCCUPANCY, basis="latency",
              model=lambda now: 0.003, applies=_kept),
        value_move(context, "_partial_softmax", "PARTS", 64, what="shorter parts, twice the programs", reach=0.05,
                   most=0.003, applies=_split_has),
        value_move(context, "_partial_softmax", "PARTS", 16, what="fewer partial results to combine", reach=0.05,
                   most=0.003, applies=_split_has),
        Move("row-kernel", Direction.OCCUPANCY, "_softmax_row", Tier.HEAVY,
             "Give rows that fit a block a kernel of their own: without the loops for longer rows its threads hold no "
             "registers for them, so that more blocks may be resident. BLOCK and warps are those of each bucket's "
             "rows, results of long rows stay.",
             "a kernel of its own for rows of up to BLOCK columns, launch values by bucket", 0.1, 0.004,
             _add(kernels.OWN, "own", {"BLOCK": BLOCKS, "num_warps": WARPS})),
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.2, most=0.1,
                   direction=Direction.OCCUPANCY, applies=_plain),
        value_move(context, NAME, "BLOCK", 4096, what="fewer loop steps, wider loads", reach=0.2, most=0.12,
                   applies=_plain),
        value_move(context, NAME, "BLOCK", 2048, what="fewer loop steps", reach=0.2, most=0.08, applies=_plain),
        value_move(context, NAME, "BLOCK", 32768, what="a whole row per step whatever its length. Risk: the row may "
                   "not fit the registers", reach=0.05, most=0.002),
    ]
