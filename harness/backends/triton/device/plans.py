"""Plans and binaries of a candidate's calls, each made once: recorded in sandboxes, compiled by the clean process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from harness.backends.triton import planning
from harness.backends.triton.check import PlanForged
from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.compiled import CompileFailed
from harness.backends.triton.compiler.process import compiler_for
from harness.backends.triton.device import faults
from harness.backends.triton.device.documents import Documents, key_of, kinds_of
from harness.backends.triton.launcher.binary import Binary
from harness.backends.triton.targets import Target
from harness.domain.digest import digest_document
from harness.domain.plan import LaunchPlan
from harness.evaluation.ports import CandidateFault, Fault

CALLS_PER_PLANNER = 4
"""A further process pays for its import only where it has at least so many calls to record."""
MOST_PLANNERS = 8
CODES_PER_PROVER = 4
MOST_PROVERS = 4
CODE = ("function", "ir", "signature", "constants", "divisible", "options")
"""What a launch's code depends on; grids and arguments are the rest."""


def _groups(plans: list[LaunchPlan]) -> list[list[LaunchPlan]]:
    """One plan for every set of codes, dealt out to a few provers."""
    distinct = {
        digest_document([[step["launch"][name] for name in CODE] for step in plan.steps if "launch" in step]): plan
        for plan in plans
    }
    chosen = list(distinct.values())
    provers = min(MOST_PROVERS, max(1, len(os.sched_getaffinity(0)) // 2), -(-len(chosen) // CODES_PER_PROVER))
    return [chosen[number::provers] for number in range(provers)]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that can run: its plan and one binary per launch."""

    plan: LaunchPlan
    binaries: tuple[Binary, ...]

    @property
    def launches(self) -> tuple[str, ...]:
        """The kernel functions launched, in order."""
        return tuple(step["launch"]["function"] for step in self.plan.steps if "launch" in step)


class _Left:
    """Calls that are still to be recorded. A planner gets those first that are most alike to what it has met: what
    Triton compiled for one serves the next of the same process."""

    def __init__(self, calls: Mapping[str, tuple[Documents, Mapping[str, float]]]) -> None:
        self._lock, self._calls = threading.Lock(), dict(calls)
        self._kinds = {key: kinds_of(*call) for key, call in calls.items()}
        self._begun: set[object] = set()

    def take(self, met: set[object]) -> tuple[str, tuple[Documents, Mapping[str, float]]] | None:
        """The next call for a planner that has ``met`` these kinds: of one of them, the narrower the better, else of
        one that nobody has, else any; ``None`` where none is left."""
        def foreignness(key: str) -> int:
            narrow, wide = self._kinds[key]
            return 0 if narrow in met else 1 if wide in met else 2 if wide not in self._begun else 3

        with self._lock:
            if not self._calls:
                return None
            key = min(self._calls, key=foreignness)
            met.update(self._kinds[key])
            self._begun.update(self._kinds[key])
            return key, self._calls.pop(key)


class Plans:
    """Records with up to ``MOST_PLANNERS`` sandbox processes that all hold the candidate; proves that the recorded code
    follows from the reviewed file, and compiles it."""

    def __init__(self, open_planner: Callable[[], Any], target: Target, remaining_s: Callable[[], float],
                 prove: Callable[[Sequence[LaunchPlan]], None]) -> None:
        """``open_planner`` opens a ``triton-plan`` worker; nothing is opened before ``load``. ``prove`` raises where a
        plan's code does not follow from the file; several threads call it."""
        self._open, self._target, self._remaining_s, self._prove = open_planner, target, remaining_s, prove
        self._source = ""
        self._planners: list[Any] = []
        self._met: dict[int, set[object]] = {}  # kinds of calls by the planner, which is kept to the end
        self._plans: dict[str, LaunchPlan | Fault] = {}
        self._ready: dict[str, Prepared | Fault] = {}

    def load(self, source: str) -> float:
        """Import the candidate in a first process; seconds. Raises ``CandidateFault``."""
        began = time.perf_counter()
        self._source = source
        self._planners.append(self._loaded())
        return time.perf_counter() - began

    def know(self, documents: Documents, attributes: Mapping[str, float], plan: LaunchPlan) -> None:
        """Take ``plan``, recorded earlier and about to be timed, for the call: what is timed is what is judged."""
        self._plans[key_of(documents, attributes)] = plan

    def prepare(self, calls: Sequence[tuple[Documents, Mapping[str, float]]]) -> None:
        """Record, prove and compile all ``calls`` at once. Faults are kept for the call they belong to.

        Raises:
            Refused: code that does not follow from the file.
            CandidateFault: a process could not even import the candidate, or crashed deriving its code.
        """
        wanted = {key_of(*call): call for call in calls}
        missing = {key: call for key, call in wanted.items() if key not in self._plans}
        if missing:
            self._record(missing)
        fresh = [key for key in wanted if key in self._plans and key not in self._ready]
        runnable = {}
        for key in fresh:
            found = self._plans[key]
            fault = found if isinstance(found, Fault) else faults.recorded(found)
            if fault is not None:
                self._ready[key] = fault
            elif isinstance(found, LaunchPlan):
                runnable[key] = found
        with ThreadPoolExecutor(MOST_PROVERS) as pool:
            proofs = [pool.submit(self._prove, group) for group in _groups(list(runnable.values()))]
            self._compile(runnable)
            for proof in proofs:
                proof.result()

    def get(self, documents: Documents, attributes: Mapping[str, float]) -> Prepared:
        """The prepared call, made now where it was not announced. Raises ``CandidateFault``."""
        key = key_of(documents, attributes)
        if key not in self._ready:
            self.prepare([(documents, attributes)])
        found = self._ready[key]
        if isinstance(found, Fault):
            raise CandidateFault(found)
        return found

    def close(self) -> None:
        """Kill the sandbox processes; idempotent."""
        while self._planners:
            self._planners.pop().close()

    def _loaded(self) -> Any:
        planner = self._open()
        try:
            planner.load(self._source)
        except BaseException:
            planner.close()
            raise
        return planner

    def _record(self, calls: Mapping[str, tuple[Documents, Mapping[str, float]]]) -> None:
        """Plans of ``calls``, several at a time. A fault stops it: what is left is recorded when the judge gets there,
        so that a candidate that hangs everywhere costs one deadline and not one per call."""
        wish = max(1, min(MOST_PLANNERS, len(os.sched_getaffinity(0)), -(-len(calls) // CALLS_PER_PLANNER)))
        with ThreadPoolExecutor(wish) as pool:
            opened = [pool.submit(self._loaded) for _ in range(wish - len(self._planners))]
            self._planners += [future.result() for future in opened if future.exception() is None]
            for future in opened:
                future.result()
            left, stop = _Left(calls), threading.Event()
            for done in [pool.submit(self._some, planner, left, stop) for planner in list(self._planners)]:
                done.result()

    def _some(self, planner: Any, left: _Left, stop: threading.Event) -> None:
        """Record calls with ``planner`` until none is left or one fails."""
        met = self._met.setdefault(id(planner), set())
        while not stop.is_set() and (taken := left.take(met)) is not None:
            key, call = taken
            found = self._plan_or_fault(planner, *call)
            self._plans[key] = found
            if isinstance(found, Fault):
                stop.set()
                planner.close()  # it may be dead, and what it holds is not worth another question
                self._planners.remove(planner)
                self._met.pop(id(planner))

    def _plan_or_fault(self, planner: Any, documents: Documents, attributes: Mapping[str, float]) -> LaunchPlan | Fault:
        try:
            return planning.record_one(planner, documents, attributes, self._target, deadline_s=self._patience())
        except PlanForged as error:
            return faults.forged(error)
        except CandidateFault as error:
            return error.fault

    def _compile(self, plans: Mapping[str, LaunchPlan]) -> None:
        """All at once; where one fails, one by one, so that the fault is that of its own call."""
        try:
            rows = self._binaries(list(plans.values()))
        except CompileFailed as failed:
            if len(plans) == 1:
                self._ready[next(iter(plans))] = faults.uncompiled(failed)
                return
            for key, plan in plans.items():
                self._compile({key: plan})
            return
        for (key, plan), row in zip(plans.items(), rows, strict=True):
            self._ready[key] = Prepared(plan, row)

    def _binaries(self, plans: list[LaunchPlan]) -> list[tuple[Binary, ...]]:
        return binaries_of(plans, compiler_for(self._target), deadline_s=self._patience()) if plans else []

    def _patience(self) -> float:
        return max(1.0, min(60.0, self._remaining_s()))
