"""Stages ``benchmark`` (a short screening) and ``recheck`` (fresh process rounds: the only figures shown)."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

from harness.backends.numba.stages import compile_request, smallest_case
from harness.domain.samples import Samples
from harness.domain.verdict import Reason, Timing
from harness.domain.vocabulary import Backend, Comparison, Evidence, Outcome, Role, Stage
from harness.evaluation import library
from harness.evaluation.judge.seeds import draw_seed
from harness.evaluation.run import Refused, Run
from harness.evaluation.timing import figures
from harness.evaluation.timing.comparison import Compared, compare, score
from harness.evaluation.timing.goal_limits import refuse_limits
from harness.evaluation.timing.record import Record
from harness.evaluation.timing.rings import Rings
from harness.evaluation.timing.session import Session
from harness.evaluation.timing.sides import AGAIN, CANDIDATE
from harness.hardware import exclusive, telemetry
from harness.hardware.cores import allowed, reserve
from harness.hardware.detect import detect_cpu, hardware_name
from harness.hardware.roofs import Roofs, roofs
from harness.operators.base import ShapePoint

ROUNDS = 5
SWEEPS = 8
"""Paired samples per round and shape, fixed beforehand."""
SCREENING_SWEEPS = 3
CLEARLY_SLOWER = 1 / 1.5
LOCK_S = 600.0
"""Seconds to wait for another measurement on the same cores."""
STEP_S = 60.0
"""The longest that one request to a timed process may take, seconds."""
OWN_LOAD = 0.5
"""What an evaluation itself may add to the load average beyond one process per core."""
Works = dict[str, figures.Work]
REPEATS = 3
"""Disturbed rounds that one recheck may measure again."""


@dataclass(frozen=True, slots=True)
class LineUp:
    """Which kernels are measured: source by side, the side of every role, the side the A/A control doubles."""

    sources: dict[str, str]
    roles: dict[str, str]
    control: str

    def roles_of(self, side: str) -> dict[str, str]:
        """The roles that ``side`` stands for."""
        return {role: known for role, known in self.roles.items() if known == side}


def benchmark(run: Run) -> None:
    """One process round of candidate and opponent: refuses the impossible and the wrong early, decides nothing.

    Stores ``run.clocks["screening_ratio"]`` (opponent / candidate), ``None`` without an opponent. A candidate that is
    clearly slower gets fewer pairs in ``recheck``, and is told so.

    Raises:
        Refused: a timed call left a wrong result, or was faster than the roof allows.
        CandidateFault: the candidate failed.
    """
    line_up = line_up_of(run)
    control = line_up.control if run.compared_role else AGAIN
    sources = {CANDIDATE: run.source, control: line_up.sources[line_up.control]}
    points = run.workload.shapes[run.request.backend]
    run.progress(Stage.BENCHMARK, 0, 1, "one screening round")
    record = Record()
    with _session(run, Stage.BENCHMARK, points) as session:
        session.round(sources, record, SCREENING_SWEEPS)
        samples = figures.samples_of(record, points, line_up.roles_of(line_up.control), line_up.control)
        timing, _ = _figures(run, points, session, samples, longer=False)
    role = run.compared_role
    ratio = timing.overall[str(role)].ratio if role else None
    run.clocks["screening_ratio"] = ratio
    run.progress(Stage.BENCHMARK, 1, 1, _screened(ratio, str(role)))


def _screened(ratio: float | None, role: str) -> str:
    if ratio is None:
        return "screened; there is nothing to compare with"
    if ratio < CLEARLY_SLOWER:
        return f"clearly slower than the {role} ({ratio:.2f}x): the recheck takes fewer pairs"
    return f"about {ratio:.2f}x the speed of the {role}"


def recheck(run: Run) -> None:
    """At least five fresh process rounds of candidate, every opponent and an A/A control, paired and interleaved.

    Sets ``run.timing``, ``run.samples``, ``run.comparison``, ``run.regressions``, ``run.suspicious`` and ``run.score``.
    A promising "cannot tell" is measured twice as long, once.

    Raises:
        Refused: a timed call left a wrong result, the roof was beaten, or a hard limit on time was broken.
        CandidateFault: the candidate failed.
    """
    line_up = line_up_of(run)
    points = run.workload.shapes[run.request.backend]
    role = run.compared_role
    ratio = run.clocks.get("screening_ratio")
    sweeps = SCREENING_SWEEPS if isinstance(ratio, float) and ratio < CLEARLY_SLOWER else SWEEPS
    record = Record()
    with _session(run, Stage.RECHECK, points) as session:
        _rounds(run, session, line_up, record, sweeps, 0)
        samples = figures.samples_of(record, points, line_up.roles, line_up.control)
        compared = compare(samples, str(role)) if role else None
        longer = compared is not None and compared.promising
        if longer:
            _rounds(run, session, line_up, record, sweeps, ROUNDS)
            samples = figures.samples_of(record, points, line_up.roles, line_up.control)
            compared = compare(samples, str(role))
        timing, work = _figures(run, points, session, samples, longer=longer)
        run.clocks["overhead_us"] = session.overhead_us
    _close_rings(run)
    refuse_limits(run, timing, samples, where="this machine", quiet=not record.noisy and _quiet())
    run.timing, run.samples = timing, samples
    run.suspicious += figures.suspicious(timing, work, record)
    library.hold_against(run, timing)
    run.clocks["load"] = telemetry.load_average()
    run.clocks["speed"] = round(min((speed for shape in samples.shapes for speed in shape.speed), default=1.0), 3)
    _conclude(run, compared, samples, record)


def _conclude(run: Run, compared: Compared | None, samples: Samples, record: Record) -> None:
    if compared is not None:
        run.comparison, run.regressions = compared.comparison, compared.regressions
    else:
        run.comparison = Comparison.NONE
    if run.opponent(Role.BASELINE) is not None:
        run.score = score(samples, run.request.goal.objective.weights)
    if record.disturbed:
        text = (f"{len(record.disturbed)} round(s) stayed disturbed after repeats: {record.disturbed[0]}. "
                "The noise of the A/A control contains it.")
        run.notes.append(Reason("noisy_machine", Stage.RECHECK, text))


def line_up_of(run: Run) -> LineUp:
    """Sides and roles of this evaluation; equal sources share one process."""
    sources = {CANDIDATE: run.source}
    roles: dict[str, str] = {}
    for opponent in run.request.against:
        same = next((side for side, text in sources.items() if side != CANDIDATE and text == opponent.source), None)
        side = same or str(opponent.role)
        sources[side] = opponent.source
        roles[str(opponent.role)] = side
    control = roles[str(run.compared_role)] if run.compared_role else CANDIDATE
    return LineUp(sources, roles, control)


@contextlib.contextmanager
def _session(run: Run, stage: Stage, points: tuple[ShapePoint, ...]) -> Iterator[Session]:
    """A session that has the clock's cores for itself. The wait for them is not charged to the candidate's time."""
    if run.seed is None:
        run.seed = draw_seed()

    def waiting() -> None:
        run.progress(stage, 0, 1, "waiting for another measurement on this machine")

    asked = time.monotonic()
    with exclusive.device(hardware_name(), LOCK_S, waiting):
        run.deadline += time.monotonic() - asked
        session = _open_session(run, stage, points)
        try:
            yield session
        finally:
            session.close()


def _open_session(run: Run, stage: Stage, points: tuple[ShapePoint, ...]) -> Session:
    override = run.request.goal.limits.tolerance
    return Session(
        run.open_workers(str(Backend.NUMBA)), points, _rings(run, points), stage=stage, cores=reserve(),
        compile_request=compile_request(run.spec, smallest_case(run.spec)),
        deadline_s=min(STEP_S, max(1.0, run.remaining_s)), ensure_time=run.ensure_time,
        relative=override.relative if override else None,
    )


def _rings(run: Run, points: tuple[ShapePoint, ...]) -> Rings:
    """The rings of ``run``, made now where there are none. They go with the run at the latest."""
    if run.bench is None:
        assert run.seed is not None
        run.bench = Rings(run.spec, points, run.workload.dtypes[run.request.backend], run.workload.regimes, run.seed,
                          detect_cpu().last_level_bytes)
        weakref.finalize(run, run.bench.close)
    return run.bench


def _close_rings(run: Run) -> None:
    if run.bench is not None:
        run.bench.close()
        run.bench = None


def _rounds(run: Run, session: Session, line_up: LineUp, record: Record, sweeps: int, done: int) -> None:
    sources = {**line_up.sources, AGAIN: line_up.sources[line_up.control]}
    repeats = REPEATS
    for index in range(done, done + ROUNDS):
        run.ensure_time()
        run.progress(Stage.RECHECK, index, done + ROUNDS, f"process round {index + 1}")
        repeats -= session.quiet_round(sources, record, sweeps, min(1, repeats))
    run.progress(Stage.RECHECK, done + ROUNDS, done + ROUNDS, "measured")


def _figures(run: Run, points: tuple[ShapePoint, ...], session: Session, samples: Samples, *, longer: bool
             ) -> tuple[Timing, Works]:
    """The figures and what they are held against. Roofs that were beaten are measured again before anyone is refused.

    Raises:
        Refused: a shape is faster than the roof allows.
    """
    for afresh in (False, True):
        work = _work(run, points, session, roofs(afresh=afresh))
        timing = figures.timing_of(samples, work, evidence=Evidence.BOUNDED, longer=longer)
        beaten = figures.impossible(timing, work)
        if not beaten:
            return timing, work
    text = f"{beaten[0]} Work is missing or done elsewhere: a call has to read all inputs and write all outputs."
    raise Refused(Outcome.REWARD_HACK, Reason("below_floor", run.stage, text))


def _work(run: Run, points: tuple[ShapePoint, ...], session: Session, measured: Roofs) -> Works:
    """Bytes, operations and floors of every shape. The caches may still hold a part of a ring, because the judge has
    just poisoned it: the least time does not charge for that part."""
    cache = detect_cpu().last_level_bytes
    found = {}
    for point in points:
        nbytes, flops = run.spec.bytes_per_call(point.work, 4), run.spec.flops_per_call(point.work)
        footprint = session.rings[point.label].footprint
        charged = round(nbytes * (1 - min(cache / footprint, 0.75)))
        found[point.label] = figures.Work(
            nbytes, flops, floor_s=measured.floor_s(nbytes, flops, footprint),
            least_s=measured.floor_s(charged, flops, footprint),
        )
    return found


def _quiet() -> bool:
    """Whether little else runs here: only then is an unsteady time the kernel's own."""
    return telemetry.load_average() <= len(allowed()) + OWN_LOAD
