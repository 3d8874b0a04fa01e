"""An agent whose answers are free of keys, whatever its endpoint made of them: an answer's words reach rounds, kernels,
the log and the events of a campaign by other ways than its stored turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.agents.errors import AgentError
from harness.agents.llm.redaction import forms, without
from harness.agents.protocol import Agent, AgentContext
from harness.domain.codec import from_document, to_document
from harness.domain.proposal import Proposal


class Cleaned:
    """``agent`` with ``secrets`` taken out of its proposals and of its errors, before anything is addressed by its
    contents."""

    def __init__(self, agent: Agent, secrets: Sequence[str]) -> None:
        self._agent = agent
        self._secrets = forms(secrets)
        self.label = agent.label

    def propose(self, context: AgentContext) -> Proposal:
        """See ``Agent.propose``."""
        try:
            proposal = self._agent.propose(context)
        except AgentError as error:
            raise AgentError(without(error.text, self._secrets), blame=error.blame, tokens=error.tokens,
                             money=error.money, turns=error.turns) from None
        document = to_document(proposal)
        clean = self._clean(document)
        return proposal if clean == document else from_document(clean, Proposal)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return without(value, self._secrets)
        if isinstance(value, dict):
            return {key: self._clean(item) for key, item in value.items()}
        return [self._clean(item) for item in value] if isinstance(value, list) else value
