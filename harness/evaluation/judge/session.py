"""The judge's open worker, kept from smoke to probes so that the candidate is compiled once for all of them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import cast

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome
from harness.evaluation.buffers import Layout
from harness.evaluation.judge.checking import Checked, check
from harness.evaluation.judge.inputs import make_inputs
from harness.evaluation.judge.lending import Collected, Lending
from harness.evaluation.judge.oracle import Expected, InvalidReference, expect, library_errors
from harness.evaluation.judge.seeds import draw_seed
from harness.evaluation.ports import ROW_GAP, Announced, CallReport, CandidateFault, PlanReplayer, Worker
from harness.evaluation.run import Place, Refused, Run
from harness.operators.base import Dims
from harness.operators.implementation import Tensors

MODES = {Place.NUMBA: "numba", Place.INTERPRETER: "triton-interpret", Place.DEVICE: "triton-device"}
CALL_S = 60.0
THREADS = 8
Answers = dict[str, Expected]


@dataclass(frozen=True, slots=True)
class Problem:
    """One concrete call: sizes, contents, attributes, dtype, layout and elements between strided rows."""

    name: str
    dims: Dims
    inputs: Tensors
    attributes: dict[str, float]
    dtype: str
    layout: Layout = "dense"
    gap: int = ROW_GAP


class Session:
    """A worker that holds the candidate, and the secret drawn after it was imported."""

    def __init__(self, run: Run) -> None:
        """Open a worker and import the candidate. Raises ``CandidateFault`` when that fails.

        For a device, the plans of all cases are made here, at once: they depend on sizes alone, so they need no seed.
        """
        self._run = run
        self._answers: dict[int, tuple[Problem, Future[Answers]]] = {}  # by identity of the problem, kept beside it
        self._libraries: dict[int, Future[float | None]] = {}
        self._last: tuple[Problem, Answers] | None = None
        self.worker = open_worker(run)
        if run.place is not Place.DEVICE:
            weakref.finalize(run, self.worker.close)
            return  # a device worker knows its run, which would never end so; the pipeline closes it
        try:
            cast(PlanReplayer, self.worker).prepare(_announced(run))
        except BaseException:
            self.worker.close()
            raise

    def problem(
        self,
        name: str,
        dims: Dims,
        regimes: str | tuple[str, ...],
        attributes: Mapping[str, float],
        dtype: str,
        layout: Layout = "dense",
        gap: int = ROW_GAP,
    ) -> Problem:
        """Inputs from the secret seed; ``name`` and the stage are the labels that contents derive from."""
        run = self._run
        if run.seed is None:
            raise RuntimeError("inputs exist only after the candidate was imported and the seed was drawn")
        complete = run.spec.attributes_for(dims, attributes)
        inputs = make_inputs(run.spec, dims, regimes, complete, dtype, run.seed, str(run.stage), name)
        return Problem(name, dims, inputs, complete, dtype, layout, gap)

    def prepare(self, problems: Sequence[Problem], *, libraries: bool = False) -> None:
        """Tell of ``problems`` that will be judged next. On a device their plans, binaries and answers (and errors of
        ``libraries``) are made now, in parallel, while nobody's device is held; anywhere else this does nothing."""
        if self._run.place is not Place.DEVICE:
            return
        calls = [Announced(p.dims, p.attributes, p.dtype, p.layout, p.gap) for p in problems]
        with ThreadPoolExecutor(max(1, min(THREADS, len(os.sched_getaffinity(0))))) as pool:
            for problem in problems:
                self._answers[id(problem)] = (problem, pool.submit(self._answer, problem))
            if libraries:  # behind all answers, which they need
                self._libraries |= {id(problem): pool.submit(self._library, problem) for problem in problems}
            cast(PlanReplayer, self.worker).prepare(calls)
            wait([future for _, future in self._answers.values()])
            wait(self._libraries.values())

    def answer(self, problem: Problem) -> Answers:
        """The oracle's answer. Raises ``Refused`` with ``invalid_reference`` when the reference fails."""
        if id(problem) in self._answers:
            return self._answers[id(problem)][1].result()
        last = self._last  # smoke judges in two threads: look once
        if last is None or last[0] is not problem:
            last = self._last = (problem, self._answer(problem))
        return last[1]

    def library_error(self, problem: Problem) -> float | None:
        """The largest error of the operator's first library. Raises as ``answer`` does."""
        known = self._libraries.get(id(problem))
        return self._library(problem) if known is None else known.result()

    def _library(self, problem: Problem) -> float | None:
        return library_errors(self._run.spec, problem.inputs, problem.attributes, self.answer(problem))

    def _answer(self, problem: Problem) -> Answers:
        override = self._run.request.goal.limits.tolerance
        relative = override.relative if override else None
        try:
            return expect(self._run.spec, problem.dims, problem.inputs, problem.attributes, problem.dtype, relative)
        except InvalidReference as error:
            raise invalid(self._run, error, problem.name) from error

    def judge(self, problem: Problem, worker: Worker | None = None) -> Checked:
        """Call the candidate on ``problem`` and judge what it left; faults are returned, not raised."""
        self._run.ensure_time()
        answers = self.answer(problem)
        with self.lend(problem) as lending:
            report = call_case(worker or self.worker, lending, problem.name)
            return replace(check(lending, answers, self._run.stage, problem.name), scratch_bytes=report.scratch_bytes)

    def outputs(self, problem: Problem) -> Collected:
        """Call the candidate on ``problem`` and return copies of its outputs, guards checked.

        Raises ``Refused`` when a guard band is broken.
        """
        self._run.ensure_time()
        with self.lend(problem) as lending:
            call_case(self.worker, lending, problem.name)
            for outcome, reason in lending.broken_guards(self._run.stage, problem.name):
                raise Refused(outcome, reason)
            return lending.collect()

    def lend(self, problem: Problem) -> Lending:
        """Memory for one call."""
        return Lending(
            self._run.spec, problem.inputs, problem.attributes, problem.dtype, problem.layout, gap=problem.gap)

    def close(self) -> None:
        """Kill the worker; idempotent."""
        self.worker.close()


