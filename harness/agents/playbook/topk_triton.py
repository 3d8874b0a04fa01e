"""Strategies for topk on Triton: fewer and narrower looks at the row, then a threshold from the maxima of groups.

Figures named here were measured on an H200 (2026-11-29, bfloat16, flushed): reading 4096 x 32,000 values takes 60 us at
the roof and 8192 x 128,256 values 482 us; the shipped kernel reads every row about 18 times.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.playbook.topk_kernels import (
    BISECTION,
    BOUNDED,
    FEW_ROWS,
    FOUR_PARTS,
    GROUPS,
    GROUPS_RUN,
    IN_REGISTERS,
    SEARCH,
    START,
)
from harness.agents.playbook.values import table_move, value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_topk"
ARGUMENTS = ("x", "values", "indices", "found", "x_stride", "cols", "k", "BITS", "BLOCK", "KEPT")
WIDTH = "    width = 256 * warps\n"
NOTHING, HELD = "tl.zeros([BLOCK], tl.int32)", "((held >= middle) & inside).to(tl.int32)"
FROM_FIRST, BEHIND = "range(0, cols, BLOCK)", "range(BLOCK, cols, BLOCK)"


def _fits(source: str) -> bool:
    return edit.argument_names(source, NAME) == ARGUMENTS


def _plain(source: str) -> bool:
    return _fits(source) and "held" not in edit.body_text(source, NAME)


def _grouped(source: str) -> bool:
    return "STEPS" in edit.params(source) and "PASSES" in source


def _search(start: str, loop: str, values: dict[str, int]) -> Callable[[AgentContext], str | None]:
    """Another search for the k-th largest in the shipped kernel, with the launch values that it is made for."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not _fits(source) or source.count(START + SEARCH) != 1:
            return None
        return edit.set_params(source.replace(START + SEARCH, start + loop), values)
    return transform


def _groups(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source):
        return None
    changed = edit.replace_function(source, NAME, GROUPS)
    changed = edit.replace_function(changed, "run", GROUPS_RUN)
    return _with_params(changed, {"STEPS": 8, "GROUPS": 16, "num_warps": 4})


def _with_params(source: str, values: dict[str, int]) -> str:
    """``source`` with these PARAMS and no others."""
    line = next(line for line in source.split("\n") if line.startswith("PARAMS = "))
    return edit.set_params(source.replace(line, "PARAMS = {}", 1), values)


def _exchange(old: str, new: str) -> Callable[[AgentContext], str | None]:
    """One part of the kernel of groups for another."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not _grouped(source) or new in source or source.count(old) != 1:
            return None
        return source.replace(old, new)
    return transform


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("group-maxima", Direction.ALGORITHM, NAME, Tier.HEAVY,
             "Read each row once and keep the largest value of every group of 64. The k-th largest of these is no "
             "larger than the k-th largest value, so only groups that reach it need a second look: about k of them in "
             "ordinary rows. Their values above the bound are packed with their columns and ranked by counting. Rows "
             "with more ties than fit are bisected as before. Bytes fall from about 18 reads of a row to little more "
             "than one.",
             "threshold from maxima of groups; 8 loads in flight, 4 warps", 1.0, 9.0, _groups,
             evidence="profile.bytes", basis="bytes"),
        Move("bounded-search", Direction.ALGORITHM, NAME, Tier.MEDIUM,
             "One read for the maximum of every lane first: the k-th largest of them bounds the k-th largest value "
             "from below, and the bisection of the row starts there instead of at the smallest number. About 10 reads "
             "of a row instead of 18.",
             "bisection between the k-th lane maximum and the maximum", 0.6, 0.7,
             _search(BOUNDED, SEARCH, {"BLOCK": 4096, "num_warps": 8}),
             evidence="profile.bytes", basis="bytes"),
        Move("keys-in-registers", Direction.FUSION, NAME, Tier.MEDIUM,
             "Hold the first 8,192 keys of a row in registers, 16 a thread, so that a bisection step reads only what "
             "is behind them: a quarter of a row of 32,000. More of them would spill in the scans that collect.",
             "first BLOCK keys held in registers; BLOCK 8192, 16 warps", 0.3, 0.15,
             _search(IN_REGISTERS + START, SEARCH.replace(NOTHING, HELD).replace(FROM_FIRST, BEHIND),
                     {"BLOCK": 8192, "num_warps": 16}), evidence="profile.bytes", basis="bytes"),
        Move("four-parts", Direction.ALGORITHM, NAME, Tier.MEDIUM,
             "Count at three bounds at once in the search among the groups' maxima: half as many rounds, each of which "
             "waits for all warps. They hold little data, so little is predicted.",
             "bounds searched four parts at a time", 0.1, 0.02, _exchange(BISECTION, FOUR_PARTS), basis="latency"),
        Move("few-rows", Direction.LAUNCH, NAME, Tier.HEAVY,
             "Give each row twice the warps where there are no more than 256 rows: a decode batch leaves most "
             "multiprocessors empty, and then the time of one row is what counts.",
             "twice the warps for few rows", 0.3, 0.08, _exchange(WIDTH, FEW_ROWS + WIDTH), basis="latency"),
        value_move(context, NAME, "BLOCK", 8192, what="fewer loop steps, more loads in flight", reach=0.2, most=0.1,
                   applies=_plain),
        value_move(context, NAME, "num_warps", 16, what="more loads in flight per row", reach=0.2, most=0.08,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "num_warps", 4, what="fewer threads wait at every reduction, more rows are resident",
                   reach=0.2, most=0.06, direction=Direction.OCCUPANCY, applies=_plain),
        value_move(context, NAME, "BLOCK", 2048, what="less work in the last step of a row", reach=0.1, most=0.03,
                   applies=_plain),
        value_move(context, NAME, "STEPS", 4, what="smaller groups: fewer values to look at again, more maxima to "
                   "search", reach=0.2, most=0.05),
        value_move(context, NAME, "GROUPS", 32, what="fewer rounds over the groups hit. Risk: registers", reach=0.1,
                   most=0.02),
        value_move(context, NAME, "num_warps", 8, what="half the time for one row, fewer rows resident", reach=0.1,
                   most=0.02, direction=Direction.OCCUPANCY, applies=_grouped),
        _steps_table(context),
        table_move(context, NAME, "num_warps", reach=0.1, most=0.03, applies=_plain),
    ]


def _steps_table(context: AgentContext) -> Move:
    """Small groups for rows that have few of them, large ones for long rows."""
    def transform(now: AgentContext) -> str | None:
        source = now.incumbent.source
        table = {"short": 4, "medium": 4, "long": 8}
        if not _grouped(source) or edit.params(source)["STEPS"] == table:
            return None
        return edit.set_params(source, {"STEPS": table})

    return Move("steps-table", Direction.TILING, NAME, Tier.LIGHT,
                "Groups of 32 up to 65,536 columns, of 64 beyond: the number of maxima stays near 1,000 to 2,000, few "
                "enough to search and many enough for a tight bound.",
                "STEPS as a table over shape buckets", 0.3, 0.07, transform, evidence="tunables")
