"""The three-valued comparison: deterministic, symmetric, monotone, and rarely fooled by noise."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.goal import Weights
from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.vocabulary import Comparison
from harness.evaluation.timing.comparison import MARGIN, compare, noise_of, pooled, score

ROLE = "incumbent"


def simulated(speedup: float, *, seed: int, cv: float = 0.01, rounds: int = 5, pairs: int = 8, between: float = 0.004,
              shapes: int = 2) -> Samples:
    """Log-normal noise per sample, a process effect per round, 3 % of the samples slowed by up to 40 %."""
    source = random.Random(seed)

    def series(mean: float) -> tuple[float, ...]:
        level = mean * math.exp(source.gauss(0, between))
        return tuple(level * math.exp(source.gauss(0, cv)) * (1 + (source.random() < 0.03) * source.random() * 0.4)
                     for _ in range(pairs))

    def paired(other: float, mine: float) -> tuple[PairedRound, ...]:
        return tuple(PairedRound(series(other), series(mine)) for _ in range(rounds))

    made = []
    for index in range(shapes):
        base = 300.0 * (index + 1)
        made.append(ShapeSamples(
            f"s{index}", 1 / shapes, {ROLE: paired(base, base / speedup), "baseline": paired(base, base / speedup)},
            paired(base, base), cold=(base,), first_call=1e5,
            hot={"candidate": (base / speedup,) * 4, "baseline": (base,) * 4, ROLE: (base,) * 4},
            first_calls={"candidate": (1e5,), "baseline": (1e5,), ROLE: (1e5,)},
        ))
    return Samples(tuple(made))


def swapped(samples: Samples) -> Samples:
    return Samples(tuple(
        ShapeSamples(s.shape, s.weight, {role: tuple(PairedRound(r.candidate, r.other) for r in rounds)
                                         for role, rounds in s.versus.items()}, s.aa)
        for s in samples.shapes
    ))


def scaled(samples: Samples, factor: float) -> Samples:
    return Samples(tuple(
        ShapeSamples(s.shape, s.weight, {role: tuple(PairedRound(r.other, tuple(v / factor for v in r.candidate))
                                                     for r in rounds) for role, rounds in s.versus.items()}, s.aa)
        for s in samples.shapes
    ))


def test_a_against_a_is_almost_never_faster_or_slower():
    answers = [compare(simulated(1.0, seed=seed), ROLE).comparison for seed in range(200)]
    assert sum(answer is not Comparison.CANNOT_TELL for answer in answers) <= 2


def test_clear_effects_are_seen():
    for speedup, expected in ((1.25, Comparison.FASTER), (1 / 1.25, Comparison.SLOWER)):
        answers = [compare(simulated(speedup, seed=seed), ROLE).comparison for seed in range(30)]
        assert all(answer is expected for answer in answers)


def test_an_effect_at_the_margin_itself_cannot_be_told():
    answers = [compare(simulated(1 + MARGIN, seed=seed), ROLE).comparison for seed in range(40)]
    assert answers.count(Comparison.CANNOT_TELL) >= 36


def test_noise_widens_the_margin():
    quiet, loud = compare(simulated(1.1, seed=3), ROLE), compare(simulated(1.1, seed=3, cv=0.2, between=0.1), ROLE)
    assert quiet.margin == pytest.approx(max(MARGIN, 3 * quiet.noise))
    assert loud.noise > quiet.noise
    assert loud.comparison is Comparison.CANNOT_TELL


@given(seed=st.integers(0, 10_000), speedup=st.floats(0.5, 2.0))
@settings(max_examples=20, deadline=None)
def test_equal_samples_give_equal_answers(seed, speedup):
    assert compare(simulated(speedup, seed=seed), ROLE) == compare(simulated(speedup, seed=seed), ROLE)


@given(seed=st.integers(0, 10_000), speedup=st.floats(0.5, 2.0))
@settings(max_examples=20, deadline=None)
def test_swapping_the_sides_mirrors_the_answer(seed, speedup):
    samples = simulated(speedup, seed=seed)
    forth, back = compare(samples, ROLE), compare(swapped(samples), ROLE)
    assert back.overall.ratio == pytest.approx(1 / forth.overall.ratio)
    assert back.overall.low == pytest.approx(1 / forth.overall.high)
    mirror = {Comparison.FASTER: Comparison.SLOWER, Comparison.SLOWER: Comparison.FASTER}
    assert back.comparison is mirror.get(forth.comparison, forth.comparison)


@given(seed=st.integers(0, 10_000), speedup=st.floats(0.6, 1.6), factor=st.floats(1.0, 2.0))
@settings(max_examples=20, deadline=None)
def test_a_faster_candidate_never_gets_a_worse_answer(seed, speedup, factor):
    order = [Comparison.SLOWER, Comparison.CANNOT_TELL, Comparison.FASTER]
    samples = simulated(speedup, seed=seed)
    before, after = compare(samples, ROLE), compare(scaled(samples, factor), ROLE)
    assert after.overall.ratio == pytest.approx(before.overall.ratio * factor)
    assert order.index(after.comparison) >= order.index(before.comparison)


def test_one_bad_shape_is_a_regression_even_where_the_mean_is_faster():
    good, bad = simulated(1.6, seed=1).shapes[0], simulated(0.8, seed=2).shapes[1]
    answer = compare(Samples((good, bad)), ROLE)
    assert answer.regressions == (bad.shape,)
    assert answer.overall.ratio > 1


def test_wins_in_too_few_rounds_are_no_win():
    rounds = tuple(PairedRound((110.0,) * 4, (100.0,) * 4) for _ in range(3))
    rounds += tuple(PairedRound((99.0,) * 4, (100.0,) * 4) for _ in range(2))
    quiet = tuple(PairedRound((100.0,) * 4, (100.0,) * 4) for _ in range(5))
    answer = compare(Samples((ShapeSamples("s", 1.0, {ROLE: rounds}, quiet),)), ROLE)
    assert (answer.comparison, answer.overall.rounds_won) == (Comparison.CANNOT_TELL, 3)


def test_promising_is_a_cannot_tell_above_the_margin():
    rounds = tuple(PairedRound((value,) * 4, (100.0,) * 4) for value in (101.0, 104.0, 106.0, 105.0, 99.0))
    quiet = tuple(PairedRound((100.0,) * 4, (100.0,) * 4) for _ in range(5))
    answer = compare(Samples((ShapeSamples("s", 1.0, {ROLE: rounds}, quiet),)), ROLE)
    assert answer.comparison is Comparison.CANNOT_TELL
    assert answer.promising


def test_missing_opponent_is_said():
    with pytest.raises(ValueError, match="champion"):
        compare(simulated(1.0, seed=1), "champion")


def test_weights_of_shapes_count():
    fast, slow = (PairedRound((200.0,) * 3, (100.0,) * 3),) * 5, (PairedRound((100.0,) * 3, (100.0,) * 3),) * 5
    assert pooled([(0.75, fast), (0.25, slow)]).ratio == pytest.approx(2**0.75)


def test_no_control_means_no_measured_noise():
    samples = simulated(1.0, seed=1)
    bare = Samples(tuple(ShapeSamples(s.shape, s.weight, s.versus, ()) for s in samples.shapes))
    assert noise_of(bare) == 0.0


def test_score_is_one_for_equal_kernels_and_the_weighted_gain_otherwise():
    exact = {"candidate": (50.0,), "baseline": (100.0,)}
    rounds = (PairedRound((100.0,) * 4, (50.0,) * 4),) * 5
    shape = ShapeSamples("s", 1.0, {"baseline": rounds}, rounds, hot=exact, first_calls=exact)
    assert score(Samples((shape,)), Weights(0.7, 0.2, 0.1, 0.0)) == pytest.approx(2**0.9)
    assert score(Samples((shape,)), Weights(0.0, 0.0, 0.0, 1.0)) == pytest.approx(2.0)


def test_score_without_baseline_or_metric_is_none():
    shape = ShapeSamples("s", 1.0, {ROLE: (PairedRound((1.0,), (1.0,)),)}, ())
    assert score(Samples((shape,)), Weights()) is None
    only_latency = ShapeSamples("s", 1.0, {"baseline": (PairedRound((2.0,), (1.0,)),)}, ())
    assert score(Samples((only_latency,)), Weights()) is None
    assert score(Samples((only_latency,)), Weights(1.0, 0.0, 0.0, 0.0)) == pytest.approx(2.0)


def test_the_comparison_needs_no_numeric_library():
    names = "harness.evaluation.timing.comparison, harness.hardware.digests, harness.evaluation.sandbox"
    program = f"import sys, {names}\nprint(*sorted({{'torch', 'numpy', 'numba', 'triton'}} & set(sys.modules)))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == ""
