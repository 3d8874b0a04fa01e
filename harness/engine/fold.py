"""How each kind of result moves a campaign. One small function per kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.domain.goal import LIMITS, Budget, check_budget
from harness.domain.summary import VerdictSummary
from harness.domain.vocabulary import Blame, Outcome, Tier
from harness.engine import intake, queue, rules, steering
from harness.engine import results as r
from harness.engine.actions import PlateauChoice
from harness.engine.errors import EngineError
from harness.engine.state import Bounce, CampaignState, Feedback, Incumbent, Round, RoundStatus, SpotCheck, Status

FAULTS = (Outcome.INFRA_ERROR,)


def _baseline_measured(state: CampaignState, result: r.BaselineMeasured) -> CampaignState:
    _alive(state, result)
    if state.baseline_verdict is not None:
        raise EngineError("The baseline was measured already; a second verdict on round 0 changes nothing.")
    verdict = result.verdict
    if verdict.outcome in FAULTS:
        return _fault(state, r.InfrastructureFault(0, _first_reason(verdict)))
    if not verdict.passed:
        return replace(state, status=Status.FAILED, code="baseline_refused", cause=(
            f"The baseline itself was refused ({verdict.outcome}): {_first_reason(verdict)} Without a verified "
            "baseline nothing can be compared; run `python -m harness doctor` and start the campaign again."))
    return replace(state, baseline_verdict=verdict, incumbent=replace(state.incumbent, verdict=verdict))


def _proposed(state: CampaignState, result: r.Proposed) -> CampaignState:
    state, record = _thinking(state, result.round, result)
    state = _paid(state, result)
    purpose = rules.purpose_of(state)
    if purpose == "restructure" and result.purpose == "candidate":
        purpose = "candidate"  # a person asked for the restructuring while the agent thought: it is asked for next
    bounce = intake.bounce_of(state, result, purpose)
    if bounce is not None:
        return _with_round(state, intake.with_bounce(record, bounce, state.incumbent.kernel.digest))
    proposal = result.proposal
    if proposal.kind == "give_up":
        # The round that found nothing to try is no round: it is cancelled and counts against no budget.
        state = _with_round(state, replace(record, status=RoundStatus.CANCELLED, fault=proposal.reason))
        return replace(state, gave_up=proposal.reason.strip() or "no reason was given.")
    first = not state.diagnosed
    state = replace(state, hypotheses=intake.merged(state.hypotheses, proposal.hypotheses),
                    diagnosed=state.diagnosed or bool(proposal.hypotheses),
                    restructure=state.restructure and purpose == "candidate")
    if first and state.goal.stop.pause_after_diagnosis and state.attended:
        # People look at the hypotheses first; a candidate that came along is asked for again afterwards.
        return replace(_with_round(state, record), status=Status.PAUSED, code="diagnosis",
                       cause="The goal asks for a pause after the diagnosis: strike or edit hypotheses, then resume.")
    if proposal.candidate is None:
        return _with_round(state, record)
    candidate, normal_digest = intake.chosen(state, result)
    state = replace(state, queued=queue.queue_of(state, result, candidate))
    record = intake.with_candidate(state, record, candidate, normal_digest)
    if candidate.retry_of is not None and record.direction in rules.closed_directions(state):
        state = replace(state, retry_round=record.number)
    return _with_round(state, record)


def _paid(state: CampaignState, result: r.Proposed | r.AgentFailed) -> CampaignState:
    return replace(state, tokens=state.tokens + result.tokens, money=state.money + result.money,
                   turns=state.turns + result.turns)


def _agent_failed(state: CampaignState, result: r.AgentFailed) -> CampaignState:
    state, record = _thinking(state, result.round, result)
    state = _paid(state, result)
    if result.blame == "model":
        bounce = Bounce("agent_failed", result.reason)
        return _with_round(state, intake.with_bounce(record, bounce, state.incumbent.kernel.digest))
    code, who = ("endpoint", "model's endpoint") if state.goal.agent.kind == "openai" else ("provider_outage",
                                                                                          "agent's provider")
    return replace(_with_round(state, record), status=Status.PAUSED, code=code,
                   cause=f"The {who} failed: {result.reason} No round and no bounce was counted. Resume when it "
                         "answers again.")


def _evaluated(state: CampaignState, result: r.Evaluated) -> CampaignState:
    record = _evaluating(state, result.round, result)
    verdict = result.verdict
    if record.kernel is not None and verdict.kernel != record.kernel.digest:
        raise EngineError(f"The verdict is about {verdict.kernel}, but round {result.round} proposed "
                          f"{record.kernel.digest}. It was not recorded; evaluate the round's own kernel.")
    if verdict.outcome in FAULTS:
        return _fault(state, r.InfrastructureFault(result.round, _first_reason(verdict)))
    record = replace(record, status=RoundStatus.CONCLUDED, verdict=verdict, evaluated=True)
    state = _with_round(state, record)
    if verdict.blame is Blame.REFERENCE:
        return replace(state, status=Status.FAILED, code="invalid_reference", cause=(
            f"The operator's reference is at fault, not the candidate: {_first_reason(verdict)} Mend the operator, "
            "then start a new campaign."))
    if verdict.faster and record.kernel is not None and record.normal_digest is not None:
        state = replace(state, incumbent=Incumbent(record.number, record.kernel, record.normal_digest, verdict))
    return state


def _fault(state: CampaignState, result: r.InfrastructureFault) -> CampaignState:
    """Retried; after the last attempt the round fails and a person is asked. Counts against nothing."""
    if result.round == 0:
        _alive(state, result)
        if state.baseline_verdict is not None:
            raise EngineError("The baseline was measured already; a fault of round 0 changes nothing.")
        faults = state.baseline_faults + 1
        state = replace(state, baseline_faults=faults % rules.MAX_ATTEMPTS)
        return _outage(state, result.reason) if faults >= rules.MAX_ATTEMPTS else state
    record = _evaluating(state, result.round, result)
    record = replace(record, attempts=record.attempts + 1, fault=result.reason)
    if record.attempts < rules.MAX_ATTEMPTS:
        return _with_round(state, record)
    return _outage(_with_round(state, replace(record, status=RoundStatus.FAILED)), result.reason)


def _outage(state: CampaignState, reason: str) -> CampaignState:
    return replace(state, status=Status.PAUSED, code="worker_outage", cause=(
        f"The evaluator failed {rules.MAX_ATTEMPTS} times in a row: {reason} Nothing was counted against the agent or "
        "the budget. See the System page or run `python -m harness doctor`, then resume."))


def _hypotheses_edited(state: CampaignState, result: r.HypothesesEdited) -> CampaignState:
    _alive(state, result)
    ids = [hypothesis.id for hypothesis in result.hypotheses]
    if len(set(ids)) != len(ids):
        raise EngineError("Two hypotheses share an id; the old list was kept. Give each its own.")
    # What is no longer in the list was struck: an agent may not bring it back under the same id.
    gone = tuple(h.id for h in state.hypotheses if h.id not in ids and h.id not in state.struck)
    struck = tuple(name for name in (*state.struck, *gone) if name not in ids)
    return replace(state, hypotheses=result.hypotheses, struck=struck)


def _plateau_reached(state: CampaignState, result: r.PlateauReached) -> CampaignState:
    _expect(state, result, Status.RUNNING)
    found, record = rules.plateau_cause(state), state.active_round
    if found is None or (record is not None and (record.status is not RoundStatus.THINKING
                                                 or rules.asking_spent(state) is None)):
        raise EngineError("There is no plateau now; the campaign goes on.")
    if record is not None:  # what may be spent on asking ran out before the agent had an acceptable answer
        state = _with_round(state, replace(record, status=RoundStatus.CANCELLED, fault=found[1]))
    return replace(state, status=Status.PLATEAU, plateau=result.cause, code=str(result.cause), cause=found[1])


def _plateau_chosen(state: CampaignState, result: r.PlateauChosen) -> CampaignState:
    _expect(state, result, Status.PLATEAU)
    assert state.plateau is not None
    if result.choice not in rules.plateau_options(state, state.plateau):
        raise EngineError(f"'{result.choice}' is not open on this plateau. Open: "
                          f"{', '.join(rules.plateau_options(state, state.plateau))}.")
    if result.choice is PlateauChoice.FINISH:
        return replace(state, status=Status.FINISHED)
    if result.choice is PlateauChoice.RAISE_BUDGET:
        return _with_budget(state, result.budget)
    grant = state.grant
    if result.choice is PlateauChoice.RAISE_GRANT:
        grant = result.grant or Tier.HEAVY
        if grant <= state.grant:
            raise EngineError(f"The grant is {state.grant} already; {grant} would not raise it.")
    return replace(_back_to_work(state), grant=grant, restructure=True, queued=())


def _with_budget(state: CampaignState, budget: Budget | None) -> CampaignState:
    """A raised budget: no limit falls, and the one that was spent no longer is. The plateau count goes on."""
    if budget is None:
        raise EngineError("Say what may be spent from now on.")
    check_budget(budget)
    for name in LIMITS:
        was, now = getattr(state.allowance, name), getattr(budget, name)
        if now is not None and (was is None or now < was):
            before = "no limit" if was is None else was
            raise EngineError(f"budget.{name} would fall from {before} to {now}. A budget is only raised here; stop "
                              "the campaign to spend less.")
    raised = replace(state, status=Status.RUNNING, code="", cause="", plateau=None, budget=budget)
    still = rules.budget_spent(raised)
    if still is not None:
        raise EngineError(f"{still} Raise that limit too.")
    return raised


def _back_to_work(state: CampaignState) -> CampaignState:
    return replace(state, status=Status.RUNNING, code="", cause="", plateau=None, gave_up="",
                   window_from=len(state.rounds))


def _spot_check_asked(state: CampaignState, result: r.SpotCheckAsked) -> CampaignState:
    _alive(state, result)
    if any(check.round == result.round for check in state.spot_checks):
        raise EngineError(f"The spot check after round {result.round} was asked already.")
    # A reviewer who has not answered by the next one let it lapse.
    checks = tuple(replace(c, state="lapsed") if c.state == "asked" else c for c in state.spot_checks)
    return _after_lapse(replace(state, spot_checks=(*checks, SpotCheck(result.round))), lapsed=checks)


def _spot_check_lapsed(state: CampaignState, result: r.SpotCheckLapsed) -> CampaignState:
    state = _mark_check(state, result.round, "lapsed")
    return _after_lapse(state, lapsed=state.spot_checks)


def _after_lapse(state: CampaignState, *, lapsed: tuple[SpotCheck, ...]) -> CampaignState:
    fresh = any(check.state == "lapsed" for check in lapsed)
    due = fresh and rules.unanswered_spot_checks(state) >= rules.UNANSWERED_SPOT_CHECKS
    if not due or state.grant is not Tier.HEAVY or state.status is not Status.RUNNING:
        return state
    return replace(state, status=Status.PAUSED, code="spot_checks_unanswered",
                   cause="Two spot checks went unanswered, so this heavy campaign waits. Look at the incumbent, then "
                         "resume.")


def _spot_check_answered(state: CampaignState, result: r.SpotCheckAnswered) -> CampaignState:
    state = _mark_check(state, result.round, "answered")
    if not result.feedback.strip():
        return state
    note = Feedback(result.person, state.incumbent.kernel.digest, "spot check", result.feedback)
    return replace(state, feedback=(*state.feedback, note))


def _mark_check(state: CampaignState, number: int, word: str) -> CampaignState:
    if all(check.round != number for check in state.spot_checks):
        raise EngineError(f"No spot check was asked after round {number}.")
    checks = tuple(replace(c, state=word) if c.round == number else c for c in state.spot_checks)
    return replace(state, spot_checks=checks)


def _review_opened(state: CampaignState, result: r.ReviewOpened) -> CampaignState:
    if result.kernel in state.reviewed:
        return state
    return replace(state, reviewed=(*state.reviewed, result.kernel))


def _review_decided(state: CampaignState, result: r.ReviewDecided) -> CampaignState:
    note = Feedback(result.person, result.kernel, result.decision, result.feedback)
    if result.decision != "approved" or result.feedback.strip():
        state = replace(state, feedback=(*state.feedback, note))
    if result.decision == "changes_requested" and state.status is Status.PLATEAU:
        return _back_to_work(state)
    return state


def _paused(state: CampaignState, result: r.Paused) -> CampaignState:
    _expect(state, result, Status.RUNNING)
    return replace(state, status=Status.PAUSED, code=result.code, cause=result.reason)


def _resumed(state: CampaignState, result: r.Resumed) -> CampaignState:
    _expect(state, result, Status.PAUSED)
    checks = state.spot_checks
    if state.code == "spot_checks_unanswered":
        # Whoever resumes has looked: the count of unanswered checks starts anew.
        checks = tuple(replace(c, state="answered") if c.state == "lapsed" else c for c in checks)
    return replace(state, status=Status.RUNNING, code="", cause="", spot_checks=checks)


def _stopped(state: CampaignState, result: r.Stopped) -> CampaignState:
    _alive(state, result)
    record = state.active_round
    if record is not None:
        state = _with_round(state, replace(record, status=RoundStatus.CANCELLED))
    cause = result.reason or "A person stopped the campaign."
    return replace(state, status=Status.STOPPED, code="stopped", cause=cause)


def _budget_clock(state: CampaignState, result: r.BudgetClock) -> CampaignState:
    return replace(state, seconds=max(state.seconds, result.seconds))


def _alive(state: CampaignState, result: r.Result) -> None:
    if state.status.over:
        raise EngineError(f"The campaign is {state.status}: {type(result).__name__} comes too late and was not "
                          "recorded.")


def _expect(state: CampaignState, result: r.Result, status: Status) -> None:
    if state.status is not status:
        raise EngineError(f"{type(result).__name__} needs a campaign that is {status}; this one is {state.status}.")


def _thinking(state: CampaignState, number: int, result: r.Result) -> tuple[CampaignState, Round]:
    """The round an agent's answer belongs to, begun when this is its first."""
    _alive(state, result)
    if state.baseline_verdict is None or state.status is Status.PLATEAU:
        raise EngineError(f"Round {number} was not asked for: the campaign has no baseline yet or stands on a plateau.")
    record = state.active_round
    if record is None:
        if number != len(state.rounds) + 1:
            raise EngineError(f"The next round is {len(state.rounds) + 1}, not {number}.")
        return state, Round(number, rules.purpose_of(state))
    if record.number != number or record.status is not RoundStatus.THINKING:
        raise EngineError(f"Round {number} does not wait for a proposal (active: round {record.number}, "
                          f"{record.status}).")
    return state, record


