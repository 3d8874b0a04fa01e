"""Least times on a device whose clocks are rising."""

from __future__ import annotations

from itertools import chain, repeat

from harness.backends.triton.launcher import steady


class Clock:
    """Goes on by a millisecond a sample."""

    def __init__(self) -> None:
        self.now = 0.0
        self.samples = 0

    def __call__(self) -> float:
        return self.now

    def work(self, times):
        """Takes the given times one after the other."""
        taken = iter(times)

        def sample() -> float:
            self.samples += 1
            self.now += 1e-3
            return next(taken)

        return sample


def test_the_least_is_taken_after_the_clocks_have_risen():
    clock = Clock()
    rising = [1.5 - 0.002 * number for number in range(250)]
    found = steady.least([clock.work(chain(rising, repeat(1.0))), clock.work(repeat(3.0))], clock)
    assert found == [1.0, 3.0]


def test_a_device_at_work_is_measured_for_a_while_and_no_longer():
    clock = Clock()
    assert steady.least([clock.work(repeat(2.0))], clock) == [2.0]
    assert clock.now >= steady.LEAST_S and clock.samples < steady.MOST


def test_noise_does_not_keep_it_going_and_a_fall_without_end_is_cut_off():
    clock = Clock()
    assert steady.least([clock.work(2.0 + 0.001 * (number % 3) for number in range(steady.MOST))], clock) == [2.0]
    assert clock.samples < steady.MOST
    clock = Clock()
    steady.least([clock.work(0.9**number for number in range(steady.MOST))], clock)
    assert clock.samples == steady.MOST
