"""What a scripted model knows: the conversation it is sent, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DATA = re.compile(r'<data from="([^"\n]*)">\n(.*?)\n</data>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Said:
    """One answer. ``calls`` are names and arguments as text; ``finish`` is worked out where it is empty."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    reasoning: str = ""
    finish: str = ""

    @property
    def reason(self) -> str:
        """The finish reason in the words of chat completions."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, slots=True)
class Step:
    """A call of this conversation and what came back."""

    name: str
    arguments: dict[str, Any]
    result: str

    @property
    def refused(self) -> bool:
        """Whether the tool did not do it."""
        return self.result.startswith("ERROR")


@dataclass(frozen=True, slots=True)
class Conversation:
    """``task`` is the first message of a user, ``turns`` the number of answers so far, ``silent`` of those without a
    call."""

    task: str
    steps: tuple[Step, ...]
    turns: int
    silent: int

    def last(self, name: str) -> Step | None:
        """The newest call of a tool that worked."""
        return next((step for step in reversed(self.steps) if step.name == name and not step.refused), None)

    def count(self, name: str, *, refused: bool) -> int:
        """How often a tool was called, with or without success."""
        return sum(step.name == name and step.refused == refused for step in self.steps)

    def source(self, which: str) -> str | None:
        """The kernel that ``read_source`` showed, ``None`` where it was not read."""
        step = next((item for item in reversed(self.steps) if item.name == "read_source" and not item.refused
                     and item.arguments.get("which") == which), None)
        found = DATA.search(step.result) if step is not None else None
        return None if found is None else found[2] + "\n"

    def number(self, pattern: str, default: int) -> int:
        """A number that the task names."""
        found = re.search(pattern, self.task)
        return int(found[1]) if found else default

    @property
    def round(self) -> int:
        """The round that is asked for."""
        return self.number(r"Round (\d+) ", 1)


def conversation_of(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """Read messages in the chat-completions form."""
    task = next((str(item.get("content")) for item in messages if item.get("role") == "user"), "")
    results = {item.get("tool_call_id"): str(item.get("content") or "") for item in messages
               if item.get("role") == "tool"}
    steps = [Step(str(call["function"]["name"]), _object(call["function"]["arguments"]),
                  results.get(call.get("id"), ""))
             for item in messages for call in item.get("tool_calls") or ()]
    answers = [item for item in messages if item.get("role") == "assistant"]
    return Conversation(task, tuple(steps), len(answers), sum(not item.get("tool_calls") for item in answers))


def _object(text: Any) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, TypeError):
        return {}
    return value if isinstance(value, dict) else {}


def called(name: str, **arguments: Any) -> tuple[str, str]:
    """A call as a model writes it."""
    return name, json.dumps(arguments)
