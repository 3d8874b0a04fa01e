"""What the engine does with a proposal: accept, bounce, or refuse without an evaluation (R7, R14, R16)."""

from __future__ import annotations

from dataclasses import replace

from harness.domain.digest import digest_source
from harness.domain.proposal import Candidate, Hypothesis, Proposal
from harness.domain.request import SourceRef
from harness.domain.summary import VerdictSummary
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Outcome, Stage, Tier
from harness.engine.results import Proposed
from harness.engine.rules import MAX_BOUNCES, closed_directions, forbidden_by, tried
from harness.engine.state import Bounce, CampaignState, Round, RoundStatus, direction_key

DIAGNOSIS_LEAST, DIAGNOSIS_MOST = 3, 5


def bounce_of(state: CampaignState, result: Proposed, purpose: str) -> Bounce | None:
    """Why this proposal is sent back, or ``None`` when it is accepted."""
    proposal = result.proposal
    if not (proposal.queried_log and result.queried_log):
        return Bounce("log_not_queried", "The proposal came without a query of the experiment log. Read the log first, "
                                         "then propose.")
    if proposal.kind == "give_up":
        return None
    wanted = _hypotheses_bounce(state, proposal, purpose)
    if wanted is not None:
        return wanted
    if proposal.candidate is None:
        if purpose == "candidate":
            return Bounce("candidate_missing", "This turn asks for a candidate kernel and none came. Send one, or give "
                                               "up with a reason.")
        return None
    bounces = [_candidate_bounce(state, proposal, candidate) for candidate, _ in candidates_of(result)]
    return None if None in bounces else bounces[0]


def candidates_of(result: Proposed) -> tuple[tuple[Candidate, str | None], ...]:
    """All candidates of an answer with the digests of their normal forms, the preferred one first."""
    first = () if result.proposal.candidate is None else ((result.proposal.candidate, result.normal_digest),)
    digests = (*result.alternative_digests, *(None for _ in result.proposal.alternatives))
    return (*first, *zip(result.proposal.alternatives, digests, strict=False))


def chosen(state: CampaignState, result: Proposed) -> tuple[Candidate, str | None]:
    """The first candidate of an accepted answer that may be tried and is new, else the first that may be tried; with
    the digest of its normal form."""
    known = tried(state)
    allowed = [(candidate, digest) for candidate, digest in candidates_of(result)
               if _candidate_bounce(state, result.proposal, candidate) is None]
    return next((one for one in allowed if one[1] not in known), allowed[0])


def _hypotheses_bounce(state: CampaignState, proposal: Proposal, purpose: str) -> Bounce | None:
    ids = [hypothesis.id for hypothesis in proposal.hypotheses]
    if len(set(ids)) != len(ids):
        return Bounce("hypotheses_invalid", "Two hypotheses share an id. Give each its own.")
    struck = [name for name in ids if name in state.struck]
    if struck:
        return Bounce("hypothesis_struck", f"A person struck hypothesis {struck[0]}. Propose another idea.")
    if purpose == "diagnosis" and not DIAGNOSIS_LEAST <= len(ids) <= DIAGNOSIS_MOST:
        return Bounce("hypotheses_invalid", f"The diagnosis needs three to five hypotheses, not {len(ids)}.")
    if purpose == "restructure" and not set(ids) - {h.id for h in state.hypotheses}:
        return Bounce("hypotheses_invalid", "A restructure needs at least one new hypothesis (new id) on algorithm or "
                                            "data layout.")
    return None


def _candidate_bounce(state: CampaignState, proposal: Proposal, candidate: Candidate) -> Bounce | None:
    hypothesis = named(merged(state.hypotheses, proposal.hypotheses), candidate.hypothesis)
    if hypothesis is None:
        return Bounce("hypothesis_unknown", f"The candidate names hypothesis '{candidate.hypothesis}', which nobody "
                                            "stated or which a person struck. Name one of the open ones.")
    direction = direction_key(hypothesis)
    person = forbidden_by(state, direction)
    if person is not None:
        return Bounce("direction_forbidden", f"{person} forbade direction {direction} in this campaign. Propose an "
                                             "idea in another direction.")
    rounds = closed_directions(state).get(direction)
    if rounds is None:
        return None
    where = f"Direction {direction} is closed after rounds {', '.join(map(str, rounds))}."
    if candidate.retry_of is None or not (candidate.essential_difference or "").strip():
        return Bounce("direction_closed", f"{where} Switch to another direction, or use the campaign's one retry: name "
                                          "the round in retry_of and state the essential difference.")
    if state.retry_round is not None:
        return Bounce("direction_closed", f"{where} The campaign's one retry was used in round {state.retry_round}.")
    if candidate.retry_of not in rounds:
        return Bounce("direction_closed", f"{where} retry_of is {candidate.retry_of}, which is not one of them.")
    return None


def merged(known: tuple[Hypothesis, ...], new: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    """Known hypotheses followed by new ones; an id keeps its first meaning."""
    ids = {hypothesis.id for hypothesis in known}
    return known + tuple(hypothesis for hypothesis in new if hypothesis.id not in ids)


def named(hypotheses: tuple[Hypothesis, ...], name: str) -> Hypothesis | None:
    """The hypothesis with id ``name``."""
    return next((hypothesis for hypothesis in hypotheses if hypothesis.id == name), None)


def with_bounce(record: Round, bounce: Bounce, incumbent_digest: str) -> Round:
    """The round after one more bounce; the third concludes it as failed."""
    bounces = (*record.bounces, bounce)
    if len(bounces) < MAX_BOUNCES:
        return replace(record, bounces=bounces)
    reasons = tuple(Reason(b.code, Stage.ADMIT, b.text) for b in bounces)
    verdict = VerdictSummary(kernel="", outcome=Outcome.POLICY_VIOLATION, stage=Stage.ADMIT, reasons=reasons)
    return replace(record, bounces=bounces, status=RoundStatus.CONCLUDED, verdict=verdict, opponent=incumbent_digest)


def with_candidate(state: CampaignState, record: Round, candidate: Candidate, normal_digest: str | None) -> Round:
    """The round after an accepted candidate: evaluating, or concluded at once when its tree was tried before."""
    kernel = SourceRef(digest_source(candidate.source), candidate.source)
    record = replace(
        record, candidate=candidate, kernel=kernel, normal_digest=normal_digest,
        hypothesis=named(state.hypotheses, candidate.hypothesis), opponent=state.incumbent.kernel.digest,
        status=RoundStatus.EVALUATING,
    )
    earlier = tried(state).get(normal_digest) if normal_digest is not None else None
    if earlier is None:
        return record
    same = normal_digest == state.incumbent.normal_digest
    text = (f"This is the incumbent (round {earlier}) with at most comments and local names changed: nothing to "
            "measure." if same else
            f"The same normalised tree was tried in round {earlier}; its verdict stands. See that round, then propose "
            "something else.")
    outcome, code = (Outcome.NO_CHANGE, "no_change") if same else (Outcome.DUPLICATE, "duplicate")
    verdict = VerdictSummary(kernel=kernel.digest, outcome=outcome, stage=Stage.ADMIT,
                             step_tier=Tier.NONE if same else None, reasons=(Reason(code, Stage.ADMIT, text),))
    return replace(record, status=RoundStatus.CONCLUDED, verdict=verdict)
