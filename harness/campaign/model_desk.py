"""The desk of a language model on the command line: endpoints from the file, turns in the campaign's folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from harness.agents.llm.endpoints import ModelFacts, load_endpoints
from harness.agents.llm.ports import Delta, Desk, Transport
from harness.campaign.model_turns import FileTurns, HeldTurns, keep_facts
from harness.domain.errors import UsageError
from harness.domain.goal import AgentChoice

VARIABLE = "KERNELOPT_ENDPOINTS"
DEFAULT = Path("var/endpoints.toml")


def endpoints_path(given: Path | None = None) -> Path:
    """The file of endpoints: the one named, else by the environment, else ``var/endpoints.toml``."""
    named = os.environ.get(VARIABLE, "")
    return given or (Path(named).expanduser() if named else DEFAULT)


def desk_for(choice: AgentChoice, endpoints: Path, out: Path | None,
             told: Callable[[Delta], None] = lambda delta: None) -> Desk:
    """A desk for the chosen endpoint and model.

    Raises:
        UsageError: no endpoint or model was named, or the file does not offer it.
        EndpointsError: the file is wrong.
    """
    known = load_endpoints(endpoints)
    if not choice.endpoint or not choice.model:
        raise UsageError(f"A language model needs --endpoint and --model. Endpoints of {endpoints}: "
                         f"{', '.join(known) or 'none'}.", code="agent_unavailable")
    endpoint = known.get(choice.endpoint)
    if endpoint is None:
        raise UsageError(f"{endpoints} has no endpoint '{choice.endpoint}'. It has: {', '.join(known) or 'none'}.",
                         code="agent_unavailable")
    if endpoint.facts(choice.model) is None:
        offered = ", ".join(model.name for model in endpoint.models)
        raise UsageError(f"The endpoint '{choice.endpoint}' does not offer '{choice.model}'. It offers: {offered}.",
                         code="agent_unavailable")

    def facts(name: str, model: str) -> ModelFacts | None:
        return known[name].facts(model) if name in known else None

    def transport(name: str) -> Transport:
        from harness.agents.llm.wire.transport import transports  # loads an HTTP client: only where a model is asked

        return transports(known)(name)

    if out is not None:
        keep_facts(out, endpoint.facts(choice.model))
    return Desk(transport, FileTurns(out) if out is not None else HeldTurns(), told, facts=facts)
