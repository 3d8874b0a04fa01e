"""Fresh inputs for timing and the verification of randomly chosen timed calls."""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.domain.errors import InfrastructureError
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.judge.checking import check_collected
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.lending import Collected, Lending, sizes_shown
from harness.evaluation.judge.oracle import Expected, expect
from harness.evaluation.judge.seeds import generator
from harness.evaluation.judge.special_rows import kinds_of, with_special_rows
from harness.operators.base import OperatorSpec, ShapePoint
from harness.operators.implementation import Tensors

LEAST_FACTOR = 0.75
"""Renewed contents are the first ones times a factor from here to 1."""
SPARE = 1 << 16
"""Factors beyond the largest array: as many different contents of it."""
PLACES = 256
"""Elements of an output that are compared after every timed call."""


def fresh_inputs(
    spec: OperatorSpec,
    point: ShapePoint,
    dtype: str,
    regimes: tuple[str, ...],
    seed: int,
    slots: int,
    *labels: object,
) -> list[Lending]:
    """``slots`` lendings of one measured shape, each with its own, renewable contents and poisoned outputs.

    The regimes are mixed within every tensor; arguments that do not change per call (a weight) are the same in all
    slots. Equal ``seed`` and ``labels`` give equal contents. Close every lending after use.
    """
    attributes = all_attributes(spec, point.attributes)
    lendings: list[Lending] = []
    try:
        for slot in range(slots):
            inputs = make_inputs(spec, point.dims, regimes, attributes, dtype, seed, "ring", *labels, slot)
            if lendings:
                constant = {a.name: lendings[0].inputs[a.name] for a in spec.inputs if not a.per_call}
                inputs |= constant
            lendings.append(Lending(spec, inputs, attributes, dtype, renewable=True))
    except BaseException:
        for lending in lendings:
            lending.close()
        raise
    return lendings


class Renewal:
    """New contents for slots of a ring, so that no process ever meets the same ones twice.

    A kernel can keep what it likes between calls (the memory of its own scratch is enough), and outputs that it
    remembers are right. Rows and columns are turned by a drawn distance, then multiplied by random factors, which
    leaves zeros, infinities and the regimes recognisable: no sum, maximum or product of old contents and no place of
    theirs says anything about the new ones.
    """

    def __init__(self, ring: Sequence[Lending], seed: int, *labels: object) -> None:
        """Factors for ``ring`` from ``seed``; equal seeds and labels give equal sequences of contents."""
        self._draw = generator(seed, "renewal", *labels)
        most = max(math.prod(item.shape) for item in ring[0].lent)
        self._factors = torch.rand(most + SPARE, generator=self._draw) * (1 - LEAST_FACTOR) + LEAST_FACTOR
        self._used: dict[int, set[int]] = defaultdict(set)  # starts that a slot had; chance alone would repeat some

    def renew(self, lendings: Sequence[Lending]) -> None:
        """Give every one of ``lendings`` contents that it never had; all workers must be frozen."""
        for lending in lendings:
            lending.renew(self._factors, self._fresh_start(id(lending)))

    def special(self, lending: Lending) -> bool:
        """Put one row each of special kinds into what ``lending`` holds, until it is renewed; its worker must be
        frozen. Arguments of which only a counted part is in use stay as they are. ``False`` where rows are too few."""
        spec, inputs = lending.spec, lending.inputs
        kinds, counted = kinds_of(spec, lending.dtype), {argument.counts for argument in spec.inputs}
        drawn = [kinds[place] for place in torch.randperm(len(kinds), generator=self._draw).tolist()]
        seed = int(torch.randint(1 << 62, (), generator=self._draw))
        mixed = with_special_rows(spec, sizes_shown(spec, inputs, lending.attributes), inputs, drawn,
                                  lending.attributes, lending.dtype, seed, "ring")
        if mixed is inputs:
            return False
        lending.put({argument.name: (inputs if counted & {*argument.dims} else mixed)[argument.name]
                     for argument in spec.inputs})
        return True

    def _fresh_start(self, slot: int) -> int:
        used = self._used[slot]
        if len(used) > SPARE // 2:  # drawing would take long; far beyond what a session asks for
            raise InfrastructureError("A timing session asked for more new contents than one ring can give.")
        start = int(torch.randint(SPARE, (), generator=self._draw))
        while start in used:
            start = int(torch.randint(SPARE, (), generator=self._draw))
        used.add(start)
        return start


