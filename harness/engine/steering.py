"""People's words in the middle of a campaign: what they change, and what they cannot (no tier, verdict or approval)."""

from __future__ import annotations

from dataclasses import replace

from harness.domain.steering import Steer
from harness.domain.vocabulary import Direction
from harness.engine.errors import EngineError
from harness.engine.results import Steered
from harness.engine.state import CampaignState, Status

FUNCTION_KEPT = 100
STEERABLE = ("openai", "mcp")
"""Agents that read words. The others are programs: edit their hypotheses, or fork the campaign."""


def steered(state: CampaignState, result: Steered) -> CampaignState:
    """The state after a person steered.

    Raises:
        EngineError: the campaign is over, its agent reads no words, or the words name nothing that could be done.
    """
    if state.status.over:
        raise EngineError(f"The campaign is {state.status}; its agent is asked no more. Fork it to go on.")
    if state.goal.agent.kind not in STEERABLE:
        raise EngineError(f"The {state.goal.agent.kind} agent is a program and reads no words. Edit its hypotheses, or "
                          "fork the campaign with another agent.")
    note = Steer(result.kind, result.person, result.text, result.direction, len(state.rounds))
    state = replace(state, steering=(*state.steering, note))
    match result.kind:
        case "hint":
            return _hinted(state, result)
        case "forbid" | "allow":
            return _directed(state, result)
        case "restructure":
            return _restructured(state)
        case _:
            return _with_model(state, result)


def _hinted(state: CampaignState, result: Steered) -> CampaignState:
    if not result.text.strip():
        raise EngineError("The hint is empty: write what the agent should know or try.")
    return state


def _directed(state: CampaignState, result: Steered) -> CampaignState:
    name, _, function = result.direction.partition(":")
    named = function.isidentifier() and len(function) <= FUNCTION_KEPT
    if name not in tuple(Direction) or (":" in result.direction and not named):
        raise EngineError(f"'{result.direction}' is no direction. Directions: {', '.join(Direction)}, with or without "
                          "a kernel function behind a colon.")
    others = tuple(entry for entry in state.forbidden if entry[0] != result.direction)
    if result.kind == "forbid":
        return replace(state, forbidden=(*others, (result.direction, result.person)))
    if others == state.forbidden:
        raise EngineError(f"Nobody forbade '{result.direction}'. Forbidden now: "
                          f"{', '.join(entry[0] for entry in state.forbidden) or 'nothing'}.")
    return replace(state, forbidden=others)


def _restructured(state: CampaignState) -> CampaignState:
    if state.status is Status.PLATEAU:
        raise EngineError("The campaign stands on a plateau and asks a person what to do: choose 'restructure' there.")
    return replace(state, restructure=True, queued=())


def _with_model(state: CampaignState, result: Steered) -> CampaignState:
    if state.goal.agent.kind != "openai":
        raise EngineError("The agent works outside of this server; its model is changed there.")
    if not (result.endpoint or result.model or result.effort):
        raise EngineError("Name the endpoint, model or effort to change to.")
    now = state.choice
    return replace(state, agent=replace(now, endpoint=result.endpoint or now.endpoint, model=result.model or now.model,
                                        effort=result.effort or now.effort))
