"""Which cores belong to the clock and which to everybody else."""

from __future__ import annotations

import os
from dataclasses import dataclass

from harness.domain.errors import UsageError
from harness.hardware.cpu import cpu_list

OVERRIDE = "KERNELOPT_CORES"
"""Environment variable with the CPUs this installation may use (``"0-3"``); needed where a process that evaluates was
itself pinned to a part of the machine, so that the hardware's name stays the same."""


@dataclass(frozen=True, slots=True)
class Cores:
    """``timing``: cores of the timed process; ``rest``: server, engine, judge. They overlap only on a single core."""

    timing: tuple[int, ...]
    rest: tuple[int, ...]

    @property
    def threads(self) -> int:
        """Threads a kernel may use: the ``t`` of the hardware's name."""
        return len(self.timing)


def allowed() -> tuple[int, ...]:
    """The CPUs this installation may use, in order.

    Raises:
        UsageError: ``KERNELOPT_CORES`` is not a list of CPU numbers.
    """
    text = os.environ.get(OVERRIDE)
    if text:
        try:
            return tuple(sorted(cpu_list(text)))
        except ValueError as error:
            raise UsageError(f"{OVERRIDE} is '{text}', which is no list of CPUs. Write it like 0-3,8.") from error
    return tuple(sorted(os.sched_getaffinity(0)))


def split(cores: tuple[int, ...]) -> Cores:
    """All but the first core for the clock: the last of two, N - 1 of more; a single core serves both."""
    if len(cores) == 1:
        return Cores(timing=cores, rest=cores)
    return Cores(timing=cores[1:], rest=cores[:1])


def reserve() -> Cores:
    """The division of this machine's cores."""
    return split(allowed())
