"""The field's rules as pure questions about a state: what is closed, spent, reached, due."""

from __future__ import annotations

from harness.domain.proposal import Hypothesis
from harness.domain.vocabulary import Tier
from harness.domain.words import counted
from harness.engine.actions import AskPurpose, PlateauCause, PlateauChoice
from harness.engine.state import CampaignState, Round, direction_key

MAX_BOUNCES = 3
"""R14: the third bounce concludes a round as failed."""
MAX_ATTEMPTS = 3
"""Infrastructure faults in a row before a person is asked."""
HEAVY_SPOT_CHECK = 3
"""R17: at most this many verified rounds between spot checks of a heavy campaign."""
UNANSWERED_SPOT_CHECKS = 2


def searches(state: CampaignState) -> bool:
    """Whether the agent is a classical search. Its misses are how it works, not failed ideas: directions do not close
    and plateaus do not come from misses; it ends when its space or its budget is exhausted (R24)."""
    return state.goal.agent.kind == "autotune"


def closed_directions(state: CampaignState) -> dict[str, tuple[int, ...]]:
    """R7, R16: closed directions with the rounds that closed them, counted since the last ``faster`` of each."""
    if searches(state):
        return {}
    failures: dict[str, list[int]] = {}
    for record in state.concluded:
        if record.direction is None or record.verdict is None:
            continue
        if record.verdict.faster:
            failures.pop(record.direction, None)
        elif record.counts_against_direction:
            failures.setdefault(record.direction, []).append(record.number)
    limit = state.goal.stop.direction_failures
    return {direction: tuple(rounds) for direction, rounds in failures.items() if len(rounds) >= limit}


def tried(state: CampaignState) -> dict[str, int]:
    """Normal digests already tried, with the first round of each; round 0 is the baseline."""
    seen: dict[str, int] = {state.baseline_normal: 0}
    for record in state.concluded:
        if record.normal_digest is not None and record.evaluated:
            seen.setdefault(record.normal_digest, record.number)
    return seen


def purpose_of(state: CampaignState) -> AskPurpose:
    """What the agent is asked for next."""
    if not state.diagnosed:
        return "diagnosis"
    return "restructure" if state.restructure else "candidate"


def forbidden_by(state: CampaignState, direction: str) -> str | None:
    """Who forbade ``direction`` (``tiling:_kernel``), itself or for every kernel function; ``None``: nobody."""
    names = (direction, direction.partition(":")[0])
    return next((person for name, person in state.forbidden if name in names), None)


def open_hypotheses(state: CampaignState) -> tuple[Hypothesis, ...]:
    """Ranked hypotheses that nobody tried yet and whose direction is open, best first (in the stated order)."""
    done = {record.hypothesis.id for record in state.concluded if record.hypothesis is not None}
    return tuple(h for h in state.hypotheses if h.id not in done and is_open(state, direction_key(h)))


def is_open(state: CampaignState, direction: str) -> bool:
    """Whether ``direction`` is neither closed by failures nor forbidden by a person."""
    return direction not in closed_directions(state) and forbidden_by(state, direction) is None


def budget_spent(state: CampaignState) -> str | None:
    """A sentence when some budget is spent. Asked between rounds: a round that began may end, so seconds can be
    exceeded by at most one round; rounds and evaluations never are."""
    budget, spent = state.allowance, state.spent
    if budget.rounds is not None and spent.rounds >= budget.rounds:
        return _all_spent(budget.rounds, "round")
    if budget.evaluations is not None and spent.evaluations >= budget.evaluations:
        return _all_spent(budget.evaluations, "evaluation")
    if budget.seconds is not None and spent.seconds >= budget.seconds:
        return f"{spent.seconds:.0f} of {budget.seconds:.0f} seconds are spent."
    return asking_spent(state)


def _all_spent(limit: int, word: str) -> str:
    return f"The one {word} is spent." if limit == 1 else f"All {counted(limit, word)} are spent."


def asking_spent(state: CampaignState) -> str | None:
    """A sentence when what asking a model costs is spent: tokens, turns or money. Looked at before every asking, so
    that only the answers to one asking can go beyond."""
    budget, spent = state.allowance, state.spent
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"{spent.tokens} of {budget.tokens} tokens are spent."
    if budget.turns is not None and spent.turns >= budget.turns:
        return f"{spent.turns} of {counted(budget.turns, 'turn')} of the model are spent."
    if budget.money is not None and spent.money >= budget.money:
        return f"{spent.money:.2f} of {budget.money:.2f} of the money are spent."
    return None


