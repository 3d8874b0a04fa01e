"""A client of the MCP server that works like an engineer with a book of strategies: it knows what the tools tell it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp.client.client import Client

from harness.agents.playbook.agent import diverse, playable
from harness.agents.profile import profile_of
from harness.agents.protocol import AgentContext, LogBook
from harness.domain.codec import to_document
from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import SourceRef
from harness.evaluation.source.normal_form import normal_digest
from harness.operators import registry


class Refused(Exception):
    """A tool answered with an error."""


@dataclass
class Engineer:
    """Drives one campaign over one connection; ``said`` holds what the tools answered, by tool."""

    client: Client
    campaign: int
    goal: Goal
    tried: dict[str, int] = field(default_factory=dict)
    said: list[tuple[str, str]] = field(default_factory=list)

    async def use(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers: its document, or its text.

        Raises:
            Refused: the tool did nothing, and says why.
        """
        answer = await self.client.call_tool(tool, {"campaign": self.campaign, **arguments})
        text = "".join(part.text for part in answer.content if part.type == "text")
        self.said.append((tool, text))
        if answer.is_error:
            raise Refused(text)
        return text if answer.structured_content is None else answer.structured_content

    async def wait(self) -> dict[str, Any]:
        """Until it is the agent's turn, a person is awaited or the campaign is over."""
        while (standing := await self.use("wait_for_verdict", seconds=10))["waits_for"] == "evaluator":
            pass
        return dict(standing)

    async def read(self, standing: dict[str, Any]) -> AgentContext:
        """What the book of strategies needs, from what the tools tell."""
        await self.use("query_log", direction=None)
        shown = await self.use("read_source", which="incumbent", round=None)
        incumbent = shown.split('">\n', 1)[1].removesuffix("\n</data>") + "\n"
        spec = registry.get(self.goal.operator)
        self.tried.setdefault(normal_digest(incumbent), standing["incumbent"]["round"])
        kernel = SourceRef(digest_source(incumbent), incumbent)
        return AgentContext(
            goal=self.goal, spec=spec, grant=self.goal.grant, round=standing["round"], purpose=standing["asked_for"],
            log=LogBook(), baseline=kernel, incumbent=kernel, incumbent_round=standing["incumbent"]["round"],
            incumbent_normal=normal_digest(incumbent), baseline_verdict=None, incumbent_verdict=None,
            profile=profile_of(spec, self.goal.backend, self.goal.workload, None, incumbent), tried=self.tried)

    async def answer(self, standing: dict[str, Any]) -> None:
        """One round: read, state what is new, hand in the best move of the book."""
        context = await self.read(standing)
        ready = playable(context)
        best = ready[0]
        stated = diverse(ready) if standing["asked_for"] == "diagnosis" else [best]
        ideas = [{**to_document(item.hypothesis), "id": f"r{context.round}-{place}",
                  "expected_gain": max(0.01, item.hypothesis.expected_gain)} for place, item in enumerate(stated)]
        await self.use("state_hypotheses", hypotheses=ideas)
        self.tried[normal_digest(best.source)] = context.round
        await self.use("submit_candidate", hypothesis=ideas[0]["id"], source=best.source, retry_of=None,
                       change_summary=best.move.summary, claimed_gain=None, essential_difference=None)
