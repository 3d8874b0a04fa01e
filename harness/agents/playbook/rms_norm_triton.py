"""Strategies for rms_norm on Triton: launch values per bucket, rows in registers, streaming, further ways to launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.agents.playbook import edit
from harness.agents.playbook import rms_norm_kernels as kernels
from harness.agents.playbook.arithmetic import from_traffic
from harness.agents.playbook.move import Move
from harness.agents.playbook.row_moves import less_traffic, one_wait_less, table, wide_rows
from harness.agents.playbook.row_runs import Launches, Path, run_text
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = kernels.NAME
BLOCKS = {"short": 1024, "medium": 4096, "long": 8192}
WARPS = {"short": 4, "medium": 8, "long": 16}
"""Measured on an H200: 8 warps are best for rows of 4096 columns, 16 for rows of 8192."""


def _kept(source: str) -> bool:
    form = kernels.form_of(source)
    return form is not None and form.kept


def _one_width(source: str) -> bool:
    return _kept(source) and isinstance(edit.params(source).get("BLOCK"), int)


def _plain(source: str) -> bool:
    return kernels.form_of(source) is not None and not _kept(source)


def _keep(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _plain(source):
        return None
    tunable = context.spec.tunable("BLOCK", context.goal.backend)
    block = min(8192, tunable.high) if tunable else 8192
    return edit.set_params(edit.replace_body(source, NAME, kernels.body(kernels.Form(kept=True))),
                           {"BLOCK": block, "num_warps": 8})


def _form(**change: bool) -> Callable[[AgentContext], str | None]:
    """A transform to another form of rows in registers, where no kernel of their own takes these rows."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        form = kernels.form_of(source)
        if form is None or not form.kept or kernels.launches_of(source) != Launches():
            return None
        if replace(form, **change) == form:
            return None
        return edit.replace_body(source, NAME, kernels.body(replace(form, **change)))
    return transform


