"""The first two messages of a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from harness.agents.llm.data import quote, tokens_of
from harness.agents.llm.log_text import log_rows, standing
from harness.agents.llm.prompt import sections
from harness.agents.llm.prompt.room import Room
from harness.agents.llm.prompt.templates import filled
from harness.agents.protocol import AgentContext
from harness.domain.words import one_line

MARKS = 20
"""Tokens that the marks around data take."""
STUCK_AFTER = 2
"""Measured rounds in a row without a gain after which other ground is suggested (R22)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """System and task text of one asking."""

    system: str
    task: str

    @property
    def tokens(self) -> int:
        """About how many tokens both take."""
        return tokens_of(self.system) + tokens_of(self.task)

    @property
    def messages(self) -> list[dict[str, str]]:
        """In the chat-completions form."""
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.task}]


def build(context: AgentContext, room: Room, sample: int = 0, samples: int = 1) -> Prompt:
    """The prompt within ``room``. ``sample`` of ``samples``: which of the candidates asked for in parallel it is."""
    spec, backend = context.spec, context.goal.backend
    task = filled(
        "task", goal=sections.goal_text(context), tier=sections.tier_text(context), backend=str(backend),
        operator=sections.operator_text(context), contract=filled(f"contract_{backend}", signature=spec.signature),
        hardware=sections.hardware_text(context, room.hardware), standing=standing(context),
        log=_log(context, room),
        people=sections.people_text(context, room.people), ask=_ask(context, sample, samples),
    )
    return Prompt(filled("system"), task)


def _log(context: AgentContext, room: Room) -> str:
    """The digest between marks: hypotheses and summaries in it are an agent's own words."""
    if not context.log.entries:
        return "Empty: only the baseline was measured."
    rows = log_rows(context.log.entries, room.log - MARKS)
    return quote("experiment log, measured", rows, len(rows) + 1) if rows else "Too long for here: see query_log."


def _ask(context: AgentContext, sample: int, samples: int) -> str:
    parts = [filled(f"ask_{context.purpose}", round=str(context.round))]
    measured = [attempt.verdict for attempt in context.attempts if attempt.verdict.conclusive]
    if context.purpose == "candidate" and len(measured) >= STUCK_AFTER \
            and not any(verdict.faster for verdict in measured[-STUCK_AFTER:]):
        parts.append(f"The last {STUCK_AFTER} measured rounds brought no gain: prefer another direction. If only "
                     "another algorithm or data layout can help and the grant forbids it, say so in give_up; a person "
                     "can choose a restructuring or raise the grant.")
    for number, text in enumerate(context.bounced, start=1):
        parts.append(f"Answer {number} of this round was sent back: {one_line(text)}")
    if context.bounced:
        parts.append("The third answer that is sent back ends the round as failed.")
    if samples > 1:
        parts.append(f"{samples} engineers answer this at the same time, you are number {sample + 1}. Equal kernels "
                     f"count once: prefer the open hypothesis ranked {sample + 1}, or an idea of your own.")
    return "\n".join(parts)
