"""Candidates that fork, fill, flood, hang, exit and crash: the right verdict in time, the next one unaffected, nothing
left behind."""

from __future__ import annotations

import os
import time

import pytest
import torch

from harness.evaluation import buffers
from harness.evaluation.ports import CandidateFault
from harness.evaluation.sandbox.workers import SandboxOpener
from tests.harness.sandbox_attacks.lives import HONEST, LIVES, LIVES_IN, WORLD, Life
from tests.harness.sandbox_leftovers import nothing_left

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
GRACE_S = 15.0
"""From the deadline to the verdict, on a busy machine."""
DIGEST = 32
TRIED = [(name, life) for name in LIVES_IN for life in LIVES if name in life.ends]


@pytest.fixture(scope="module")
def settings():
    """By name, an opener and what a fresh candidate finds around it there; each is started when it is first used."""
    known: dict[str, tuple[SandboxOpener, list[float]]] = {}

    def setting(name: str) -> tuple[SandboxOpener, list[float]]:
        if name not in known:
            opener = SandboxOpener("numba", **LIVES_IN[name])
            known[name] = opener, world(opener)
        return known[name]

    yield setting
    for opener, _ in known.values():
        opener.close()


def lived(opener, source: str, width: int, **options) -> tuple[str, str] | list[float]:
    """Judge ``source``: how it failed, or what it wrote."""
    deadline_s = options.pop("deadline_s")
    x, block = buffers.lend_input("x", torch.arange(8.0)), buffers.OutputBlock("out", (width,), torch.float32)
    worker = opener.open(deadline_s=deadline_s, options={name: value for name, value in options.items() if value})
    try:
        worker.load(source)
        worker.call([x, block.lent], {})
        return block.read()[0].tolist()
    except CandidateFault as caught:
        return str(caught.fault.outcome), caught.fault.code
    finally:
        worker.close()
        block.close()
        os.close(x.fd)


def world(opener) -> list[float]:
    """An honest candidate's digest of what is around it; its result is checked."""
    found = lived(opener, WORLD, 8 + DIGEST, deadline_s=60.0)
    assert found[:8] == [2.0 * value for value in range(8)]
    return found[8:]


def judged(opener, life: Life) -> tuple[str, str] | None:
    """How ``life`` failed, ``None`` where its answer is right."""
    found = lived(opener, life.source, 8, deadline_s=life.deadline_s, data_bytes=life.data_bytes)
    return None if found == [2.0 * value for value in range(8)] else found


@pytest.mark.parametrize(("name", "life"), TRIED, ids=[f"{name}: {life.name}" for name, life in TRIED])
def test_a_hostile_life_ends_in_time_and_leaves_the_next_alone(settings, name, life):
    opener, before = settings(name)
    began = time.monotonic()
    with nothing_left(opener.server_pid):
        assert judged(opener, life) in life.ends[name]
    assert time.monotonic() - began < life.deadline_s + GRACE_S
    assert world(opener) == before


@pytest.mark.parametrize("name", ["3", "2"])
def test_two_at_once_do_not_disturb_each_other(settings, name):
    """One candidate hoards and is ended, while another one is in the middle of its work."""
    opener, _ = settings(name)
    honest = opener.open(deadline_s=30.0)
    try:
        honest.load(HONEST)
        hoard = next(life for life in LIVES if life.name == "hoard")
        assert judged(opener, hoard) == ("over_limit", "memory_limit")
        honest.ask({"op": "load", "source": HONEST, "bounds_checks": False, "options": {}})
    finally:
        honest.close()


def test_all_that_bad_candidates_do_is_tried_at_the_levels_that_may_promote():
    assert all("3" in life.ends for life in LIVES)
    assert sum("2" in life.ends for life in LIVES) >= 20
