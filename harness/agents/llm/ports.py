"""What the agent needs from outside: somebody who carries a question to a model, and somebody who keeps the turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from harness.domain.errors import HarnessError
from harness.domain.turn import Answer, Blame, Turn

if TYPE_CHECKING:
    from harness.agents.llm.endpoints import ModelFacts

DeltaKind = Literal["text", "reasoning", "call"]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer while it comes in; ``call`` pieces carry a tool's name and then its arguments' text."""

    kind: DeltaKind
    text: str
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a model in the chat-completions form. ``parameters`` are optional ones (temperature, effort,
    most tokens of the answer): a model that refuses one is asked once more without it."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)


class TransportError(HarnessError):
    """No answer came.

    ``kind``: ``cancelled`` by a person or the server's end; ``overflow``: the question is longer than the model's
    context; ``refused``: a 4xx that will not heal (key, model's name, access); ``unavailable``: what may heal (5xx,
    rate limits, connection, timeout) did not within the patience; ``broken``: the stream ended or made no sense.
    ``partial`` is what had come in.
    """

    code = "endpoint"

    def __init__(self, text: str, *, kind: Literal["cancelled", "overflow", "refused", "unavailable", "broken"],
                 partial: Answer | None = None, retries: int = 0) -> None:
        super().__init__(text)
        self.kind = kind
        self.partial = partial
        self.retries = retries

    @property
    def blame(self) -> Blame:
        """A question that is too long is the agent's, everything else the provider's."""
        return "model" if self.kind == "overflow" else "provider"


class Transport(Protocol):
    """Carries one question to one endpoint. Holds the key, which appears in no text, error or representation."""

    def ask(self, question: Question, *, told: Callable[[Delta], None], cancelled: Callable[[], bool]) -> Answer:
        """The whole answer; pieces go to ``told`` as they come. Retries what may heal within its patience.

        Raises:
            TransportError: no answer came.
        """
        ...


class Turns(Protocol):
    """Keeps turns. A turn is written ``open`` before anything is sent, and again under the same name
    (round, attempt, sample, number) when it is over."""

    def stored(self, round: int) -> tuple[Turn, ...]:
        """The turns of a round in order of (attempt, sample, number)."""
        ...

    def keep(self, turn: Turn) -> None:
        """Write or replace a turn; on return it survives a kill."""
        ...


@dataclass(frozen=True, slots=True)
class Desk:
    """Where an agent works: its endpoint, what keeps its turns, who watches, and who may stop it. Samples that are
    asked for in parallel call ``told`` and ``cancelled`` from threads of their own; ``turns`` is used by the asking
    thread alone."""

    transport: Callable[[str], Transport]
    """From an endpoint's name to the transport. Raises ``UsageError`` for a name that the server does not have."""
    turns: Turns
    told: Callable[[Delta], None] = lambda delta: None
    cancelled: Callable[[], bool] = lambda: False
    facts: Callable[[str, str], ModelFacts | None] = lambda endpoint, model: None
    """What the server's settings say of an endpoint's model: its context, its efforts and its price."""
