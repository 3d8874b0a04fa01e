"""Strategies for swiglu on Triton: what a row's loop does, what the cache is told, and what a program works on."""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import swiglu_kernels as kernels
from harness.agents.playbook.arithmetic import fill, over_shapes
from harness.agents.playbook.move import Move
from harness.agents.playbook.row_moves import less_traffic, table
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = kernels.NAME


def _by_rows(source: str) -> bool:
    form = kernels.form_of(source)
    return form is not None and form.grid == "rows"


def _flat(source: str) -> bool:
    form = kernels.form_of(source)
    return form is not None and form.grid == "flat"


def _form(applies: Callable[[str], bool], **change: object) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        return kernels.to(source, **change) if applies(source) else None
    return transform


def _grid(grid: kernels.Grid) -> Callable[[AgentContext], str | None]:
    return lambda context: kernels.regrid(context.incumbent.source, grid)


def _all_multiprocessors(context: AgentContext) -> float:
    """Few rows leave multiprocessors without a program where a program is a row."""
    return over_shapes(context, lambda dims: 1.0 / fill(dims["rows"], context))


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("flat-grid", Direction.LAUNCH, NAME, Tier.HEAVY,
             "Give every program one block of the arrays taken flat instead of a whole row: no loop waits for one "
             "block before it asks for the next, and the 32 rows of a decode batch, a program each, no longer leave "
             "three multiprocessors in four without work.",
             "one block of the flat arrays per program", 1.0, 0.3, _grid("flat"), basis="occupancy",
             model=_all_multiprocessors, evidence="hardware.multiprocessors"),
        Move("streaming", Direction.LAYOUT, NAME, Tier.MEDIUM,
             "Tell the L2 cache that gate, up and out are used once (evict_first): lines of the output make way "
             "without pushing out what is on its way.",
             "gate, up and out marked evict_first", 1.0, 0.01, _form(lambda _: True, hints=True),
             model=less_traffic(0.99), evidence="profile.bytes"),
        Move("paired-steps", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "Ask for two blocks in every step of a row's loop before either is used: a program waits for memory half "
             "as often.",
             "two blocks per step, all loads first", 1.0, 0.1, _form(_by_rows, step="paired")),
        Move("staged-steps", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "Let the compiler bring the next two blocks of a row into shared memory while one is worked on. Risk: "
             "every value then goes through shared memory as well, and other programs hide the wait already.",
             "the row's loop in three stages", 0.5, 0.05, _form(_by_rows, step="staged")),
        Move("fast-sigmoid", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Take the exponential of two of a scaled gate and divide approximately: fewer instructions and a few "
             "roundings of float32 more, far below one of half precision. The kernel waits for memory, so little is "
             "expected.",
             "exp2 and an approximate division", 0.1, 0.005, _form(lambda _: True, fast=True)),
        Move("staying-grid", Direction.OCCUPANCY, NAME, Tier.HEAVY,
             "Start eight programs per multiprocessor that stay and take one block after the other: no block pays for "
             "its program's start. Risk: a program asks for its next block only when one is stored.",
             "a grid that stays, one block after the other", 0.2, 0.02, _grid("staying"), basis="latency",
             evidence="hardware.multiprocessors"),
        table(context, NAME, "wide-steps", {"BLOCK": {"decode": 4096, "chunk": 4096, "prefill": 4096},
                                            "num_warps": {"decode": 16, "chunk": 16, "prefill": 16}},
              text="Let a step of a row's loop take 4096 columns with 16 warps: a row's program waits for memory a "
              "quarter as often, with as many loads a thread.", direction=Direction.TILING, basis="latency",
              model=lambda now: over_shapes(now, lambda dims: 2.0 if dims["rows"] <= 128 else 1.02), applies=_by_rows),
        table(context, NAME, "small-for-few", {"BLOCK": {"decode": 512, "chunk": 1024, "prefill": 2048},
                                               "num_warps": {"decode": 2, "chunk": 4, "prefill": 8}},
              text="Let the block grow with the problem, eight elements a thread throughout: few rows spread over more "
              "programs, many start fewer of them.", direction=Direction.TILING, basis="occupancy",
              model=lambda now: 0.01, applies=_flat),
        value_move(context, NAME, "num_warps", 8, what="half the elements a thread, more threads resident", reach=0.2,
                   most=0.05, direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK", 2048, what="twice the elements a thread, twice the loads under way",
                   reach=0.2, most=0.04),
        value_move(context, NAME, "num_warps", 2, what="programs of two warps are quicker to start", reach=0.1,
                   most=0.01, direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK", 512, what="smaller programs end closer together", reach=0.1, most=0.01),
    ]
