"""Small campaigns for the engine's tests: goals, proposals and verdicts without any kernel behind them."""

from __future__ import annotations

from dataclasses import replace

from harness.domain.digest import digest_source
from harness.domain.goal import AgentChoice, Budget, Goal, Stop
from harness.domain.proposal import Candidate, Claim, Hypothesis, Proposal
from harness.domain.request import SourceRef
from harness.domain.summary import ShapeSummary, VerdictSummary
from harness.domain.verdict import Ratio, Reason
from harness.domain.vocabulary import Backend, Comparison, Direction, Outcome, Stage, Tier
from harness.engine.actions import AskAgent, AskSpotCheck, Evaluate, EvaluateBaseline, OpenReview, ProposePlateau
from harness.engine.results import (
    BaselineMeasured,
    Evaluated,
    PlateauReached,
    Proposed,
    Result,
    ReviewOpened,
    SpotCheckAsked,
)
from harness.engine.state import CampaignState
from harness.engine.step import apply, next_action

BASELINE = "def run(x, out):\n    out[:] = x\n"
IDEAS = tuple(
    Hypothesis(f"h{n}", direction, "_kernel", f"idea {n}", "profile.bytes", 0.1)
    for n, direction in enumerate((Direction.TILING, Direction.FUSION, Direction.VECTORISATION), start=1)
)


def goal(*, rounds: int | None = 20, evaluations: int | None = None, seconds: float | None = None,
         grant: Tier = Tier.MEDIUM, agent: str = "playbook", **stop: object) -> Goal:
    return Goal("softmax", Backend.NUMBA, "cpu-test-1t", "llm", grant=grant, agent=AgentChoice(agent),
                budget=Budget(rounds, evaluations, seconds), stop=replace(Stop(), **stop))


def start(a_goal: Goal | None = None, *, attended: bool = True) -> CampaignState:
    return CampaignState.start(a_goal or goal(), SourceRef(digest_source(BASELINE), BASELINE), "normal-0", "1",
                               attended=attended)


def verdict(kernel: str = "", comparison: Comparison = Comparison.NONE, *, outcome: Outcome = Outcome.PASSED,
            gain: float = 0.3, roof: float = 0.4, timed: bool = True) -> VerdictSummary:
    ratio = {Comparison.FASTER: 1 + gain, Comparison.SLOWER: 0.8, Comparison.CANNOT_TELL: 1.005}.get(comparison)
    overall = {} if ratio is None else {"incumbent": Ratio(ratio, ratio - 0.01, ratio + 0.01)}
    kernel = kernel or digest_source(BASELINE)
    if outcome is not Outcome.PASSED:
        reasons = (Reason(str(outcome), Stage.SMOKE, "it failed"),)
        return VerdictSummary(kernel, outcome, Stage.SMOKE, step_tier=Tier.MEDIUM, reasons=reasons)
    shapes = (ShapeSummary("a", 1.0, 10.0, 30.0, roof),) if timed else ()
    return VerdictSummary(kernel, outcome, Stage.RECHECK, comparison, Tier.MEDIUM, timed=timed, overall=overall,
                          shapes=shapes)


def source_of(name: str) -> str:
    return f"def run(x, out):\n    {name} = x\n    out[:] = {name}\n"


def proposal(number: int, name: str, hypothesis: str, *, ideas: tuple[Hypothesis, ...] = (), queried: bool = True,
             retry_of: int | None = None, difference: str | None = None, claim: float | None = None,
             normal: str | None = None) -> Proposed:
    """Round ``number`` proposes kernel ``name``; its normal digest is ``normal`` or made of its name."""
    candidate = Candidate(hypothesis, source_of(name), f"change {name}", retry_of, difference,
                          None if claim is None else Claim(claim))
    return Proposed(number, Proposal("candidate", True, ideas, candidate), queried, normal or f"normal-{name}")


def evaluated(number: int, name: str, comparison: Comparison = Comparison.CANNOT_TELL, **more: object) -> Evaluated:
    return Evaluated(number, verdict(digest_source(source_of(name)), comparison, **more))  # type: ignore[arg-type]


def begun(a_goal: Goal | None = None, *, attended: bool = True) -> CampaignState:
    """A campaign whose baseline is measured."""
    return apply(start(a_goal, attended=attended), BaselineMeasured(verdict()))


def played(state: CampaignState, *rounds: tuple[str, str, Comparison | Outcome], ideas: tuple[Hypothesis, ...] = IDEAS,
           ) -> CampaignState:
    """Play rounds (kernel name, hypothesis, comparison or outcome); the first one states ``ideas``."""
    for name, hypothesis, end in rounds:
        state = acknowledged(state)
        action = next_action(state)
        assert isinstance(action, AskAgent), action
        state = apply(state, proposal(action.round, name, hypothesis, ideas=() if state.diagnosed else ideas))
        assert isinstance(next_action(state), Evaluate), next_action(state)
        result = (evaluated(action.round, name, end) if isinstance(end, Comparison)
                  else evaluated(action.round, name, outcome=end))
        state = apply(state, result)
    return state


def acknowledged(state: CampaignState) -> CampaignState:
    """Answer spot-check questions as a runner does: asked, and nobody has answered yet."""
    action = next_action(state)
    return apply(state, SpotCheckAsked(action.round)) if isinstance(action, AskSpotCheck) else state


def acknowledgement(action: object) -> Result | None:
    """What a runner reports for actions whose only effect is to tell people."""
    if isinstance(action, AskSpotCheck):
        return SpotCheckAsked(action.round)
    if isinstance(action, OpenReview):
        return ReviewOpened(action.round, action.kernel.digest)
    if isinstance(action, ProposePlateau):
        return PlateauReached(action.cause)
    return BaselineMeasured(verdict()) if isinstance(action, EvaluateBaseline) else None
