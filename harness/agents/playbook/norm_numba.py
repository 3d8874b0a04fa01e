"""Strategies for normalisations of rows on numba: what the ladders of rms_norm, add_rms_norm and layer_norm share.

Bodies differ in how a row is summed (BLOCK lanes as shipped, row views, one plain loop, halves, blocks), in the order
of rows and in the numeric mode; each strategy changes one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

Transform = Callable[[AgentContext], str | None]
BLOCK = 512
"""Columns of a block where a strategy brings its own."""


@dataclass(frozen=True, slots=True)
class Norm:
    """One operator's texts. ``rows``: the views of a row; ``finish``: from its sums to its results; ``plain``,
    ``lanes``, ``halves`` and ``blocks``: ways to sum it, all indented as the body of the loop over rows. ``ahead`` and
    ``pairs`` are whole bodies with marks ``ahead`` and ``second``. ``sums``, ``columns`` and ``run``: two kernels, the
    first of which stores one ``scales`` per row; ``{options}`` is for its decorator."""

    name: str
    arguments: tuple[str, ...]
    rows: str
    finish: str
    plain: str
    lanes: str
    halves: str
    blocks: str
    ahead: str
    pairs: str
    sums: str
    columns: str
    run: str

    def body(self, reduce: str, *, threads: bool = False) -> str:
        """The kernel's body with ``reduce`` as the way to sum a row."""
        lanes = "partial" in reduce
        whole = "    whole = cols - cols % block\n" if lanes else ""
        own = "        partial = np.empty(block, np.float32)\n" if lanes and threads else ""  # none shared by threads
        return (f"    rows, cols = x.shape\n{whole}    for row in {'numba.prange' if threads else 'range'}(rows):\n"
                f"{own}{self.rows}{reduce}{self.finish}")

    def fits(self, source: str) -> bool:
        """Whether the templates fit the incumbent."""
        return common.has(source, self.name, *self.arguments)

    def uses(self, source: str, mark: str) -> bool:
        """Whether the kernel's body holds ``mark``."""
        return mark in edit.body_text(source, self.name)

    def in_lanes(self, source: str) -> bool:
        """Whether the sum still runs over BLOCK partial sums."""
        return self.uses(source, "partial[")

    def tiled(self, source: str) -> bool:
        """Whether BLOCK matters."""
        return self.in_lanes(source) or self.uses(source, "part")

    def replaced(self, build: Callable[[str], str | None], options: tuple[str, ...] | None = None) -> Transform:
        """A transform that replaces the body and, with ``options``, the decorator."""
        def transform(context: AgentContext) -> str | None:
            source = context.incumbent.source
            body = build(source) if self.fits(source) else None
            if body is None:
                return None
            changed = edit.replace_body(source, self.name, body)
            return changed if options is None else edit.set_decorator(changed, self.name, common.njit(*options))
        return transform

    def unless(self, mark: str, body: str) -> Transform:
        """A transform to ``body`` where the sum no longer runs over lanes and ``mark`` is not there yet."""
        return self.replaced(lambda s: None if self.in_lanes(s) or self.uses(s, mark) else body)


def _blocked(norm: Norm) -> Transform:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not norm.fits(source) or norm.tiled(source):
            return None
        return edit.set_params(edit.replace_body(source, norm.name, norm.body(norm.blocks)), {"BLOCK": BLOCK})
    return transform


def _threads(norm: Norm) -> Transform:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not norm.fits(source) or norm.uses(source, "prange"):
            return None
        body = norm.body(norm.lanes if norm.in_lanes(source) else norm.plain, threads=True)
        options = common.parallel_options(source, norm.name)
        return edit.set_decorator(edit.replace_body(source, norm.name, body), norm.name, common.njit(*options))
    return transform


def _full_fastmath(norm: Norm) -> Transform:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not common.relaxed(source, norm.name):
            return None
        return edit.set_decorator(source, norm.name, common.njit(common.FULL))
    return transform


