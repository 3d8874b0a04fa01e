"""One agent's campaign on one operator by the ordinary loop, kept as the report shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.agents.registry import make_agent
from harness.campaign.folder import CampaignFolder
from harness.campaign.local import Evaluator, Step, measure_final, run_campaign
from harness.campaign.predicted import stated_predictions
from harness.campaign.report import headline
from harness.campaign.resume import Resumed, resumed
from harness.campaign.start import start_state
from harness.domain.codec import from_document, to_document
from harness.domain.digest import digest_source
from harness.domain.errors import HarnessError
from harness.domain.goal import AgentChoice, Budget, Goal
from harness.domain.report import CurvePoint, FinalKernel, ReportCampaign, ReportKernel
from harness.domain.samples import Samples
from harness.domain.summary import summary_of
from harness.domain.verdict import Ratio, Verdict
from harness.domain.vocabulary import Backend, Role, Stage, Tier
from harness.domain.words import counted
from harness.engine.actions import EvaluateBaseline
from harness.engine.log import log_entries
from harness.engine.state import CampaignState, Status
from harness.evaluation.source.tier import classify
from harness.hardware.digests import digest
from harness.operators import registry
from harness.report.settings import Folder, Settings
from harness.search.planner import planner_for

HELD = "device_held_s"
CURVE = "curve.json"
"""The points of a campaign's curve so far, for a run that goes on with it."""
CLOCK_STAGES = (str(Stage.BENCHMARK), str(Stage.RECHECK))


@dataclass
class Watched:
    """What the observer of a campaign keeps: the curve, sources by digest, and verdicts of round 0."""

    began: float
    points: list[CurvePoint] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    baseline: tuple[Verdict, Samples | None] | None = None

    @property
    def best(self) -> float | None:
        """The best verified ratio over the baseline so far; ``None`` before anything was timed."""
        return self.points[-1].best if self.points else None

    @property
    def device_s(self) -> float:
        """Seconds that the device was held so far."""
        return self.points[-1].device_seconds if self.points else 0.0

    def see(self, step: Step) -> None:
        """One step of the loop."""
        verdict, request = step.verdict, step.request
        if verdict is None or request is None:
            return
        best = self.best
        self.sources[request.candidate.digest] = request.candidate.source
        if isinstance(step.action, EvaluateBaseline):
            self.baseline = (verdict, step.samples)
            best = 1.0 if verdict.timing is not None else None
        incumbent = next((one.digest for one in request.against if one.role is Role.INCUMBENT), "")
        ratio = over_baseline(verdict, step.state.baseline.digest, incumbent)
        if ratio is not None and verdict.passed:
            best = max(best or 0.0, ratio.ratio)
        known = summary_of(verdict)
        self.points.append(CurvePoint(
            round=getattr(step.action, "round", 0), evaluation=len(self.points) + 1, kernel=request.candidate.digest,
            outcome=verdict.outcome, comparison=verdict.comparison, versus_baseline=ratio, best=best,
            seconds=round(time.monotonic() - self.began, 2), device_seconds=round(self.device_s + held_s(verdict), 2),
            registers=known.registers, shared_bytes=known.shared_bytes, spill_bytes=known.spill_bytes))


def over_baseline(verdict: Verdict, baseline: str, incumbent: str) -> Ratio | None:
    """The measured ratio over the baseline, whatever role it had."""
    if verdict.timing is None:
        return None
    overall = verdict.timing.overall
    if str(Role.BASELINE) in overall:
        return overall[str(Role.BASELINE)]
    return overall.get(str(Role.INCUMBENT)) if incumbent == baseline else None


def held_s(verdict: Verdict) -> float:
    """Seconds that an evaluation kept the device: of a GPU what its lock says, of a CPU the stages of the clock."""
    held = verdict.environment.clocks.get(HELD)
    if isinstance(held, int | float):
        return float(held)
    return sum(seconds for name, seconds in verdict.stages.items() if name in CLOCK_STAGES)