def _split(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if kernels.form_of(source) is None or kernels.launches_of(source) != Launches():
        return None
    changed = edit.replace_function(source, NAME, kernels.SPLIT)
    changed = edit.insert_before(edit.replace_function(changed, "run", kernels.SPLIT_RUN), NAME, kernels.PARTIAL)
    changed = edit.set_params(changed, {"BLOCK": 1024, "num_warps": 4})
    return changed.replace("import triton\n", "import torch\nimport triton\n", 1)


def _add(function: str, path: Path, params: Mapping[str, object]) -> Callable[[AgentContext], str | None]:
    """A transform that adds a kernel for rows that fit one block: ``own`` beside the loops, the others beside it."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if kernels.launches_of(source) != Launches("loops" if path == "own" else "own") or not _kept(source):
            return None
        changed = edit.replace_function(source, "run", run_text(Launches(path), kernels.TEXTS))
        changed = edit.insert_before(changed, "run", function)
        return edit.set_params(changed, params) if params else changed
    return transform


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("one-read", Direction.FUSION, NAME, Tier.MEDIUM,
             "Keep a row that fits one block in registers between the sum and the scaling: x is read once instead of "
             "twice, two thirds of the traffic, and no loop runs. Longer rows take the loops as before.",
             "rows of up to BLOCK columns stay in registers; BLOCK 8192, 8 warps", 0.5, from_traffic(3, 2), _keep,
             evidence="profile.bytes"),
        Move("early-weight", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "Ask for the weight before the row is summed up: a block with nothing else to run then waits for memory "
             "once instead of twice, about 0.7 us of a call with few rows. Costs registers while the sum is made.",
             "weight loaded before the sum", 1.0, 0.1, _form(early=True), model=one_wait_less,
             evidence="profile.median_us"),
        Move("late-weight", Direction.OCCUPANCY, NAME, Tier.MEDIUM,
             "Ask for the weight after the sum: it lies in the cache after the first rows and costs no registers while "
             "the sum is made, so that more blocks are resident.", "weight loaded after the sum", 0.2, 0.02,
             _form(early=False)),
        Move("streaming", Direction.LAYOUT, NAME, Tier.MEDIUM,
             "Tell the L2 cache that x and out are used once (evict_first): lines of the output make way without "
             "pushing out what is still needed. About a twentieth of the traffic is written back and read again.",
             "x and out marked evict_first", 1.0, 0.05, _form(hints=True), model=less_traffic(0.95),
             evidence="profile.bytes"),
        Move("whole-rows", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Leave the masks out where a row fills its block: a comparison and a predicate less for every load and "
             "store, and fewer registers live. Needs BLOCK as wide as the rows.",
             "no masks where cols equals BLOCK", 0.3, 0.01, _form(whole=True), basis="latency"),
        table(context, NAME, "row-tables", {"BLOCK": BLOCKS, "num_warps": {"short": 4, "medium": 8, "long": 8}},
              text="Let BLOCK be as wide as the rows of each bucket: rows of 4096 columns leave half of 8192 lanes "
              "without work and registers.", direction=Direction.TILING, basis="occupancy",
              model=lambda now: wide_rows(now, 4096, 0.1), applies=_one_width),
        table(context, NAME, "more-warps", {"num_warps": WARPS},
              text="Give rows of 8192 columns 16 warps: two loads a thread instead of four, half the registers, so "
              "that the multiprocessor is full of threads.", direction=Direction.OCCUPANCY, basis="occupancy",
              model=lambda now: 0.01, applies=_kept),
        table(context, NAME, "fewer-warps", {"num_warps": {"short": 1, "medium": 4, "long": 4}},
              text="Fewer warps a row: a sum over fewer warps waits less at its barrier, and every thread has more "
              "loads under way.", direction=Direction.OCCUPANCY, basis="latency",
              model=lambda now: 0.008, applies=_kept),
        Move("split-reduction", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split each row over several programs, store partial sums, combine them in a second kernel: few long rows "
             "then fill the device. Costs a second read of x and a launch of about 2.5 us.",
             "partial sums over splits, then a combining kernel", 0.05, 0.05, _split,
             evidence="hardware.multiprocessors"),
        Move("row-kernel", Direction.OCCUPANCY, "_rms_norm_row", Tier.HEAVY,
             "Give rows that fit a block a kernel of their own: without the loops for longer rows its threads hold "
             "fewer registers (39 instead of 40 or more at 16 warps), so that more blocks are resident, and masks "
             "go where the row fills the block. BLOCK and warps are those of each bucket's rows.",
             "a kernel of its own for rows of up to BLOCK columns, launch values by bucket", 0.5, 0.03,
             _add(kernels.OWN, "own", {"BLOCK": BLOCKS, "num_warps": WARPS})),
        Move("rows-together", Direction.VECTORISATION, "_rms_norm_rows", Tier.HEAVY,
             "Give a program two rows of 8192 columns, four short ones: the weight is read less often, the sums share "
             "a barrier, and half as many blocks are started.",
             "a kernel for several rows per program, two long or four short ones", 0.1, 0.01,
             _add(kernels.TOGETHER, "together", {"ROWS": {"short": 4, "medium": 1, "long": 2}})),
        Move("rows-ahead", Direction.PIPELINING, "_rms_norm_ahead", Tier.HEAVY,
             "A grid of two programs per multiprocessor that stays, each with the next row on its way while this one "
             "is summed up: no block is started more than once.", "a persistent grid, one row ahead", 0.1, 0.015,
             _add(kernels.AHEAD, "ahead", {}), basis="latency"),
        value_move(context, NAME, "BLOCK", 4096, what="fewer loop steps, wider loads", reach=0.2, most=0.12,
                   applies=_plain),
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.2, most=0.1,
                   direction=Direction.OCCUPANCY, applies=_plain),
        value_move(context, NAME, "BLOCK", 2048, what="fewer loop steps", reach=0.2, most=0.08, applies=_plain),
        value_move(context, NAME, "BLOCK", 32768, what="a whole row per step whatever its length. Risk: the row may "
                   "not fit the registers", reach=0.2, most=0.01),
    ]
