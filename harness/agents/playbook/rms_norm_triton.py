"""Strategies for rms_norm on Triton: launch values per bucket, rows in registers, results that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.agents.playbook import edit
from harness.agents.playbook import rms_norm_kernels as kernels
from harness.agents.playbook.arithmetic import from_traffic
from harness.agents.playbook.move import Move
from harness.agents.playbook.row_moves import STAYS, long_rows, one_wait_less, table, wide_rows
from harness.agents.playbook.row_runs import Launches, Path, run_text
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = kernels.NAME
BLOCKS = {"short": 1024, "medium": 4096, "long": 8192}
WARPS = {"short": 4, "medium": 8, "long": 4}
"""Measured on an H200, 8192x8192, results marked evict-last: 63.7 us with 4 warps, 68.5 with 8, 88 with 16; unmarked
66.8 with 4, 67.6 with 8. 4096x4096: 19.9 us with 4 and with 8."""
LANES_IDLE = 0.16
"""Measured on an H200: the gain of 4096x4096 from a BLOCK as wide as its rows instead of 8192."""


def _kept(source: str) -> bool:
    form = kernels.form_of(source)
    return form is not None and form.kept


def _one_width(source: str) -> bool:
    return _kept(source) and isinstance(edit.params(source).get("BLOCK"), int)


def _stayed(source: str) -> bool:
    form = kernels.form_of(source)
    return form is not None and form.stays


def _unmarked(source: str) -> bool:
    return _kept(source) and not _stayed(source)


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


def _form(params: Mapping[str, object] | None = None, **change: bool) -> Callable[[AgentContext], str | None]:
    """A transform to another form of rows in registers, where no kernel of their own takes these rows."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        form = kernels.form_of(source)
        if form is None or not form.kept or kernels.launches_of(source) != Launches():
            return None
        if replace(form, **change) == form:
            return None
        changed = edit.replace_body(source, NAME, kernels.body(replace(form, **change)))
        return edit.set_params(changed, params) if params else changed
    return transform


def _stays_gain(context: AgentContext) -> float:
    """Measured on an H200 with the weight before the sum: 66.8 to 63.7 us at 8192x8192, nothing at 4096x4096 but for
    lanes that were idle; what the weight's wait takes comes on top where it is not there yet."""
    source = context.incumbent.source
    form = kernels.form_of(source)
    wait = one_wait_less(context) if form is not None and not form.early else 0.0
    return (1.0 + long_rows(context, 0.047, LANES_IDLE if _one_width(source) else 0.0)) * (1.0 + wait) - 1.0


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
        Move("results-stay", Direction.LAYOUT, NAME, Tier.MEDIUM,
             STAYS + " BLOCK and warps are those of each bucket's rows, the "
             "weight comes before the sum; rows longer than BLOCK are read twice in blocks of 2048, the first time to "
             "stay.",
             "long rows' results marked evict_last, weight before the sum; BLOCK and num_warps by bucket", 1.0, 0.2,
             _form({"BLOCK": BLOCKS, "num_warps": WARPS}, stays=True, early=True), model=_stays_gain,
             evidence="profile.bytes"),
        Move("whole-rows", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Leave the masks out where a row fills its block: a comparison and a predicate less for every load and "
             "store, and fewer registers live. Needs BLOCK as wide as the rows.",
             "no masks where cols equals BLOCK", 0.1, 0.002, _form(whole=True), basis="latency"),
        table(context, NAME, "row-tables", {"BLOCK": BLOCKS, "num_warps": {"short": 4, "medium": 8, "long": 8}},
              text="Let BLOCK be as wide as the rows of each bucket: rows of 4096 columns leave half of 8192 lanes "
              "without work and registers.", direction=Direction.TILING, basis="occupancy",
              model=lambda now: wide_rows(now, 4096, LANES_IDLE), applies=_one_width),
        table(context, NAME, "medium-twice", {"BLOCK": {"short": 1024, "medium": 2048, "long": 8192},
                                              "num_warps": {"short": 4, "medium": 4, "long": 4}},
              text="Read rows of 2049 to 4096 columns twice, in blocks of 2048: more blocks are resident, and the "
              "second read comes from the cache. Measured so with constant columns: 19.5 instead of 19.9 us.",
              direction=Direction.TILING, basis="occupancy", model=lambda now: wide_rows(now, 4096, 0.02),
              applies=_stayed),
        table(context, NAME, "fewer-warps", {"num_warps": {"short": 1, "medium": 4, "long": 4}},
              text="Fewer warps a row: a sum over fewer warps waits less at its barrier, and every thread has more "
              "loads under way.", direction=Direction.OCCUPANCY, basis="latency",
              model=lambda now: long_rows(now, 0.012), applies=_unmarked),
        Move("split-reduction", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split each row over several programs, store partial sums, combine them in a second kernel: few long rows "
             "then fill the device. Costs a second read of x and a launch of about 2.5 us.",
             "partial sums over splits, then a combining kernel", 0.05, 0.005, _split,
             evidence="hardware.multiprocessors"),
        Move("row-kernel", Direction.OCCUPANCY, "_rms_norm_row", Tier.HEAVY,
             "Give rows that fit a block a kernel of their own, long ones 8 warps of at most 64 registers a thread: "
             "few rows wait less than with 4 warps, and as many of many rows are resident. Measured on an H200: 64.3 "
             "us at 8192x8192, 63.7 with 4 warps.",
             "a kernel of its own for rows of up to BLOCK columns, 8 warps of at most 64 registers", 0.1, 0.004,
             _add(kernels.OWN, "own", {"BLOCK": BLOCKS, "num_warps": 8})),
        Move("rows-together", Direction.VECTORISATION, "_rms_norm_rows", Tier.HEAVY,
             "Give a program two rows of 4096 columns, four short ones: the weight is read less often, the sums share "
             "a barrier, and half as many blocks are started. Measured on an H200: 19.7 instead of 19.9 us.",
             "a kernel for several rows per program, two of up to 4096 columns or four short ones", 0.1, 0.004,
             _add(kernels.TOGETHER, "together", {"ROWS": {"short": 4, "medium": 2, "long": 1}})),
        value_move(context, NAME, "BLOCK", 4096, what="fewer loop steps, wider loads", reach=0.2, most=0.12,
                   applies=_plain),
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.2, most=0.1,
                   direction=Direction.OCCUPANCY, applies=_plain),
        value_move(context, NAME, "BLOCK", 2048, what="fewer loop steps", reach=0.2, most=0.08, applies=_plain),
        value_move(context, NAME, "BLOCK", 32768, what="a whole row per step whatever its length. Risk: the row may "
                   "not fit the registers", reach=0.05, most=0.002),
    ]
