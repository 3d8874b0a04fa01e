"""What every agent owes the engine, for every operator and both backends.

Each campaign is played to its end with a fake clock and real tiers, so that the proposals of all later rounds, on all
incumbents that occur, are held to the contract too.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.agents.protocol import AgentContext
from harness.agents.registry import LABELS, make_agent
from harness.campaign.context import context_of
from harness.campaign.local import Step, run_campaign
from harness.campaign.start import start_state
from harness.domain.codec import check_schema, to_document
from harness.domain.errors import UsageError
from harness.domain.goal import AgentChoice, Budget, Goal, Stop
from harness.domain.proposal import Proposal
from harness.domain.vocabulary import Backend, Outcome, Tier
from harness.engine.actions import AskAgent
from harness.evaluation.source.normal_form import normal_digest
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Severity
from harness.operators import registry
from tests.harness.campaign.fake_evaluator import FakeEvaluator, tier_between

AGENTS = ("playbook", "autotune")
OPERATORS = ("rms_norm", "softmax", "decode_attention")


Turn = tuple[AgentContext, Proposal]


def played(operator: str, backend: Backend, kind: str, grant: Tier, rounds: int = 10) -> list[Turn]:
    """Every turn of a campaign with the context it was given."""
    goal = Goal(operator, backend, "cpu-test-1t", "llm", grant=grant, agent=AgentChoice(kind), budget=Budget(rounds),
                stop=Stop(plateau_rounds=20, direction_failures=20))
    turns: list[Turn] = []
    agent = make_agent(goal.agent)

    class Recorder:
        label = agent.label

        def propose(self, context: AgentContext) -> Proposal:
            proposal = agent.propose(context)
            turns.append((context, proposal))
            return proposal

    run_campaign(start_state(goal, attended=False), Recorder(), FakeEvaluator())
    return turns


ALL = [(operator, backend, kind, grant) for operator in OPERATORS for backend in Backend for kind in AGENTS
       for grant in (Tier.LIGHT, Tier.MEDIUM, Tier.HEAVY) if kind == "playbook" or grant is Tier.LIGHT]


@pytest.mark.parametrize(("operator", "backend", "kind", "grant"), ALL)
def test_every_proposal_keeps_the_contract(operator: str, backend: Backend, kind: str, grant: Tier) -> None:
    turns = played(operator, backend, kind, grant)
    spec = registry.get(operator)
    assert turns and turns[0][0].purpose == "diagnosis"
    assert 3 <= len(turns[0][1].hypotheses) <= 5
    candidates = 0
    for context, proposal in turns:
        check_schema(to_document(proposal), "proposal")
        assert context.log.queries > 0 and proposal.queried_log
        if proposal.candidate is None:
            assert proposal.kind == "give_up" and proposal.reason
            continue
        candidates += 1
        source = proposal.candidate.source
        blocking = [f for f in findings(source, spec, backend, context.goal.prohibited) if f.severity is Severity.BLOCK]
        assert not blocking, (proposal.candidate.change_summary, blocking)
        named = {h.id for h in (*context.hypotheses, *proposal.hypotheses)}
        assert proposal.candidate.hypothesis in named
        duplicate = normal_digest(source) in context.tried
        assert not duplicate or proposal.candidate.hypothesis.startswith("again-")
        if not duplicate:
            tier = tier_between(context.incumbent.source, source, operator, backend)
            assert Tier.NONE < tier.tier <= grant, (proposal.candidate.change_summary, tier)
    assert candidates >= 3


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("backend", list(Backend))
def test_the_same_context_gives_the_same_proposal(kind: str, backend: Backend) -> None:
    first, second = (played("softmax", backend, kind, Tier.MEDIUM, 6) for _ in range(2))
    assert [to_document(p) for _, p in first] == [to_document(p) for _, p in second]


def diagnosis() -> AgentContext:
    """The playbook's first turn in a medium campaign."""
    goal = Goal("rms_norm", Backend.NUMBA, "cpu-test-1t", "llm")
    return context_of(start_state(goal), AskAgent(1, "diagnosis"))


def test_the_playbook_avoids_struck_ideas_and_closed_directions() -> None:
    context = diagnosis()
    first = make_agent(AgentChoice("playbook")).propose(context)
    assert first.candidate is not None
    best = first.hypotheses[0]
    struck = make_agent(AgentChoice("playbook")).propose(replace(context, struck=(best.id,)))
    assert best.id not in {h.id for h in struck.hypotheses}
    closed = replace(context, closed_directions={f"{best.direction}:{best.function}": (1, 2, 3)})
    avoided = make_agent(AgentChoice("playbook")).propose(closed)
    assert avoided.candidate is not None
    named = next(h for h in avoided.hypotheses if h.id == avoided.candidate.hypothesis)
    assert (named.direction, named.function) != (best.direction, best.function)


def test_the_playbook_follows_the_order_people_left() -> None:
    context = diagnosis()
    stated = make_agent(AgentChoice("playbook")).propose(context).hypotheses
    reordered = (stated[2], stated[0], stated[1])
    after = replace(context, purpose="candidate", hypotheses=reordered, open_hypotheses=reordered)
    chosen = make_agent(AgentChoice("playbook")).propose(after).candidate
    assert chosen is not None and chosen.hypothesis == stated[2].id


def test_one_thread_predicts_no_gain_from_threads() -> None:
    turns = played("rms_norm", Backend.NUMBA, "playbook", Tier.MEDIUM, 14)
    stated = {h.id: h for _, p in turns for h in p.hypotheses}
    assert stated["threads"].expected_gain == 0.0 and "one thread" in stated["threads"].text


def test_the_deliberate_duplicate_is_refused_without_an_evaluation() -> None:
    goal = Goal("rms_norm", Backend.NUMBA, "cpu-test-1t", "llm", budget=Budget(20), stop=Stop(plateau_rounds=20))
    evaluator = FakeEvaluator(lambda source: 80.0 if "fastmath" in source else 100.0)
    seen: list[Step] = []
    state = run_campaign(start_state(goal, attended=False), make_agent(goal.agent), evaluator, observe=seen.append)
    again = [r for r in state.concluded if r.hypothesis is not None and r.hypothesis.id.startswith("again-")]
    assert len(again) == 1 and again[0].verdict is not None
    assert again[0].verdict.outcome in (Outcome.DUPLICATE, Outcome.NO_CHANGE) and not again[0].evaluated


def test_goal_ranges_bound_what_agents_try() -> None:
    goal = Goal("rms_norm", Backend.NUMBA, "cpu-test-1t", "llm", grant=Tier.LIGHT, adjustable={"BLOCK": (4, 64)},
                agent=AgentChoice("autotune", strategy="exhaustive"), budget=Budget(30))
    evaluator = FakeEvaluator()
    state = run_campaign(start_state(goal, attended=False), make_agent(goal.agent), evaluator)
    assert state.code == "gave_up"
    tried = {request.candidate.source.split('"BLOCK": ')[1].split("}")[0] for request in evaluator.requests[1:]}
    assert tried == {"4", "16", "32", "64"}  # 8 is the starting value


def test_an_agent_that_is_not_installed_says_what_it_needs() -> None:
    with pytest.raises(UsageError, match="endpoint"):
        make_agent(AgentChoice("openai"))
    with pytest.raises(UsageError, match="halving, exhaustive"):
        make_agent(AgentChoice("autotune", strategy="annealing"))
    with pytest.raises(UsageError, match="outside of this server"):
        make_agent(AgentChoice("mcp"))
    assert set(LABELS) == {"playbook", "autotune", "openai", "mcp"}
