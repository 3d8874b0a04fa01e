"""Strategies for normalisations of rows on Triton: what the ladders of add_rms_norm and layer_norm share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.agents.playbook import edit
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

Transform = Callable[[AgentContext], str | None]
OFTEN = ', eviction_policy="evict_last"'
NAMES, WIDTHS = ("short", "medium", "long"), (1024, 4096, 8192)
"""The buckets of row operators and the widths of a row that is held whole."""


@dataclass(frozen=True, slots=True)
class RowKernel:
    """A kernel whose program owns a row: its ``name`` and the ``arguments`` that the templates are written for."""

    name: str
    arguments: tuple[str, ...]

    def body(self, source: str) -> str | None:
        """The kernel's body; ``None`` where the templates do not fit the incumbent."""
        return edit.body_text(source, self.name) if edit.argument_names(source, self.name) == self.arguments else None

    def replaced(self, text: str, mark: str, values: Mapping[str, object] | None = None, needs: str = "") -> Transform:
        """A transform to the body ``text`` where ``mark`` is not there yet and ``needs`` is."""
        def transform(context: AgentContext) -> str | None:
            source = context.incumbent.source
            body = self.body(source)
            if body is None or mark in body or needs not in body:
                return None
            changed = edit.replace_body(source, self.name, text)
            return edit.set_params(changed, values) if values else changed
        return transform

    def edited(self, *changes: tuple[str, str], values: Mapping[str, object] | None = None) -> Transform:
        """A transform of texts within the body; does not apply unless all of them are there."""
        def transform(context: AgentContext) -> str | None:
            source = context.incumbent.source
            body = self.body(source)
            if body is None or any(old not in body for old, _ in changes):
                return None
            for old, new in changes:
                body = body.replace(old, new)
            changed = edit.replace_body(source, self.name, body)
            return edit.set_params(changed, values) if values else changed
        return transform

    def relaunched(self, kernel: str, run: str, values: Mapping[str, object], before: str = "",
                   needs: str = "") -> Transform:
        """A transform to another ``kernel`` and ``run``, with a further kernel function ``before`` it; applies where
        the incumbent's body holds ``needs``."""
        def transform(context: AgentContext) -> str | None:
            source = context.incumbent.source
            body = self.body(source)
            if body is None or needs not in body:
                return None
            changed = edit.replace_function(edit.replace_function(source, self.name, kernel), "run", run)
            changed = edit.insert_before(changed, self.name, before) if before else changed
            return edit.set_params(changed, values).replace("import triton\n", "import torch\nimport triton\n", 1)
        return transform


def by_bucket(warps: tuple[int, int, int]) -> dict[str, object]:
    """PARAMS for whole rows: each bucket's widest row (8192 in the open one) and its ``warps``."""
    return {"BLOCK": dict(zip(NAMES, WIDTHS, strict=True)), "num_warps": dict(zip(NAMES, warps, strict=True))}


def launch_moves(context: AgentContext, kernel: RowKernel, warps_by_bucket: tuple[int, int, int]) -> list[Move]:
    """The light strategies: widths and warps, one width per bucket and ``warps_by_bucket``."""
    name = kernel.name

    def looped(source: str) -> bool:
        return "kept" not in edit.body_text(source, name)

    def even(source: str) -> bool:
        return isinstance(edit.params(source).get("num_warps"), int)

    # Measured on an H200: where a row is held, one number of warps or one width for all rows brings half a per cent.
    loops = looped(context.incumbent.source)

    def warps(value: int, what: str, most: float) -> Move:
        return value_move(context, name, "num_warps", value, what=what, reach=0.2 if loops else 0.05,
                          most=most if loops else 0.005, applies=even, direction=Direction.OCCUPANCY)

    listed = ", ".join(map(str, warps_by_bucket))
    return [
        Move("row-wide-blocks", Direction.TILING, name, Tier.LIGHT,
             "Let BLOCK be each bucket's widest row: one step per row, and shorter rows waste no lanes and no "
             "registers on columns that do not exist.",
             "BLOCK 1024, 4096 and 8192 by bucket", 0.3, 0.06 if loops else 0.01,
             lambda now: _table(now, "BLOCK", WIDTHS),
             evidence="tunables", basis="occupancy"),
        Move("warps-by-bucket", Direction.OCCUPANCY, name, Tier.LIGHT,
             "Let warps grow with the row: a short one is reduced by few warps that wait for each other briefly, a "
             "long one needs more so that its registers leave room for other programs.",
             f"num_warps {listed} by bucket", 0.25, 0.05 if loops else 0.01,
             lambda now: _table(now, "num_warps", warps_by_bucket) if even(now.incumbent.source) else None,
             evidence="tunables"),
        value_move(context, name, "BLOCK", 4096, what="fewer loop steps, wider loads", reach=0.2, most=0.12,
                   applies=looped),
        value_move(context, name, "BLOCK", 2048, what="fewer loop steps", reach=0.2, most=0.08, applies=looped),
        value_move(context, name, "BLOCK", 32768, what="a whole row per step whatever its length. Risk: the row may "
                   "not fit the registers", reach=0.05, most=0.002),
        warps(8, "more loads in flight per program", 0.08),
        warps(16, "fewer registers a thread, so that more programs are resident", 0.05),
        warps(32, "one load a thread, all of them at once", 0.03),
        warps(4, "less waiting at the barriers of a reduction", 0.04),
    ]


def _table(context: AgentContext, key: str, values: Sequence[int]) -> str | None:
    """``key`` as a table of ``values`` over the buckets, where all of them are allowed and it is not that yet."""
    source, buckets = context.incumbent.source, context.spec.buckets
    tunable = context.spec.tunable(key, context.goal.backend)
    if buckets is None or tunable is None:
        return None
    table = {name: value for (name, _), value in zip(buckets.bounds, values, strict=True)}
    inside = all(tunable.low <= value <= tunable.high for value in values)
    return edit.set_params(source, {key: table}) if inside and edit.params(source).get(key) != table else None
