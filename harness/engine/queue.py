"""Alternatives of one asking (best of n): distinct ones wait, and each becomes a round of its own."""

from __future__ import annotations

from dataclasses import replace

from harness.domain.digest import digest_source
from harness.domain.proposal import Candidate
from harness.domain.request import SourceRef
from harness.engine import rules
from harness.engine.errors import EngineError
from harness.engine.intake import candidates_of, named
from harness.engine.results import Proposed, QueueTaken
from harness.engine.state import CampaignState, Queued, Round, RoundStatus, Status, direction_key


def queue_of(state: CampaignState, result: Proposed, taken: Candidate) -> tuple[Queued, ...]:
    """The candidates of ``result`` beside ``taken`` that are worth a round: they parse, their tree is new among
    themselves and the campaign's, and their hypothesis and direction are open. Order as proposed."""
    seen = set(rules.tried(state))
    found = []
    seen |= {digest for candidate, digest in candidates_of(result) if candidate is taken and digest is not None}
    for candidate, digest in candidates_of(result):
        if candidate is taken or digest is None or digest in seen or not _open(state, candidate):
            continue
        seen.add(digest)
        found.append(Queued(candidate, digest, result.round))
    return tuple(found)


def taken(state: CampaignState, result: QueueTaken) -> CampaignState:
    """The next alternative that is still worth it becomes the running round; those that no longer are fall away.

    Raises:
        EngineError: nothing waits, or it is not the turn of a queued candidate.
    """
    if state.status is not Status.RUNNING or state.active_round is not None or not state.queued:
        raise EngineError("No alternative waits for a round now.")
    if result.round != len(state.rounds) + 1:
        raise EngineError(f"The next round is {len(state.rounds) + 1}, not {result.round}.")
    tried = rules.tried(state)
    for index, item in enumerate(state.queued):
        hypothesis = named(state.hypotheses, item.candidate.hypothesis)
        if hypothesis is None or item.normal_digest in tried or not _open(state, item.candidate):
            continue
        source = item.candidate.source
        record = Round(result.round, status=RoundStatus.EVALUATING, hypothesis=hypothesis, candidate=item.candidate,
                       kernel=SourceRef(digest_source(source), source), normal_digest=item.normal_digest,
                       opponent=state.incumbent.kernel.digest)
        return replace(state, rounds=(*state.rounds, record), queued=state.queued[index + 1:])
    return replace(state, queued=())


def _open(state: CampaignState, candidate: Candidate) -> bool:
    hypothesis = named(state.hypotheses, candidate.hypothesis)
    return hypothesis is not None and rules.is_open(state, direction_key(hypothesis))
