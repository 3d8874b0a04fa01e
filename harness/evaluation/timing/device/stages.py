"""Stages ``benchmark`` and ``recheck`` on a GPU: a short screening, then launcher rounds with all figures shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.backends.triton.device import faults
from harness.backends.triton.device.holding import Holding
from harness.backends.triton.device.stages import NATIVE
from harness.backends.triton.launcher.client import DeviceFault
from harness.domain.errors import InfrastructureError
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Comparison, Evidence, Outcome, Role, Stage
from harness.evaluation import library
from harness.evaluation.judge.oracle import InvalidReference
from harness.evaluation.ports import CandidateFault
from harness.evaluation.run import Refused, Run
from harness.evaluation.timing import figures
from harness.evaluation.timing.comparison import compare, score
from harness.evaluation.timing.device.bench import Bench, bench_of, close_bench
from harness.evaluation.timing.device.evidence import assess
from harness.evaluation.timing.device.findings import note, refuse_impossible, refuse_limits, with_host
from harness.evaluation.timing.device.opponents import unusable
from harness.evaluation.timing.device.session import Kernel, Session
from harness.evaluation.timing.device.verify import LEAST_VERIFIED
from harness.evaluation.timing.device.work import work_of
from harness.evaluation.timing.session import Record
from harness.evaluation.timing.sides import AGAIN, CANDIDATE

ROUNDS = 5
PAIRS, SCREENING_PAIRS, LEAST_PAIRS = 20, 8, 8
"""Paired samples per round and shape, fixed before the first of them is taken."""
LONG_US = 1000.0
"""Calls above this get fewer pairs, down to ``LEAST_PAIRS``: their spread is small and the device is dear."""
CLEARLY_SLOWER = 1 / 1.5
REPEATS = 3
"""Disturbed rounds of a shape that one recheck may measure again."""
BLAME_PAIRS = 2
REPEATABLE = ("illegal_address", "misaligned_address", "launch_failed")
"""Faults that come at once; nobody waits for a second time-out."""

Kernels = Mapping[str, Kernel]


def benchmark(run: Run) -> None:
    """One launcher round of candidate and opponent per shape: refuses the impossible and the wrong early, decides
    nothing.

    Stores ``run.clocks["screening_ratio"]`` (opponent / candidate), ``None`` without an opponent, and what the calls
    take, from which the recheck chooses batches and pairs.

    Raises:
        Refused: a timed call left a wrong result or a late one, or was faster than the roof allows.
        CandidateFault: the candidate failed.
        InfrastructureError: anything else failed.
    """
    run.progress(Stage.BENCHMARK, 0, 1, "recording the opponents and making inputs")
    bench = bench_of(run)
    control = bench.line_up.control if run.compared_role else AGAIN
    kernels = {CANDIDATE: bench.kernels[CANDIDATE], control: bench.kernels[bench.line_up.control]}
    run.progress(Stage.BENCHMARK, 0, 1, "one screening round")
    holding = bench.held_for(run)
    try:
        def screen(session: Session) -> None:
            session.rounds(1, dict.fromkeys(bench.shapes, SCREENING_PAIRS), slopes=False)

        session = _measured(run, holding, bench, kernels, screen)
        work = work_of(run, bench, holding.device(), session)
    finally:
        holding.pause()
    _verified(run, session, 1)
    samples = session.samples(bench.line_up.roles_of(bench.line_up.control), bench.line_up.control)
    timing = figures.timing_of(samples, work, evidence=Evidence.CLAIMED, longer=False)
    refuse_impossible(timing, work, Stage.BENCHMARK)
    for label, shape in bench.shapes.items():
        shape.settle([session.logs[label].us(side) for side in kernels])
    role = run.compared_role
    ratio = timing.overall[str(role)].ratio if role else None
    run.clocks["screening_ratio"] = ratio
    text = "screened" if ratio is None else f"about {ratio:.2f}x the speed of the {role}"
    run.progress(Stage.BENCHMARK, 1, 1, text)


def recheck(run: Run) -> None:
    """At least five launcher rounds of candidate, every opponent and an A/A control, paired and interleaved.

    Sets ``run.timing``, ``run.samples``, ``run.comparison``, ``run.regressions``, ``run.suspicious``, ``run.score``. A
    promising "cannot tell" is measured twice as long, once.

    Raises:
        Refused: a timed call left a wrong result or a late one, the roof was beaten, or a hard limit was broken.
        CandidateFault: the candidate failed.
        InfrastructureError: anything else failed.
    """
    bench = bench_of(run)
    line_up, role = bench.line_up, run.compared_role
    kernels = {**bench.kernels, AGAIN: bench.kernels[line_up.control]}
    holding = bench.held_for(run)
    longer = False
    try:
        def rounds(session: Session) -> None:
            nonlocal longer
            pairs = {label: pairs_for(shape.slowest_us, run.clocks.get("screening_ratio"))
                     for label, shape in bench.shapes.items()}
            told = _teller(run, ROUNDS)
            session.rounds(ROUNDS, pairs, repeats=REPEATS, told=told)
            longer = role is not None and compare(session.samples(line_up.roles, line_up.control), str(role)).promising
            if longer:
                session.rounds(ROUNDS, pairs, repeats=REPEATS, told=told)

        session = _measured(run, holding, bench, kernels, rounds)
        work = work_of(run, bench, holding.device(), session)
    finally:
        holding.release()
    run.progress(Stage.RECHECK, ROUNDS, ROUNDS, "verifying timed outputs")
    run.clocks["verified_samples"] = _verified(run, session, LEAST_VERIFIED)
    if not run.request.profile:  # the profile repeats these plans on these contents
        close_bench(run)
    samples = session.samples(line_up.roles, line_up.control)
    compared = compare(samples, str(role)) if role else None
    evidence, doubts = assess({label: {side: log.us(side) for side in kernels} for label, log in session.logs.items()},
                              {label: log.slopes for label, log in session.logs.items()},
                              {label: one.least_s for label, one in work.items()})
    timing = figures.timing_of(samples, work, evidence=evidence, longer=longer)
    refuse_impossible(timing, work, Stage.RECHECK)
    note(run, session, doubts)
    refuse_limits(run, timing, samples, session)
    run.timing, run.samples = with_host(timing, run.clocks.get(NATIVE)), samples
    run.suspicious += figures.suspicious(timing, work, Record())
    library.hold_against(run, timing)
    run.comparison = compared.comparison if compared else Comparison.NONE
    run.regressions = compared.regressions if compared else ()
    if run.opponent(Role.BASELINE) is not None:
        run.score = score(samples, run.request.goal.objective.weights)


def pairs_for(slowest_us: float | None, ratio: float | None) -> int:
    """Pairs per round for a shape whose slowest kernel takes ``slowest_us``; ``ratio`` is the screening's."""
    if ratio is not None and ratio < CLEARLY_SLOWER:
        return SCREENING_PAIRS
    return max(LEAST_PAIRS, min(PAIRS, round(PAIRS * LONG_US / max(slowest_us or 1.0, 1.0))))