def _evaluating(state: CampaignState, number: int, result: r.Result) -> Round:
    _alive(state, result)
    record = state.active_round
    if record is None or record.number != number or record.status is not RoundStatus.EVALUATING:
        raise EngineError(f"Round {number} does not wait for a verdict.")
    return record


def _with_round(state: CampaignState, record: Round) -> CampaignState:
    kept = tuple(old for old in state.rounds if old.number != record.number)
    return replace(state, rounds=(*kept, record))


def _first_reason(verdict: VerdictSummary) -> str:
    return verdict.reasons[0].text if verdict.reasons else f"outcome {verdict.outcome} at stage {verdict.stage}."


FOLDS: dict[type, Callable[[CampaignState, Any], CampaignState]] = {
    r.BaselineMeasured: _baseline_measured, r.Proposed: _proposed, r.AgentFailed: _agent_failed,
    r.Evaluated: _evaluated, r.InfrastructureFault: _fault, r.HypothesesEdited: _hypotheses_edited,
    r.PlateauReached: _plateau_reached, r.PlateauChosen: _plateau_chosen, r.SpotCheckAsked: _spot_check_asked,
    r.SpotCheckAnswered: _spot_check_answered, r.SpotCheckLapsed: _spot_check_lapsed, r.ReviewOpened: _review_opened,
    r.ReviewDecided: _review_decided, r.Paused: _paused, r.Resumed: _resumed, r.Stopped: _stopped,
    r.BudgetClock: _budget_clock, r.Steered: steering.steered, r.QueueTaken: queue.taken,
}
