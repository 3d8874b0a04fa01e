"""The sides of one shape in the libraries' process: peers, and a kernel of ours called natively as the control."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.buffers import dtype_of
from harness.operators.base import OperatorSpec
from harness.operators.implementation import Tensors
from harness.peers.base import Function, Peer, Problem
from harness.peers.places import Place, Prepared
from harness.peers.ring import Ring

WINDOWS = 4
"""Different stretches of the ring that one round uses; each costs a graph per side."""
WARM_CALLS = 3


@dataclass
class Maker:
    """How one side's calls are made on a shape. ``peer`` is ``None`` for the control; ``captures`` turns false where a
    capture fails that nobody expected to."""

    name: str
    function: Function
    peer: Peer | None = None
    us: float = 0.0
    captures: bool = True

    @property
    def graph(self) -> bool:
        """Whether its calls are captured."""
        return self.captures and (self.peer is None or self.peer.graph)

    @property
    def in_place(self) -> bool:
        """Whether it overwrites its inputs."""
        return self.peer is not None and self.peer.in_place


class SideFailed(Exception):
    """A side raised in a timed round."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name, self.text = name, text


class Placed:
    """One side on one ring: its own layouts of the inputs, and its readied stretches."""

    def __init__(self, maker: Maker, ring: Ring, place: Place) -> None:
        self.maker, self._ring, self._place = maker, ring, place
        arrange = maker.peer.arrange if maker.peer else None
        self._arrange = arrange
        self._own = [_dense(arrange(slot), slot) for slot in ring.slots] if arrange else ring.slots
        self._shared = place.common()
        self._ready: dict[tuple[int, ...], Prepared] = {}

    def ready(self, window: Sequence[int]) -> Prepared:
        """The calls on the slots of ``window``, captured on first use."""
        key = tuple(window)
        if key not in self._ready:
            function = self.maker.function
            calls = [_bound(function, self._own[number]) for number in key]
            self._ready[key] = self._place.prepare(calls, graph=self.maker.graph, shared=self._shared)
        return self._ready[key]

    def take(self, window: Sequence[int]) -> None:
        """Copy new contents into the layout that the library prefers, outside the clock."""
        if self._arrange is None:
            return
        for number in window:
            slot = self._ring.slots[number]
            for name, values in self._arrange(slot).items():
                if values is not slot[name]:
                    self._own[number][name].copy_(values)


def _dense(views: Tensors, slot: Tensors) -> Tensors:
    return {name: values if values is slot[name] else values.contiguous() for name, values in views.items()}


def _bound(function: Function, inputs: Tensors) -> Callable[[], Tensors]:
    return lambda: function(inputs)


def round_of(makers: Sequence[Maker], ring: Ring, place: Place, batch: int, pairs: int, source: random.Random,
             draw: Callable[[], int], kept: Callable[[str, int, Tensors], None] | None = None
             ) -> dict[str, list[float]]:
    """``pairs`` samples of every side in random order, microseconds per call.

    In every sweep all sides get the same slots with the same new contents, drawn by ``draw``. ``kept(side, start,
    outputs)`` is told what each side left in the last slot of one random sweep.
    """
    placed = [Placed(maker, ring, place) for maker in makers]
    windows = windows_of(len(ring.slots), batch, source)
    us: dict[str, list[float]] = {maker.name: [] for maker in makers}
    looked = source.randrange(pairs)
    for sweep in range(pairs):
        window = source.choice(windows)
        starts = [draw() for _ in window]
        stale = True
        for side in source.sample(placed, len(placed)):
            with _named(side.maker.name):
                prepared = side.ready(window)
                prepared.spoil()
                if stale or side.maker.in_place:
                    ring.renew(window, starts)
                side.take(window)
                us[side.maker.name].append(prepared.sample() / len(window))
                if kept is not None and sweep == looked:
                    kept(side.maker.name, starts[-1], prepared.last())
            stale = side.maker.in_place
    return us


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise SideFailed(name, " ".join(f"It fails in a timed round: {type(error).__name__}: {error}".split())[:400]) \
            from error


def windows_of(slots: int, batch: int, source: random.Random) -> list[tuple[int, ...]]:
    """Disjoint random stretches of the ring, ``batch`` slots each, a few of them."""
    batch = min(batch, slots)
    order = source.sample(range(slots), slots)
    found = [tuple(order[first:first + batch]) for first in range(0, slots - batch + 1, batch)]
    return found[:WINDOWS]


def warm(maker: Maker, slot: Tensors, place: Place, repeat: int = WARM_CALLS) -> None:
    """Compile and call once or twice on one slot, then see how long a call takes, about; sets ``maker.us``. What cannot
    be captured after all is called from the host from then on."""
    arrange = maker.peer.arrange if maker.peer else None
    inputs = _dense(arrange(slot), slot) if arrange else slot
    for _ in range(2):
        maker.function(inputs)
    if place.device == "cuda":
        torch.cuda.synchronize()
    calls = [_bound(maker.function, inputs)]
    try:
        prepared = place.prepare(calls, graph=maker.graph, shared=place.common())
    except Exception:
        if not maker.graph:
            raise
        maker.captures = False
        prepared = place.prepare(calls, graph=False, shared=place.common())
    maker.us = sorted(prepared.sample() for _ in range(repeat))[repeat // 2]


def peer_side(peer: Peer, problem: Problem) -> Maker:
    """A library's side. Raises ``Absent`` where it cannot be had."""
    return Maker(peer.name, peer.build(problem), peer)


def control_side(name: str, source: str, spec: OperatorSpec, problem: Problem, dtype: str, backend: Backend) -> Maker:
    """A kernel of ours, trusted, called as its file says: ``run`` fills outputs. On a CPU they are allocated once per
    slot, because there an allocation costs page faults; a GPU's allocator keeps them out of captured calls."""
    run, numpy = _loaded(source, backend)
    attributes = dict(problem.attributes)
    known: dict[int, Tensors] = {}

    def fresh() -> Tensors:
        return {output.name: torch.empty([problem.dims[dim] for dim in output.dims], device=problem.device,
                                         dtype=dtype_of(output.dtype or dtype)) for output in spec.outputs}

    def call(inputs: Tensors) -> Tensors:
        outputs = (known.get(id(inputs)) or known.setdefault(id(inputs), fresh())) if numpy else fresh()
        arrays: list[Any] = [inputs[argument.name] for argument in spec.inputs] + list(outputs.values())
        run(*([array.numpy() for array in arrays] if numpy else arrays), **attributes)
        return outputs

    return Maker(name, call)


def _loaded(source: str, backend: Backend) -> tuple[Callable[..., Any], bool]:
    if backend is Backend.TRITON:
        from harness.backends.triton.candidate import import_candidate

        return import_candidate(source).run, False
    names: dict[str, Any] = {"__name__": "kernel"}
    exec(compile(source, "<kernel>", "exec", dont_inherit=True), names)
    return names["run"], True