def conclusive_since_reset(state: CampaignState) -> tuple[Round, ...]:
    """Conclusive rounds after the last restructure, raised grant or review that sent the campaign back."""
    return tuple(r for r in state.concluded if r.conclusive and r.number > state.window_from)


def plateau_cause(state: CampaignState) -> tuple[PlateauCause, str] | None:
    """R15: why the campaign stands still, with the sentence for people; ``None`` while it should go on."""
    stop = state.goal.stop
    share = state.incumbent.verdict.roof_share if state.incumbent.verdict else None
    if share is not None and share >= stop.roof_share:
        return PlateauCause.ROOF, (f"Every shape reaches at least {share:.0%} of the measured roof "
                                   f"(the goal asks for {stop.roof_share:.0%}).")
    spent = budget_spent(state)
    if spent is not None:
        return PlateauCause.BUDGET, f"{spent} {_more(state)}"
    if state.gave_up:
        return PlateauCause.GAVE_UP, f"The agent has no further idea within the grant: {state.gave_up}"
    if searches(state) or state.queued or open_hypotheses(state):
        return None
    window = conclusive_since_reset(state)
    last = window[-stop.plateau_rounds:]
    directions = {record.direction for record in state.concluded if record.number > state.window_from}
    if len(last) < stop.plateau_rounds or len(directions - {None}) < 2:
        return None
    if any(gain_of(record) >= stop.plateau_gain for record in last):
        return None
    numbers = ", ".join(str(record.number) for record in last)
    window_of = counted(stop.plateau_rounds, "conclusive round")
    return PlateauCause.NO_GAIN, (f"The last {window_of} ({numbers}) brought no gain of "
                                  f"{stop.plateau_gain:.0%}, in {len(directions - {None})} directions, and no ranked "
                                  "hypothesis is untried.")


def asks_at_limit(state: CampaignState) -> bool:
    """Whether a person is asked to raise a spent budget."""
    return state.attended and state.allowance.at_limit == "ask"


def _more(state: CampaignState) -> str:
    return ("Raise it to go on, or finish." if asks_at_limit(state)
            else "To go on, fork the campaign with a larger budget.")


def gain_of(record: Round) -> float:
    """The measured gain over the incumbent of a ``faster`` round as a fraction, otherwise 0."""
    if record.verdict is None or not record.verdict.faster:
        return 0.0
    ratio = record.verdict.overall.get("incumbent") or record.verdict.overall.get("baseline")
    return ratio.ratio - 1.0 if ratio else 0.0


def plateau_options(state: CampaignState, cause: PlateauCause) -> tuple[PlateauChoice, ...]:
    """R22: what a person may choose. A reached roof leaves only the end; so does a spent budget, where the goal does
    not ask at its limit."""
    if cause is PlateauCause.BUDGET and asks_at_limit(state):
        return (PlateauChoice.FINISH, PlateauChoice.RAISE_BUDGET)
    if cause in (PlateauCause.BUDGET, PlateauCause.ROOF):
        return (PlateauChoice.FINISH,)
    options = [PlateauChoice.FINISH, PlateauChoice.RESTRUCTURE]
    if state.grant is not Tier.HEAVY:
        options.append(PlateauChoice.RAISE_GRANT)
    return tuple(options)


def spot_check_due(state: CampaignState) -> int | None:
    """R17: the round after which a reviewer is to be asked now, or ``None``."""
    if not state.attended:
        return None
    every = state.goal.stop.spot_check_every
    if state.grant is Tier.HEAVY:
        every = min(every, HEAVY_SPOT_CHECK)
    verified = [record.number for record in state.concluded if record.verdict is not None and record.verdict.passed]
    done = [check.round for check in state.spot_checks]
    since = [number for number in verified if not done or number > done[-1]]
    return since[every - 1] if len(since) >= every else None


def unanswered_spot_checks(state: CampaignState) -> int:
    """Lapsed spot checks since the last answered one."""
    count = 0
    for check in reversed(state.spot_checks):
        if check.state == "answered":
            break
        count += check.state == "lapsed"
    return count


def review_due(state: CampaignState) -> bool:
    """Whether the incumbent is worth a review that nobody opened yet."""
    return state.attended and state.incumbent.round > 0 and state.incumbent.kernel.digest not in state.reviewed
