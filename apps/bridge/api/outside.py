"""Answers of an agent outside of this server, as results that the engine folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.bridge.api.errors import translated


@dataclass(frozen=True, slots=True)
class OutsideAsked:
    """What the campaign asks its agent for now; ``attempt`` counts the askings of the round from 1."""

    round: int
    attempt: int
    purpose: str


def outside_asked(state: Any) -> OutsideAsked | None:
    """What is asked, ``None`` while it is not the agent's turn. ``state`` is the engine's own."""
    from harness.engine.actions import AskAgent
    from harness.engine.step import next_action

    action = next_action(state)
    return OutsideAsked(action.round, len(action.bounced) + 1, action.purpose) if isinstance(action, AskAgent) else None


def outside_result(state: Any, proposal: dict[str, Any], *, queried_log: bool) -> dict[str, Any]:
    """The result document of a proposal for what is asked now. It carries a source, words and numbers and nothing else;
    what is no proposal at all is an answer too: it is sent back, and the third such answer ends the round.

    Raises:
        BridgeError: the document does not follow the schema; nothing is counted.
    """
    with translated():
        from harness.campaign.context import answered
        from harness.domain.codec import check_schema, from_document
        from harness.domain.proposal import Proposal
        from harness.engine.actions import AskAgent
        from harness.engine.results import result_to_document
        from harness.engine.step import next_action

        check_schema(proposal, "proposal")
        action = next_action(state)
        assert isinstance(action, AskAgent)
        found = answered(action, from_document(proposal, Proposal), queried_log=queried_log)
        return result_to_document(found)