class Samples:
    """The same few places of the outputs of several slots, as each side left them."""

    def __init__(self, lendings: Sequence[Lending]) -> None:
        """Draw the places, unknown to any candidate."""
        self._lendings = lendings
        draw = torch.Generator().manual_seed(secrets.randbits(63))
        self._places = [
            {item.name: torch.randint(math.prod(item.shape), (PLACES,), generator=draw)
             for item in lending.lent if item.kind == "output"}
            for lending in lendings
        ]
        self._taken: dict[str, list[Tensors]] = {}

    def take(self, side: str) -> None:
        """Copy what ``side`` has just left; it must be frozen."""
        self._taken[side] = [lending.pick(at) for lending, at in zip(self._lendings, self._places, strict=True)]

    def wrong(self, side: str, other: str, relative: float | None = None) -> bool:
        """Whether ``side`` left a wrong value where it and ``other`` disagree most.

        The comparison is only a cheap pointer to one slot; the oracle decides about it, by the usual bound.
        """
        pairs = list(zip(self._taken[side], self._taken[other], strict=True))
        worst = max(range(len(pairs)), key=lambda index: _apart(*pairs[index]), default=None)
        if worst is None or _apart(*pairs[worst]) == 0:
            return False
        answers = answers_for(self._lendings[worst], relative)
        for name, places in self._places[worst].items():
            got, right = self._taken[side][worst][name], answers[name].values.flatten()[places]
            bound = answers[name].bound.expand_as(answers[name].values).flatten()[places]
            near = (got.double() - right).abs() <= bound
            if not bool((near | (got.double() == right) | (got.isnan() & right.isnan())).all()):
                return True
        return False


def _apart(left: Tensors, right: Tensors) -> int:
    """How many sampled values of two sides differ by more than two right answers plausibly do."""
    count = 0
    for name, value in left.items():
        other = right[name].double()
        finite = other.nan_to_num(0.0, 0.0, 0.0).abs()
        near = (value.double() - other).abs() <= 1e-3 * finite + 1e-5 * finite.max()
        count += int((~(near | (value.double() == other) | (value.isnan() & other.isnan()))).sum())
    return count


def answers_for(lending: Lending, relative: float | None = None) -> dict[str, Expected]:
    """The oracle's answers to what a slot holds now."""
    dims = {
        dim: size
        for item, argument in zip(lending.lent, lending.spec.arguments, strict=True)
        for dim, size in zip(argument.dims, item.shape, strict=True)
    }
    return expect(lending.spec, dims, lending.inputs, lending.attributes, lending.dtype, relative)


@dataclass(frozen=True, slots=True)
class Left:
    """What a timed call left in a slot, copied at once and judged later, while nobody is being timed: the judge's own
    work between two turns of a sweep would cool the caches for whoever comes next."""

    lending: Lending
    collected: Collected
    broken: list[tuple[Outcome, Reason]]

    def faults(self, stage: Stage, label: str | None = None, relative: float | None = None
               ) -> tuple[tuple[Outcome, Reason], ...]:
        """Judge it by the same oracle and bound as the correctness stage; the slot's inputs must be unchanged.

        ``relative`` is a goal's own tolerance. Empty when right. Raises ``InvalidReference`` when the reference itself
        fails.
        """
        answers = answers_for(self.lending, relative)
        return check_collected(self.lending, self.collected, self.broken, answers, stage, label).faults


def left_in(lending: Lending, stage: Stage, label: str | None = None) -> Left:
    """Copy what the last call left in ``lending``; the worker must be frozen."""
    return Left(lending, lending.collect(), lending.broken_guards(stage, label))
