"""A tool and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.domain.proposal import Proposal

if TYPE_CHECKING:
    from harness.agents.llm.tools.workbench import Workbench


@dataclass(frozen=True, slots=True)
class ToolResult:
    """``text`` goes back to the model; ``is_error``: nothing was done, and the text says what to change; ``ends``: the
    asking is over with this proposal."""

    text: str
    is_error: bool = False
    ends: Proposal | None = None


class Refused(Exception):
    """A tool that does nothing and says why, in a sentence the model can act on."""


@dataclass(frozen=True, slots=True)
class Tool:
    """``schema`` is strict: every property is required and no other is allowed; what may be absent is ``null``.
    ``run`` gets arguments that follow it and raises ``Refused`` for what a schema cannot say."""

    name: str
    description: str
    schema: Mapping[str, Any]
    run: Callable[[Workbench, dict[str, Any]], ToolResult]
    ending: bool = False
    """Whether a call of it may end the asking."""


def strict(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The schema of an object with exactly these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(properties),
            "additionalProperties": False}