def run_one(settings: Settings, operator: str, agent: str, evaluate: Evaluator, folder: Folder, seconds: float,
            told: Callable[[str], None]) -> dict[str, Any]:
    """Run the campaign, or go on with one that was cut, and store everything under ``operators/<operator>/<agent>``;
    the document of it.

    ``seconds`` is what is left of the whole run's budget: after so long nothing new is begun, and the document says
    ``cut``, as it does when this process is ended in the middle.
    """
    goal = Goal(operator=operator, backend=settings.backend, hardware=settings.hardware, workload=settings.workload,
                grant=Tier.LIGHT if agent == "autotune" else settings.grant,
                agent=AgentChoice(agent, strategy=settings.strategy if agent == "autotune" else None),  # type: ignore[arg-type]
                budget=Budget(rounds=settings.rounds, evaluations=None, seconds=settings.seconds))
    name = f"operators/{operator}/{agent}"
    watched, before = _before(folder, name, goal)
    state = before.state
    kept = CampaignFolder(folder.path / name, state, before.lines)
    maker = make_agent(goal.agent, planner_for(goal))
    if before.evaluations:
        told(f"{operator}, {agent}: goes on after {counted(before.evaluations, 'evaluation')}")

    def observe(step: Step) -> None:
        nonlocal state
        watched.see(step)
        if step.verdict is not None:  # before the result: of a process that is ended in between, one point too many
            folder.write(f"{name}/{CURVE}", {"points": [to_document(point) for point in watched.points]})
        kept.record(step)
        state = step.state
        if step.verdict is not None:
            told(f"{operator}, {agent}: {_words(step)}")

    until = time.monotonic() + seconds
    try:
        state = run_campaign(state, maker, evaluate, observe=observe, hardware=_facts(goal.hardware),
                             until=lambda: time.monotonic() >= until)
    except BaseException:
        if watched.points:
            folder.write(f"{name}/campaign.json", _document(state, maker.label, watched, None) | {"cut": True})
        raise
    final = measure_final(state, evaluate) if state.status is Status.FINISHED else None
    if final is not None:
        kept.write_verdict("final", final[1], final[2])
    document = _document(state, maker.label, watched, final) | {"cut": not state.status.over}
    folder.write(f"{name}/campaign.json", document)
    return document


def _before(folder: Folder, name: str, goal: Goal) -> tuple[Watched, Resumed]:
    """What an interrupted campaign left, or a fresh one."""
    fresh = Watched(time.monotonic()), Resumed(start_state(goal, attended=False))
    before = resumed(folder.path / name, goal)
    curve = folder.read(f"{name}/{CURVE}")
    if before is None or curve is None:
        return fresh
    try:
        points = [from_document(point, CurvePoint) for point in curve["points"]][:before.evaluations]
        baseline = _round_0(folder, name)
    except (HarnessError, KeyError, TypeError):
        return fresh
    if len(points) < before.evaluations:
        return fresh
    rounds = before.state.rounds
    sources = {digest_source(one.candidate.source): one.candidate.source for one in rounds if one.candidate is not None}
    return Watched(time.monotonic() - before.state.seconds, points, sources, baseline), before


def _round_0(folder: Folder, name: str) -> tuple[Verdict, Samples | None]:
    verdict = from_document(folder.read(f"{name}/verdicts/000.json"), Verdict)
    samples = folder.read(f"{name}/verdicts/000.json.samples.json")
    return verdict, None if samples is None else from_document(samples, Samples)


def _words(step: Step) -> str:
    assert step.verdict is not None
    record = step.state.rounds[-1] if step.state.rounds else None
    change = record.candidate.change_summary if record and record.candidate else "baseline"
    word = step.verdict.comparison if step.verdict.timing is not None else step.verdict.outcome
    return f"round {record.number if record else 0}, {change}: {word}"


def _document(state: CampaignState, label: str, watched: Watched, final: Any) -> dict[str, Any]:
    goal, agent = state.goal, state.goal.agent.kind
    verdict: Verdict | None = None if final is None else final[1]
    samples: Samples | None = None if final is None else final[2]
    ratio = None if verdict is None or verdict.timing is None else verdict.timing.overall.get(str(Role.BASELINE))
    incumbent = state.incumbent
    campaign = ReportCampaign(
        agent=agent, label=label, strategy=goal.agent.strategy, grant=state.grant, status=str(state.status),
        code=state.code, cause=state.cause, goal=to_document(goal), goal_digest=goal.digest,
        rounds=len(state.concluded), evaluations=len(watched.points),
        seconds=round(time.monotonic() - watched.began, 1),
        device_seconds=round(watched.device_s + (held_s(verdict) if verdict else 0.0), 1),
        hypotheses=state.hypotheses, log=log_entries(state), steps=tuple(watched.points),
        predictions=stated_predictions(state),
        final=FinalKernel(incumbent.kernel.digest, incumbent.round, verdict.outcome if verdict else None, ratio,
                          headline(state, verdict)))
    kernels = []
    if watched.baseline is not None:
        kernels.append(_kernel("baseline", state.baseline.digest, None, 0, None, *watched.baseline))
    if state.improved:
        spec = registry.get(goal.operator)
        tier = classify(state.baseline.source, incumbent.kernel.source, spec, Backend(goal.backend)).tier
        kernels.append(_kernel(agent, incumbent.kernel.digest, agent, incumbent.round, tier, verdict, samples))
    watched.sources[state.baseline.digest] = state.baseline.source
    watched.sources[incumbent.kernel.digest] = incumbent.kernel.source
    return {"campaign": to_document(campaign), "kernels": [to_document(kernel) for kernel in kernels],
            "sources": watched.sources}


def _kernel(name: str, digest_: str, agent: str | None, number: int, tier: Tier | None, verdict: Verdict | None,
            samples: Samples | None) -> ReportKernel:
    return ReportKernel(name, digest_, agent, number, tier, None if verdict is None else to_document(verdict),
                        None if samples is None else to_document(samples))


def _facts(hardware: str) -> dict[str, object]:
    return digest(hardware).for_agents()
