"""Where a language model works for a campaign of this server: endpoints by the settings, turns in rows, answers live on
the campaign's page, and a person or the server's end who may stop them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection

from apps.bridge.runner.keys import key_names, secrets_of
from apps.bridge.runner.turns import StoredTurns
from apps.campaigns.models import Campaign
from apps.stream.live_answers import LiveAnswers
from apps.stream.services import progress_put
from harness.agents.llm.endpoints import ModelFacts, load_endpoints
from harness.agents.llm.ports import Delta, Desk, Transport
from harness.domain.errors import UsageError
from harness.domain.goal import Budget
from harness.domain.turn import Turn

log = logging.getLogger(__name__)


def desk_for(campaign: Campaign, fence: int, cancelled: Callable[[], bool], allowance: Budget | None = None) -> Desk:
    """The desk of one asking; the endpoints file is read anew, so that a mended one needs no restart. ``allowance`` is
    what the campaign may spend: no question is sent once the stored turns have spent it.

    Raises:
        EndpointsError: the file is wrong; the sentence says where.
    """
    path: Path = settings.ENDPOINTS_PATH
    endpoints = load_endpoints(path)
    live = _Live(campaign)

    def facts(endpoint: str, model: str) -> ModelFacts | None:
        found = endpoints.get(endpoint)
        known = None if found is None else found.facts(model)
        if found is not None and known is None:
            raise UsageError(f"The endpoint '{endpoint}' offers no model '{model}' any more. Change the model, or have "
                             "it put back into the server's settings, and resume.", code="agent_unavailable")
        if known is not None and known.price is None and allowance is not None and allowance.money is not None:
            raise UsageError(f"The budget limits money, and the server's settings have no price for '{model}' at "
                             f"'{endpoint}' any more: nothing would be counted. Add the price or change the model, and "
                             "resume.", code="agent_unavailable")
        return known

    def transport(endpoint: str) -> Transport:
        from harness.agents.llm.wire.transport import transports  # loads an HTTP client: only where a model is asked

        return transports(endpoints)(endpoint)

    def stopped() -> bool:
        live.flush()  # asked often and by every sample: what waits to be shown goes out here
        return cancelled()

    turns = StoredTurns(campaign, fence, secrets=secrets_of(os.environ, key_names(path)), told=live.turn,
                        allowance=allowance)
    return Desk(transport, turns, live.told, stopped, facts)


class _Live:
    """Shows answers while they come in. What cannot be shown is lost without harm: the turn itself is kept."""

    def __init__(self, campaign: Campaign) -> None:
        self._owner = threading.get_ident()
        self._answers = LiveAnswers(campaign.stream, put=self._put)

    def turn(self, turn: Turn) -> None:
        """A turn was written: its answer begins, or is over."""
        if turn.status == "open":
            self._answers.begin(round=turn.round, attempt=turn.attempt, sample=turn.sample, number=turn.number)
        else:
            self._answers.end(turn.sample)

    def told(self, delta: Delta) -> None:
        """A piece of an answer."""
        self._answers.told(delta.kind, delta.text, delta.sample)

    def flush(self) -> None:
        """Show what waited long enough."""
        self._answers.flush()

    def _put(self, **frame: Any) -> None:
        frame["data"] = _storable(frame["data"])
        try:
            progress_put(**frame)
        except DatabaseError as error:
            log.warning("A piece of a model's answer could not be shown: %s", error)
        finally:
            if threading.get_ident() != self._owner:  # a sample's thread, which nobody tells to close its connection
                connection.close()


def _storable(value: Any) -> Any:
    """Without what a JSON column refuses: a model may write NULs and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value
