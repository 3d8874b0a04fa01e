"""The corpus before the judge: what the static stages let through is really run.

``python -m harness selftest`` takes every kernel through all stages and needs minutes. Here runs what represents it:
the quick subset, one kernel for every combination of kind, operator, backend and expected refusal (honest ones up to
the correctness stage, the quick ones further), and every fourth of the other honest ones up to the smoke stage. What
only a device shows needs a device.

Honest kernels get ``fewer_draws``: all of them are for what escapes the listed cases, and every operator's baselines go
through all of them in ``tests/harness/judge/test_judge_kernels.py``. Refused ones meet every probe.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from harness.domain.vocabulary import Stage
from harness.evaluation.run import Place
from harness.evaluation.selftest.corpus import CorpusKernel, read_corpus
from harness.evaluation.selftest.runner import place_of, run_one
from tests.harness.judge.evaluations import fewer_draws


def represents() -> dict[str, Stage]:
    """The kernels to run by name, each with the last stage that it goes through."""
    chosen: dict[str, Stage] = {}
    seen: set[object] = set()
    others = 0
    for kernel in read_corpus():
        place = place_of(kernel.backend, None)
        if kernel.stage in (Stage.ADMIT, Stage.STATIC) or not kernel.judged_at(place):
            continue
        group = (kernel.kind, kernel.operator, kernel.backend, kernel.expected(place), kernel.expected_stage(place))
        if kernel.quick or group not in seen:
            chosen[kernel.name] = Stage.PROBES if kernel.quick or kernel.kind != "honest" else Stage.CORRECTNESS
        elif kernel.kind == "honest":
            others += 1
            if others % 4 == 0:
                chosen[kernel.name] = Stage.SMOKE
        seen.add(group)
    return chosen


KERNELS = {kernel.name: kernel for kernel in read_corpus()}
CHOSEN = represents()


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize("name", CHOSEN)
def test_judged_as_the_table_says(name: str) -> None:
    kernel = KERNELS[name]
    with fewer_draws(place_of(kernel.backend, None)) if kernel.kind == "honest" else nullcontext():
        result = run_one(kernel, CHOSEN[name])
    assert result.right, f"{result.outcome} at {result.stage}: {result.text}"


def test_every_kind_backend_and_place_is_represented() -> None:
    run = [KERNELS[name] for name in CHOSEN]
    assert {(k.kind, k.backend) for k in run} == {(k.kind, k.backend) for k in KERNELS.values()}
    assert {k.operator for k in run} == {k.operator for k in KERNELS.values()}
    hidden = [k for k in KERNELS.values() if not k.judged_at(place_of(k.backend, None))]
    assert all(k.judged_at(Place.DEVICE) for k in hidden)


def test_one_kernel_is_judged_on_a_device_where_it_says_so() -> None:
    kernel: CorpusKernel = KERNELS["wrong/triton_race_between_programs.py"]
    assert kernel.judged_at(place_of(kernel.backend, "nvidia-h200"))
