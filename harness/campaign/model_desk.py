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

VARIABLE, FOLDER = "KERNELOPT_ENDPOINTS", "KERNELOPT_VAR"
NAME = "endpoints.toml"


def endpoints_path(given: Path | None = None) -> Path:
    """The file of endpoints: the one named, else by the environment, else ``endpoints.toml`` where a site on this
    machine looks for it: in the folder ``KERNELOPT_VAR``, ``var/`` by default."""
    named = os.environ.get(VARIABLE, "")
    return given or Path(named or Path(os.environ.get(FOLDER) or "var", NAME)).expanduser()


def desk_for(choice: AgentChoice, endpoints: Path, out: Path | None,
             told: Callable[[Delta], None] = lambda delta: None) -> Desk:
    """A desk for the chosen endpoint and model.

    Raises:
        UsageError: no endpoint or model was named, there is no file, or it does not offer what was named.
        EndpointsError: the file is wrong.
    """
    known = load_endpoints(endpoints)
    if not known:
        why = "names no endpoint" if endpoints.exists() else "is not there"
        raise UsageError(f"The file of endpoints, {endpoints}, {why}, so no language model can be asked. Name one in "
                         "it (docs/endpoints.md), or give the file with --endpoints.", code="agent_unavailable")
    if not choice.endpoint or not choice.model:
        raise UsageError(f"A language model needs --endpoint and --model. Endpoints of {endpoints}: "
                         f"{', '.join(known)}.", code="agent_unavailable")
    endpoint = known.get(choice.endpoint)
    if endpoint is None:
        raise UsageError(f"{endpoints} has no endpoint '{choice.endpoint}'. It has: {', '.join(known)}.",
                         code="agent_unavailable")
    model_facts = endpoint.facts(choice.model)
    if model_facts is None:
        offered = ", ".join(model.name for model in endpoint.models)
        raise UsageError(f"The endpoint '{choice.endpoint}' does not offer '{choice.model}'. It offers: {offered}.",
                         code="agent_unavailable")
    if choice.effort and choice.effort not in model_facts.efforts:
        raise UsageError(f"The model '{choice.model}' has no effort '{choice.effort}'. Its efforts: "
                         f"{', '.join(model_facts.efforts) or 'none; leave --effort out'}.", code="agent_unavailable")

    def facts(name: str, model: str) -> ModelFacts | None:
        return known[name].facts(model) if name in known else None

    def transport(name: str) -> Transport:
        from harness.agents.llm.wire.transport import transports  # loads an HTTP client: only where a model is asked

        return transports(known)(name)

    if out is not None:
        keep_facts(out, model_facts)
    return Desk(transport, FileTurns(out) if out is not None else HeldTurns(), told, facts=facts)
