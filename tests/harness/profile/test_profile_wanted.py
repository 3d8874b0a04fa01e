"""Who is profiled: whoever asks, in a round only what the next round starts from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.domain.vocabulary import Backend, Comparison, Purpose
from harness.evaluation.run import Run
from harness.operators import registry
from tests.harness.judge.evaluations import make_run


@pytest.mark.parametrize(("asked", "purpose", "comparison", "wanted"), [
    (False, Purpose.PROBE, Comparison.FASTER, False),
    (True, Purpose.PROBE, Comparison.SLOWER, True),
    (True, Purpose.PROMOTION, Comparison.CANNOT_TELL, True),
    (True, Purpose.ROUND, Comparison.NONE, True),
    (True, Purpose.ROUND, Comparison.FASTER, True),
    (True, Purpose.ROUND, Comparison.SLOWER, False),
    (True, Purpose.ROUND, Comparison.CANNOT_TELL, False),
])
def test_a_profile_is_made_where_it_is_worth_it(asked: bool, purpose: Purpose, comparison: Comparison,
                                                wanted: bool) -> None:
    spec = registry.get("softmax")
    run: Run = make_run(spec, Backend.TRITON, spec.baseline(Backend.TRITON), None)
    run.request = replace(run.request, profile=asked, purpose=purpose)
    run.comparison = comparison
    assert run.worth_profiling is wanted
