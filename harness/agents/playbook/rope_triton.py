"""Strategies for rope on Triton: how often angles are read, how heads are reached, and what a program works on."""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook import rope_kernels as kernels
from harness.agents.playbook.arithmetic import measured_us, over_shapes
from harness.agents.playbook.move import Move
from harness.agents.playbook.row_moves import table
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier
from harness.operators.base import Dims

NAME = kernels.NAME
LAUNCH_US = 1.2
"""What one more kernel in a graph costs, about, where nothing else hides it."""
BYTES_PER_US = 4e6
"""Traffic of a full device, for shapes that were not timed."""


def _two(source: str) -> bool:
    form = kernels.form_of(source)
    return form is not None and form.launch == "two"


def _blocks(source: str) -> bool:
    form = kernels.form_of(source)
    return form is not None and form.launch == "blocks"


def _form(applies: Callable[[str], bool], **change: bool) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        return kernels.to(source, **change) if applies(source) else None
    return transform


def _launch(launch: kernels.Launch) -> Callable[[AgentContext], str | None]:
    return lambda context: kernels.relaunch(context.incumbent.source, launch)


def _one_launch(context: AgentContext) -> str | None:
    source = context.incumbent.source
    changed = kernels.relaunch(source, "blocks") if _two(source) else None
    return None if changed is None else edit.set_params(changed, {"BLOCK": 8, "num_warps": 2})


def _one_launch_less(context: AgentContext) -> float:
    """The gain of one launch less: nothing where a call takes long, a third or so of a decode step."""
    def speedup(dims: Dims) -> float:
        us = measured_us(context, dims) or 2 * LAUNCH_US + context.spec.bytes_per_call(dims, 2) / BYTES_PER_US
        return us / (us - LAUNCH_US) if us > 2 * LAUNCH_US else 1.0

    return over_shapes(context, speedup)


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("one-launch", Direction.FUSION, NAME, Tier.HEAVY,
             "Turn q and k in one launch, a program for every block of heads of one position: a decode step pays for "
             "one launch instead of two, heads of a program share one row of angles, and no index is divided for "
             "every head. Two warps for eight heads of 64 pairs make every load one of sixteen bytes.",
             "one launch, eight heads of one position per program, 2 warps", 1.0, 0.15, _one_launch, basis="latency",
             model=_one_launch_less, evidence="profile.median_us"),
        Move("shared-angles", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Load one row of angles for all heads of a program where BLOCK divides the number of heads: an eighth of "
             "the loads of angles from the first cache, fewer registers, and one division instead of one per head.",
             "angles loaded once per program where its heads share a position", 0.5, 0.05,
             _form(_two, shared=True)),
        Move("streaming", Direction.LAYOUT, NAME, Tier.MEDIUM,
             "Tell the L2 cache that heads are used once (evict_first) and keep the angles, which other programs read "
             "again.",
             "heads marked evict_first", 0.3, 0.01, _form(lambda _: True, hints=True), evidence="profile.bytes"),
        Move("whole-heads", Direction.LAYOUT, kernels.TURN, Tier.MEDIUM,
             "Load and store every head in one piece of 256 bytes instead of two halves of 128, and fetch the partner "
             "of each element by a second load from the first cache. Risk: twice the loads.",
             "heads in one piece, partners loaded again", 0.3, 0.03, _form(_blocks, whole=True)),
        Move("position-programs", Direction.TILING, NAME, Tier.HEAVY,
             "Give every program all heads of one position, BLOCK of them at a time: angles stay in registers or the "
             "first cache for all of them. Risk: a program waits for one block before it asks for the next.",
             "one program per position, all heads of q and k", 0.3, 0.03, _launch("positions"), basis="bytes"),
        Move("staying-grid", Direction.OCCUPANCY, NAME, Tier.HEAVY,
             "Start eight programs per multiprocessor that stay and take one position after the other: none pays for "
             "its start. Risk: fewer loads are under way at a time.",
             "a grid that stays, one position after the other", 0.1, 0.02, _launch("staying"), basis="latency",
             evidence="hardware.multiprocessors"),
        table(context, NAME, "small-programs", {"BLOCK": {"decode": 4, "chunk": 8, "long": 8},
                                                "num_warps": {"decode": 1, "chunk": 2, "long": 2}},
              text="Four heads and one warp in a decode step, whose few heads then spread over twice as many programs; "
              "eight heads and two warps elsewhere, so that every load is one of sixteen bytes.",
              direction=Direction.TILING, basis="latency", applies=lambda source: kernels.form_of(source) is not None,
              model=lambda now: over_shapes(now, lambda dims: 1.03 if dims["seq"] <= 16 else 1.0)),
        value_move(context, NAME, "num_warps", 2, what="sixteen bytes a load instead of eight, for eight heads of 64 "
                   "pairs", reach=0.3, most=0.06, direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK", 16, what="sixteen bytes a load, with as many threads", reach=0.3, most=0.05),
        value_move(context, NAME, "BLOCK", 32, what="all heads of a position in one program, four times the loads "
                   "under way. Risk: registers", reach=0.2, most=0.03),
        value_move(context, NAME, "num_warps", 1, what="no warp waits for another", reach=0.1, most=0.01,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK", 4, what="twice as many programs, half the registers", reach=0.1, most=0.01),
    ]
