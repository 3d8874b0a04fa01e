"""The corpus before the judge: what the static stages let through is really run.

Honest kernels outside the quick subset go up to the smoke stage here; the self-test takes them through all stages.
"""

from __future__ import annotations

import pytest

from harness.domain.vocabulary import Stage
from harness.evaluation.selftest.corpus import CorpusKernel, read_corpus
from harness.evaluation.selftest.runner import run_one

RUN = [kernel for kernel in read_corpus() if kernel.stage not in (Stage.ADMIT, Stage.STATIC)]


@pytest.mark.sandbox
@pytest.mark.parametrize("kernel", RUN, ids=[kernel.name for kernel in RUN])
def test_judged_as_the_table_says(kernel: CorpusKernel) -> None:
    until = Stage.SMOKE if kernel.kind == "honest" and not kernel.quick else Stage.PROBES
    result = run_one(kernel, until)
    assert result.right, f"{result.outcome} at {result.stage}: {result.text}"
