"""How long one waits: pure, with a clock of the test's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents.llm.wire.faults import retry_after
from harness.agents.llm.wire.retry import LONGEST_WAIT_S, Patience, Stopped, sleep


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


@given(st.floats(0, 1e5), st.floats(0, 1), st.lists(st.one_of(st.none(), st.floats(0, 1e7)), min_size=1, max_size=200))
def test_the_patience_always_ends_and_no_wait_goes_beyond_it(seconds, jitter, asked):
    clock = Clock()
    patience = Patience(seconds, clock=clock, jitter=lambda: jitter)
    for wish in asked:
        wait = patience.wait_s(wish)
        if wait is None:
            break
        assert wait >= (wish or 0.0)
        assert 0.375 <= wait <= max(LONGEST_WAIT_S, wish or 0.0)
        clock.now += wait
    assert clock.now <= seconds


def test_waits_grow_to_half_a_minute():
    patience = Patience(1e6, clock=Clock(), jitter=lambda: 1.0)
    assert [patience.wait_s(None) for _ in range(9)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_a_sleep_is_looked_into_often():
    clock, looks = Clock(), []

    def cancelled():
        looks.append(clock.now)
        return clock.now > 2.0

    with pytest.raises(Stopped):
        sleep(3600.0, cancelled, clock=clock, pause=clock.pause)
    assert clock.now < 2.2
    assert len(looks) > 10


@pytest.mark.parametrize(("headers", "seconds"), [
    ({"retry-after": "3"}, 3.0), ({"retry-after": "1.5"}, 1.5), ({"retry-after-ms": "250"}, 0.25),
    ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT"}, 30.0), ({"retry-after": "Sun, 29 Nov 2026 11:00:00 GMT"}, 0.0),
    ({"retry-after": "-5"}, None), ({"retry-after": "nan"}, None), ({"retry-after": "soon"}, None), ({}, None),
    ({"retry-after": "1e9"}, None)])
def test_what_an_endpoint_asks_to_wait(headers, seconds):
    assert retry_after(headers, 1795953600.0) == seconds
