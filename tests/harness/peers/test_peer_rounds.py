"""Rounds in the libraries' process: contents that nobody saw before, the same for all, nothing of an old answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.timing.device.contents import Stretch, renewed
from harness.operators import registry
from harness.operators.base import ShapePoint
from harness.peers.base import Peer
from harness.peers.checks import check, choose, keep
from harness.peers.ring import Contents, Ring, contents_of, renew
from harness.peers.sides import Maker, SideFailed, round_of, warm, windows_of
from tests.harness.peers.stub import StubPlace, StubPrepared, table

SPEC = registry.get("rms_norm")
POINT = ShapePoint("8x64", {"rows": 8, "cols": 64}, 1.0, {"eps": 1e-6})
TABLE = table()


def contents() -> Contents:
    return contents_of(SPEC, POINT, Backend.NUMBA, "llm", 11, random.Random(3))


def ring_of(made: Contents, slots: int = 4) -> Ring:
    first = {name: values.clone() for name, values in made.inputs.items()}
    return Ring(made, first, TABLE, slots, 512)


def norm(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    x = inputs["x"]
    return {"out": x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * inputs["weight"]}


def side(name: str, function: Callable[[Any], Any], **more: Any) -> Maker:
    return Maker(name, function, Peer(name, "torch", lambda problem: function, **more))


def rounds(makers: list[Maker], made: Contents, pairs: int = 6, kept: Any = None) -> dict[str, list[float]]:
    return round_of(makers, ring_of(made), StubPlace(), 2, pairs, random.Random(5), made.starts.draw, kept)


def test_contents_on_the_device_are_those_that_the_judge_computes_whatever_the_parts() -> None:
    first = torch.randn(5000, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    target, stretch = torch.empty_like(first), Stretch(999_990, 1_000_003, 5000)
    renew(target, first, TABLE, stretch)
    assert torch.equal(target, renewed(first, stretch, TABLE, 0, 5000))


def test_every_side_meets_the_same_new_contents_and_nobody_meets_any_twice() -> None:
    made, seen = contents(), {"a": [], "b": []}

    def noting(name: str) -> Callable[[Any], Any]:
        def call(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            seen[name].append(inputs["x"].clone())
            return norm(inputs)
        return call

    us = rounds([side("a", noting("a")), side("b", noting("b"))], made)
    assert all(torch.equal(a, b) for a, b in zip(seen["a"], seen["b"], strict=True))
    for number, one in enumerate(seen["a"]):
        assert not any(torch.equal(one, other) for other in seen["a"][:number])
    assert us == {"a": [3.0] * 6, "b": [3.0] * 6}


def test_a_side_that_overwrites_its_inputs_spoils_nobody_elses() -> None:
    made, wrong = contents(), []

    def overwriting(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        inputs["x"].copy_(norm(inputs)["out"])
        return {"out": inputs["x"]}

    def looking(name: str, start: int, outputs: dict[str, torch.Tensor]) -> None:
        kept = keep(outputs, choose(made, random.Random(1)), start)
        if not check(kept, made, TABLE, None).right:
            wrong.append(name)

    for _ in range(4):
        rounds([side("in place", overwriting, in_place=True), side("plain", norm)], made, kept=looking)
    assert not wrong


def test_an_answer_of_an_earlier_sample_is_found() -> None:
    made, found = contents(), {}
    old = norm({name: values.clone() for name, values in made.inputs.items()})

    def looking(name: str, start: int, outputs: dict[str, torch.Tensor]) -> None:
        found[name] = check(keep(outputs, range(0, 8), start), made, TABLE, None)

    rounds([side("stale", lambda inputs: old), side("honest", norm)], made, kept=looking)
    assert found["honest"].right and found["honest"].worst_ratio <= 1.0
    assert not found["stale"].right and "wrong" in found["stale"].why


def test_kept_rows_are_copies_that_later_samples_do_not_touch() -> None:
    outputs = {"out": torch.ones(8, 64)}
    kept = keep(outputs, range(2, 4), 0)
    outputs["out"].fill_(7.0)
    assert torch.equal(kept.outputs["out"], torch.ones(2, 64))


def test_a_library_gets_the_layout_that_it_prefers_outside_the_clock() -> None:
    made, seen = contents(), []

    def transposed(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {**inputs, "x": inputs["x"].t()}

    def call(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        seen.append(inputs["x"].is_contiguous() and tuple(inputs["x"].shape) == (64, 8))
        return norm({**inputs, "x": inputs["x"].t()})

    answers = {}
    rounds([side("arranged", call, arrange=transposed), side("plain", norm)], made,
           kept=lambda name, start, outputs: answers.__setitem__(name, outputs["out"].clone()))
    assert all(seen)
    torch.testing.assert_close(answers["arranged"], answers["plain"])


def test_a_side_that_fails_is_named() -> None:
    def broken(inputs: Any) -> Any:
        raise RuntimeError("no kernel image\nfor this device")

    with pytest.raises(SideFailed) as caught:
        rounds([side("broken", broken)], contents())
    assert caught.value.name == "broken"
    assert caught.value.text == "It fails in a timed round: RuntimeError: no kernel image for this device"


def test_what_cannot_be_captured_after_all_is_called_from_the_host() -> None:
    class Refusing(StubPlace):
        def prepare(self, calls: Any, *, graph: bool, shared: Any) -> StubPrepared:
            if graph:
                raise RuntimeError("operation not permitted when stream is capturing")
            return super().prepare(calls, graph=graph, shared=shared)

    made, place = contents(), Refusing()
    maker = side("library", norm)
    warm(maker, ring_of(made).slots[0], place)
    assert not maker.graph and maker.us == 3.0 and place.prepared == [(False, 1)]
    with pytest.raises(RuntimeError, match="no kernel"):
        warm(side("broken", lambda inputs: (_ for _ in ()).throw(RuntimeError("no kernel"))), {}, place)


def test_windows_are_disjoint_and_few() -> None:
    found = windows_of(64, 5, random.Random(2))
    slots = [slot for window in found for slot in window]
    assert len(found) == 4 and len(set(slots)) == len(slots) == 20
    assert windows_of(3, 16, random.Random(2)) and len(windows_of(3, 16, random.Random(2))[0]) == 3


@pytest.mark.parametrize(("cache", "memory", "batch", "slots"), [
    (1 << 20, 1 << 30, 1, 768), (1 << 10, 1 << 30, 1, 4), (1 << 10, 1 << 30, 9, 9), (1 << 20, 8192, 1, 1)])
def test_rings_are_as_large_as_the_clock_of_our_kernels_wants_them(cache: int, memory: int, batch: int,
                                                                   slots: int) -> None:
    made = contents()
    assert made.slot_bytes == 2 * 8 * 64 * 4
    assert made.slots(cache, memory, batch, most=1000) == slots


def test_what_does_not_change_per_call_is_restored() -> None:
    made = contents()
    ring = ring_of(made)
    ring.slots[1]["weight"].zero_()
    ring.renew([1], [made.starts.draw()])
    assert torch.equal(ring.slots[2]["weight"], made.inputs["weight"])
