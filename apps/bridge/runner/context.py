"""What an agent is told in one turn, from the engine's state."""

from __future__ import annotations

from harness.agents.profile import profile_of
from harness.agents.protocol import AgentContext, Attempt, LogBook, ReviewComment
from harness.domain.codec import to_document
from harness.domain.errors import UsageError
from harness.engine import actions, rules
from harness.engine.log import log_entries
from harness.engine.state import CampaignState
from harness.hardware.digests import digest
from harness.operators.registry import get


def context_of(state: CampaignState, action: actions.AskAgent, *, struck: tuple[str, ...] = ()) -> AgentContext:
    """The context of ``action``. Reads operator and hardware declarations; no candidate code is run."""
    goal, incumbent = state.goal, state.incumbent
    spec = get(goal.operator)
    return AgentContext(
        goal=goal, spec=spec, grant=state.grant, round=action.round, purpose=action.purpose,
        log=LogBook(log_entries(state)), baseline=state.baseline, incumbent=incumbent.kernel,
        incumbent_round=incumbent.round, incumbent_normal=incumbent.normal_digest,
        baseline_verdict=state.baseline_verdict, incumbent_verdict=incumbent.verdict,
        profile=profile_of(spec, goal.backend, goal.workload, incumbent.verdict, incumbent.kernel.source),
        hardware=_hardware(goal.hardware), hypotheses=state.hypotheses, open_hypotheses=rules.open_hypotheses(state),
        struck=struck, closed_directions=rules.closed_directions(state), retry_available=state.retry_round is None,
        tried=rules.tried(state), attempts=_attempts(state),
        feedback=tuple(ReviewComment(f.person, f.kernel, f.decision, f.text) for f in state.feedback),
        bounced=action.bounced,
    )


def _attempts(state: CampaignState) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(record.number, record.hypothesis.id, record.direction or "", record.kernel, record.normal_digest,
                record.verdict)
        for record in state.concluded
        if record.kernel is not None and record.verdict is not None and record.hypothesis is not None)


def _hardware(name: str) -> dict[str, object]:
    try:
        return to_document(digest(name))
    except UsageError:
        return {}