def _columns(norm: Norm) -> Transform:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        if not norm.fits(source):
            return None
        options = f"({common.RELAXED})" if common.relaxed(source, norm.name) else ""
        changed = edit.replace_body(source, norm.name, norm.columns).replace(" partial, eps, block):",
                                                                             " scales, eps, block):")
        changed = edit.replace_function(changed, "run", norm.run)
        return edit.insert_before(changed, norm.name, norm.sums.replace("{options}", options))
    return transform


def norm_moves(context: AgentContext, norm: Norm) -> list[Move]:
    """The strategies in the order in which an expert would think of them."""
    name, relaxed = norm.name, common.relaxed(context.incumbent.source, norm.name)
    return [
        Move("relaxed-sum", Direction.VECTORISATION, name, Tier.MEDIUM,
             "Sum each row in one plain loop and let the compiler reorder the additions (numeric mode without NaN or "
             "infinity assumptions): a strictly ordered sum cannot use SIMD lanes, a reordered one fills them.",
             "plain sum over the row in a reordering numeric mode", 0.8, 3.0,
             norm.replaced(lambda s: norm.body(norm.plain) if norm.in_lanes(s) else None, (common.RELAXED,))),
        Move("row-views", Direction.VECTORISATION, name, Tier.MEDIUM,
             "Take row and chunk views before the inner loops, so that the partial sums are contiguous loads without "
             "index arithmetic; no numeric mode needed.",
             "row and chunk views hoisted out of the inner loops", 0.4, 1.0,
             norm.replaced(lambda s: norm.body(norm.lanes) if norm.in_lanes(s) and not norm.uses(s, "chunk")
                           else None)),
        Move("next-row-ahead", Direction.PIPELINING, name, Tier.MEDIUM,
             "While a row is scaled, already sum the next one: its loads overlap with this row's stores.",
             "the next row is summed while this one is scaled", 0.3, 0.12, norm.unless("ahead", norm.ahead)),
        Move("row-pairs", Direction.FUSION, name, Tier.MEDIUM,
             "Normalise two rows at a time, so that every weight is loaded once for both.",
             "two rows share each weight load", 0.25, 0.08, norm.unless("second", norm.pairs)),
        Move("two-streams", Direction.VECTORISATION, name, Tier.MEDIUM,
             "Sum the two halves of a row side by side: two independent chains of additions hide more latency.",
             "two half rows summed side by side", 0.2, 0.05, norm.unless("half", norm.body(norm.halves))),
        Move("blocked-sum", Direction.TILING, name, Tier.MEDIUM,
             f"Sum in blocks of {BLOCK} columns and add the blocks: shorter chains, smaller rounding error, and BLOCK "
             "matters again.",
             f"two-level sum over blocks of {BLOCK}", 0.2, 0.04, _blocked(norm)),
        Move("full-fastmath", Direction.PRECISION, name, Tier.MEDIUM,
             "Also assume that no NaN and no infinity occurs, which frees the compiler once more. Risk: rows that hold "
             "them must still come out right.",
             "numeric mode fastmath=True", 0.1, 0.03, _full_fastmath(norm)),
        Move("threads", Direction.OCCUPANCY, name, Tier.MEDIUM, common.thread_text(context),
             "rows spread over threads with prange", 1.0, common.thread_gain(context),
             _threads(norm), evidence="hardware.threads"),
        Move("column-blocks", Direction.LAYOUT, name, Tier.HEAVY,
             "Scale column block by column block over all rows, so that a block of weights stays in registers. Costs "
             "a second sweep over the rows from memory.",
             "two kernels: sums first, then column blocks", 0.1, 0.05, _columns(norm)),
        *block_moves(context, name, (64, 32, 16, 128, 256, 1024), what="more independent partial sums hide the "
                     "latency of the addition", reach=0.3 if not relaxed else 0.05, most=0.25, applies=norm.tiled),
    ]