def call_case(worker: Worker, lending: Lending, case: str) -> CallReport:
    """Call the candidate on ``lending``. Raises ``CandidateFault`` that names ``case``."""
    try:
        return worker.call(lending.lent, lending.attributes)
    except CandidateFault as failed:
        raise CandidateFault(replace(failed.fault, case=case)) from failed


def invalid(run: Run, error: InvalidReference, case: str) -> Refused:
    """The reference failed by its own rules."""
    return Refused(Outcome.INVALID_REFERENCE, Reason(error.code, run.stage, error.text, case=case))


def _announced(run: Run) -> list[Announced]:
    """All cases of the operator as they will be called."""
    usual = run.workload.dtypes[run.request.backend]
    return [Announced(case.dims, run.spec.attributes_for(case.dims, case.attributes), case.dtype or usual, case.layout)
            for case in run.spec.cases]


def open_worker(run: Run, *, bounds_checks: bool = False, threads: int | None = None) -> Worker:
    """A fresh process of the backend's mode with the candidate imported. numba's kernels run on ``threads`` that are
    made to meet, or on as many as the clock has; their fresh memory is never zero by luck. Raises ``CandidateFault``.
    """
    opener = run.open_workers(MODES[run.place])
    options = {"filled": True, "threads": threads} if run.place is Place.NUMBA else {"target": run.target}
    worker = opener.open(
        bounds_checks=bounds_checks, deadline_s=max(1.0, min(CALL_S, run.remaining_s)), options=options)
    try:
        worker.load(run.source)
    except BaseException:
        worker.close()
        raise
    return worker


def session_of(run: Run) -> Session:
    """The open session of ``run``, opened now when there is none; the seed is drawn only after the import."""
    if run.judging is None:
        run.judging = Session(run)
        if run.seed is None:
            run.seed = draw_seed()
    return run.judging


def end_session(run: Run) -> None:
    """Close the session of ``run`` if one is open."""
    if run.judging is not None:
        run.judging.close()
        run.judging = None
