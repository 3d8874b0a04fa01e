"""From a goal's ``agent`` to an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.agents.protocol import Agent
from harness.domain.errors import UsageError
from harness.domain.goal import AgentChoice

if TYPE_CHECKING:
    from harness.agents.autotune.agent import Planner

LABELS = {
    "playbook": "Playbook (scripted, no LLM)",
    "autotune": "Autotune (classical search, no LLM)",
    "openai": "OpenAI-compatible endpoint",
}
"""How pages name the kinds of agents."""


def make_agent(choice: AgentChoice, planner: Planner | None = None) -> Agent:
    """The agent that a goal chose. ``planner`` lets a search rule kernels out that do not compile or fit the device.

    Raises:
        UsageError: the kind needs something that this installation does not have.
    """
    if choice.kind == "playbook":
        from harness.agents.playbook.agent import Playbook

        return Playbook()
    if choice.kind == "autotune":
        from harness.agents.autotune.agent import Autotune

        return Autotune(choice.strategy, planner)
    raise UsageError(
        "The openai agent is not part of this installation: it needs an OpenAI-compatible endpoint in the server's "
        "settings (name, URL, key variable, model) and the agent that talks to it. Choose --agent playbook or "
        "--agent autotune, which run offline.", code="agent_unavailable",
    )