def _teller(run: Run, count: int) -> Callable[[int], None]:
    return lambda number: run.progress(Stage.RECHECK, number, count, f"launcher round {number + 1}")


def _measured(run: Run, holding: Holding, bench: Bench, kernels: Kernels, work: Callable[[Session], None]) -> Session:
    """A session of ``kernels`` after ``work``. Where a kernel fails on the device, it is found out whose it was."""
    session = bench.session(run, holding.device(), run.stage)
    try:
        session.load(kernels)
        work(session)
    except DeviceFault as fault:
        raise _blamed(run, holding, bench, kernels, fault) from fault
    return session


def _blamed(run: Run, holding: Holding, bench: Bench, kernels: Kernels, fault: DeviceFault) -> Exception:
    """The candidate's fault, unless another kernel fails by itself, too; each in a launcher without the candidate."""
    holding.renew()
    for side, kernel in kernels.items():
        if side == AGAIN or kernel is kernels[CANDIDATE]:
            continue
        again = _fault_alone(run, holding, bench, {side: kernel})
        if again is not None:
            return unusable(side, again.text)
    found = faults.failed(fault)
    where = "" if fault.where is None else f" It was being timed on {fault.where}."
    text = f"{found.text}{where}{_repeated(run, holding, bench, kernels, fault)}"
    return CandidateFault(replace(found, text=text, case=fault.where))


def _repeated(run: Run, holding: Holding, bench: Bench, kernels: Kernels, fault: DeviceFault) -> str:
    """Whether a kernel that failed fails again by itself, as the end of a text. The verdict does not depend on it: a
    kernel that fails now and then is no better."""
    if fault.code not in REPEATABLE:
        return ""
    try:
        holding.renew()
        again = _fault_alone(run, holding, bench, {CANDIDATE: kernels[CANDIDATE]})
    except (Refused, CandidateFault):
        return " Called alone afterwards it was refused for something else."
    except InfrastructureError as error:
        return f" It could not be called alone afterwards: {error.text}"
    if again is None:
        return (f" Called alone afterwards, in a fresh launcher, {BLAME_PAIRS} samples of every shape did not fail: it "
                "depends on what lies around its data, or on chance.")
    shape = "" if again.where is None else f" on {again.where}"
    return f" Called alone afterwards, in a fresh launcher, it failed again{shape}."


def _fault_alone(run: Run, holding: Holding, bench: Bench, kernel: Kernels) -> DeviceFault | None:
    """The fault of one kernel that is called alone on every shape, ``None`` where it does not fail."""
    session = bench.session(run, holding.device(), run.stage)
    try:
        session.load(kernel)
        session.rounds(1, dict.fromkeys(bench.shapes, BLAME_PAIRS), slopes=False)
    except DeviceFault as fault:
        return fault
    return None


def _verified(run: Run, session: Session, least: int) -> int:
    """Verify timed outputs, at least so many of every shape; how many. Raises ``Refused`` for a wrong one."""
    try:
        return session.verify(least)
    except InvalidReference as error:
        raise Refused(Outcome.INVALID_REFERENCE, Reason(error.code, run.stage, error.text)) from error
