"""How much is tried, by the place a candidate runs in.

A call costs a CPU worker milliseconds, the interpreter tenths of a second, a device a compilation per new shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.vocabulary import Purpose
from harness.evaluation.run import Place, Run


@dataclass(frozen=True, slots=True)
class Amounts:
    """Numbers of the probes. ``spiked_rows``: rows (sequences) of the sensitivity problems; ``spikes``: problems per
    argument; ``repeats`` of one small input and ``wide_repeats`` of one with ``wide_rows`` rows (0: none); ``fresh``:
    new contents for a shape already seen; ``sizes``: drawn sizes in a round, ``promotion_sizes`` before a promotion;
    ``elements``: elements that one drawn size works on at most, but for a size that is larger by itself;
    ``specials``: calls with special values whose size the first dimension leads, ``special_others`` those that others
    lead, ``special_measured`` calls beside measured sizes, ``special_elements`` as ``elements``; ``special_rows``: rows
    of special values in a problem of a drawn size;
    ``programs``: rows of outputs (heads of sequences) that a drawn size has at most, however large by itself (0: any
    number)."""

    spiked_rows: int
    spikes: int
    repeats: int
    wide_rows: int
    wide_repeats: int
    fresh: int
    sizes: int
    promotion_sizes: int
    elements: int
    specials: int
    special_others: int
    special_elements: int
    special_measured: int
    special_rows: int
    programs: int = 0


AMOUNTS = {
    Place.NUMBA: Amounts(spiked_rows=32, spikes=2, repeats=20, wide_rows=100, wide_repeats=5, fresh=4, sizes=176,
                         promotion_sizes=512, elements=300_000, specials=6, special_others=4,
                         special_elements=3_000_000, special_measured=3, special_rows=6),
    Place.INTERPRETER: Amounts(spiked_rows=6, spikes=1, repeats=2, wide_rows=0, wide_repeats=0, fresh=2, sizes=3,
                               promotion_sizes=6, elements=150_000, specials=3, special_others=0,
                               special_elements=150_000, special_measured=1, special_rows=4, programs=32),
    # 528 rows: four blocks for each of the 132 multiprocessors of an H200.
    Place.DEVICE: Amounts(spiked_rows=32, spikes=2, repeats=20, wide_rows=528, wide_repeats=5, fresh=4, sizes=12,
                          promotion_sizes=32, elements=300_000, specials=5, special_others=1,
                          special_elements=3_000_000, special_measured=2, special_rows=8),
}


def amounts_of(run: Run) -> Amounts:
    """The amounts for where ``run`` judges."""
    return AMOUNTS[run.place]


def promoting(run: Run) -> bool:
    """Whether this evaluation decides about a promotion."""
    return run.request.purpose is Purpose.PROMOTION
