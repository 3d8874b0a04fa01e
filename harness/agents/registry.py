"""From a goal's ``agent`` to an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.agents.protocol import Agent
from harness.domain.errors import UsageError
from harness.domain.goal import AgentChoice

if TYPE_CHECKING:
    from harness.agents.autotune.agent import Planner
    from harness.agents.llm.ports import Desk

LABELS = {
    "playbook": "Playbook (scripted, no LLM)",
    "autotune": "Autotune (classical search, no LLM)",
    "openai": "Language model (OpenAI-compatible endpoint)",
    "mcp": "Agent outside of this server (MCP)",
}
"""How pages name the kinds of agents."""


def make_agent(choice: AgentChoice, planner: Planner | None = None, desk: Desk | None = None) -> Agent:
    """The agent that a goal chose. ``planner`` lets a search rule kernels out that do not compile or fit the device;
    ``desk`` is where a language model works.

    Raises:
        UsageError: the kind needs something that this installation does not have, or is not asked from here.
    """
    if choice.kind == "playbook":
        from harness.agents.playbook.agent import Playbook

        return Playbook()
    if choice.kind == "autotune":
        from harness.agents.autotune.agent import Autotune

        return Autotune(choice.strategy, planner)
    if choice.kind == "mcp":
        raise UsageError("An agent outside of this server hands its proposals in by itself, through MCP; nobody here "
                         "can ask it. Run its campaign on the site, or choose --agent playbook or --agent autotune.",
                         code="agent_unavailable")
    if desk is None:
        raise UsageError("A language model needs an OpenAI-compatible endpoint (name, URL, key variable, model) in the "
                         "file of endpoints, and a place that keeps its turns. Name them, or choose --agent playbook "
                         "or --agent autotune, which run offline.", code="agent_unavailable")
    from harness.agents.llm.agent import LanguageModel

    return LanguageModel(desk)
