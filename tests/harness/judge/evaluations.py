"""Builds a ``Run`` and sends it through the judge's stages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from harness.domain.digest import digest_bytes
from harness.domain.goal import Goal, Limits
from harness.domain.request import EvaluationRequest, OperatorRef, SourceRef
from harness.domain.vocabulary import Backend, Outcome, Purpose, Stage
from harness.evaluation.judge.amounts import AMOUNTS
from harness.evaluation.judge.correctness import correctness
from harness.evaluation.judge.probes import probes
from harness.evaluation.judge.smoke import smoke
from harness.evaluation.ports import CandidateFault, WorkerOpener
from harness.evaluation.run import Place, Refused, Run
from harness.operators.base import OperatorSpec

SMALL_BYTES = 60_000
SMALL_SIZES = {
    "rows": 12, "cols": 200, "batch": 2, "max_seq": 28, "kv_heads": 2, "q_heads": 3, "dim": 32, "seq": 20,
    "half": 24, "m": 12, "k": 9, "n": 40, "vocab": 200,
}
STAGES = {Stage.SMOKE: smoke, Stage.CORRECTNESS: correctness, Stage.PROBES: probes}


def make_run(
    spec: OperatorSpec, backend: Backend, source: str, opener: Any, limits: Limits | None = None, small: bool = False
) -> Run:
    """An evaluation of ``source``; ``small`` leaves out measured shapes and large cases, which plain Python is too slow
    for, and draws small sizes only."""
    goal = Goal(operator=spec.name, backend=backend, hardware="cpu-test-1t", workload="llm", limits=limits or Limits())
    request = EvaluationRequest(
        job="j",
        nonce="n",
        purpose=Purpose.ROUND,
        operator=OperatorRef(spec.name, spec.version),
        backend=backend,
        hardware="cpu-test-1t",
        workload="llm",
        goal=goal,
        candidate=SourceRef(digest_bytes(source.encode()), source),
    )
    workload = spec.workloads["llm"]
    if small:
        workload = replace(workload, shapes={backend: ()})
        spec = replace(
            spec,
            cases=tuple(c for c in spec.cases if c.smoke or spec.bytes_per_call(c.dims, 4) <= SMALL_BYTES),
            domain={dim: replace(span, high=min(span.high, SMALL_SIZES[dim])) for dim, span in spec.domain.items()},
        )

    def open_workers(mode: str) -> WorkerOpener:
        return opener(mode) if callable(opener) else opener

    target = "nvidia-h200" if backend is Backend.TRITON else None
    return Run(
        request=request,
        spec=spec,
        workload=workload,
        open_workers=open_workers,
        progress=lambda *_: None,
        target=target,
    )


@contextmanager
def fewer_draws(place: Place) -> Iterator[None]:
    """A quarter of the drawn sizes and of the calls with special values, one of each at least, each of a quarter of the
    work, none beside measured sizes: for kernels that are right. What draws are for is wrong kernels, which meet all of
    them, and so do the baselines."""
    full = AMOUNTS[place]
    work = full.elements // 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(AMOUNTS, place, replace(
            full, sizes=max(1, full.sizes // 4), specials=max(1, full.specials // 4), special_measured=0,
            special_others=min(1, full.special_others), special_elements=work, elements=work,
            programs=full.programs // 4))
        yield


def judged_right(run: Run) -> tuple[Outcome, Any]:
    """``judged`` with ``fewer_draws``."""
    with fewer_draws(run.place):
        return judged(run)


def judged(run: Run) -> tuple[Outcome, Any]:
    """Outcome and first reason (or fault) of smoke, correctness and probes."""
    for stage, work in STAGES.items():
        run.stage = stage
        try:
            work(run)
        except Refused as refused:
            return refused.outcome, refused.reasons[0]
        except CandidateFault as failed:
            return failed.fault.outcome, failed.fault
    return Outcome.PASSED, None
