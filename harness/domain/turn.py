"""One turn of a language model: what it was sent, what came back, what it cost. Kept whole, so that a campaign that was
killed pays for no complete turn twice and every conversation can be read and replayed without a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Blame = Literal["model", "provider"]
"""Whose fault a turn without a usable answer is: the model's own, or its endpoint's, the network's or the host's."""
TurnStatus = Literal["open", "complete", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asked for. ``arguments`` is the text as it came, which may not be JSON at all."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one turn as the endpoint counted them, ``None`` where it said nothing (then ``estimated`` holds)."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """What counts against a budget of tokens."""
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said in one turn. ``finish`` is the endpoint's reason in its words (``stop``, ``tool_calls``,
    ``length``, ``content_filter``); ``dropped`` names request parameters that the model refused and that were left
    out, ``retries`` counts the askings that failed before this one."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    usage: Usage = Usage()
    model: str = ""
    dropped: tuple[str, ...] = ()
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One request and its answer within a round.

    ``attempt`` counts the askings of a round (a bounced proposal is asked again), ``sample`` the parallel candidates of
    one asking, ``number`` the turns of one conversation; together with the round they name a turn. ``messages`` are
    those added since the turn before, in the chat-completions form; ``request_digest`` addresses everything that was
    sent (all messages, tools, parameters), so that a stored answer is used again for the same question only. ``cost``
    is in ``currency``, ``None`` where the endpoint has no price. ``template`` is the version of the prompt.
    """

    round: int
    attempt: int
    number: int
    endpoint: str
    model: str
    template: str
    request_digest: str
    messages: tuple[dict[str, Any], ...]
    status: TurnStatus = "open"
    sample: int = 0
    answer: Answer | None = None
    cost: float | None = None
    currency: str = ""
    latency_s: float = 0.0
    retries: int = 0
    blame: Blame | None = None
    error: str = ""
    began: str = ""
    version: int = 1
