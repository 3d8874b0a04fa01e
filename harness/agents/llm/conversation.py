"""One conversation with a model, from the prompt to a proposal. The model reads and proposes by calls; whatever else it
answers is told to it and counted, and nothing it writes is run or believed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.agents.errors import AgentCancelled, AgentError
from harness.agents.llm.endpoints import ModelFacts
from harness.agents.llm.exchange import Exchange
from harness.agents.llm.limits import Limits, check, warning
from harness.agents.llm.messages import Message, result, said, shortened, size_of, user
from harness.agents.llm.ports import Question, TransportError
from harness.agents.llm.prompt import ROOMS, build
from harness.agents.llm.repair import Reading, read
from harness.agents.llm.replies import CUT_CALL, NOT_RUN, TOO_MANY, WRITTEN, advice
from harness.agents.llm.tools import TOOLS, Workbench, call, functions
from harness.domain.proposal import Proposal
from harness.domain.turn import Answer, ToolCall

PROMPT = 2
"""Messages that a conversation begins with."""
MOST_CALLS = 8
"""Calls of one answer that are run."""
LEAST_ANSWER = 1024
CUT_SHORT = 0.3
"""An endpoint that counts less than this share of a question's tokens did not read all of it."""
EFFORTS = ("minimal", "low", "medium", "high", "xhigh")


@dataclass(slots=True)
class Parameters:
    """What goes with every question; changed where an answer was cut off, and so the same again on a resume."""

    answer_tokens: int
    effort: str | None
    raised: bool = False

    @property
    def sent(self) -> dict[str, Any]:
        """As a question carries them."""
        return {"max_tokens": self.answer_tokens} | ({"effort": self.effort} if self.effort else {})

    def after_cut(self, facts: ModelFacts | None) -> None:
        """Double the answer's room once; after that think less, where the model has efforts to choose from."""
        if not self.raised:
            self.raised = True
            most = facts.context_tokens // 2 if facts is not None else 2 * self.answer_tokens
            self.answer_tokens = max(self.answer_tokens, min(2 * self.answer_tokens, most))
            return
        known = [word for word in EFFORTS if facts is not None and word in facts.efforts]
        if self.effort in known[1:]:
            self.effort = known[known.index(self.effort) - 1]
        elif self.effort is None and known:
            self.effort = known[0]


@dataclass(slots=True)
class Conversation:
    """One sample of one asking."""

    bench: Workbench
    exchange: Exchange
    limits: Limits
    model: str
    effort: str | None = None
    sample: int = 0
    samples: int = 1
    clock: Callable[[], float] = time.monotonic
    repairs: list[str] = field(default_factory=list)
    _messages: list[Message] = field(default_factory=list)
    _added: list[Message] = field(default_factory=list)
    _room: int = 0
    _wasted: int = 0
    _refused: int = 0
    _taught: bool = False
    _noted: bool = False
    _sent: int = 0

    def run(self) -> Proposal:
        """Ask until the model proposes.

        Raises:
            AgentError: it did not within the limits (blame ``model``), or the endpoint failed (``provider``).
            AgentCancelled: somebody stopped it.
        """
        facts, began = self.exchange.facts, self.clock()
        parameters = self._first_parameters(facts)
        self._begin()
        while True:
            check(self.limits, self.exchange.paid, self.clock() - began)
            if self.exchange.cancelled():
                raise AgentCancelled("The answer was stopped; nothing of it was counted.")
            try:
                answer = self.exchange.ask(self._question(parameters), self._added, lambda a: read(a).fault)
            except TransportError as error:
                self._after_failure(error, parameters)
                continue
            self._added = []
            reading = read(answer)
            self._heed(answer)
            if reading.cut:
                parameters.after_cut(facts)
            end = self._take(answer, reading)
            if end is not None:
                return end

    def first_question(self) -> Question:
        """The question that the conversation begins with: it tells whether a stored one is this one."""
        parameters = self._first_parameters(self.exchange.facts)
        self._begin()
        return self._question(parameters)

    def _first_parameters(self, facts: ModelFacts | None) -> Parameters:
        most = max(LEAST_ANSWER, facts.context_tokens // 4) if facts is not None else self.limits.answer_tokens
        return Parameters(min(self.limits.answer_tokens, most), self.effort)

    def _begin(self) -> None:
        """The first messages, in the largest room that the model's context is said to have."""
        self._messages, self._room = [], -1
        self._shrink()
        while self._too_long() and self._room + 1 < len(ROOMS):
            self._shrink()

    def _shrink(self) -> None:
        self._room += 1
        prompt = build(self.bench.context, ROOMS[self._room], self.sample, self.samples)
        self._messages = [*prompt.messages, *self._messages[PROMPT:]]
        self._added = shortened(self._messages, ROOMS[self._room].results)

    def _too_long(self) -> bool:
        facts = self.exchange.facts
        if facts is None:
            return False
        asked = size_of(shortened(self._messages, ROOMS[self._room].results)) + size_of(functions())
        return asked + LEAST_ANSWER > facts.context_tokens

    def _question(self, parameters: Parameters) -> Question:
        while self._too_long() and self._room + 1 < len(ROOMS):
            self._shrink()
        messages = shortened(self._messages, ROOMS[self._room].results)
        self._sent = size_of(messages)
        return Question(self.model, messages, functions(), parameters.sent)

    def _after_failure(self, error: TransportError, parameters: Parameters) -> None:
        if error.kind == "cancelled":
            raise AgentCancelled(error.text) from error
        if error.kind == "overflow":
            if self._room + 1 < len(ROOMS):
                self._shrink()
                # Servers count the answer's room as well: where the settings say too much, that is what is too long.
                parameters.answer_tokens = max(LEAST_ANSWER, parameters.answer_tokens // 2)
                return
            if len(self._messages) > PROMPT:
                # What the model itself said is too long. Kept turns would lead to the same end at every resume: it is
                # sent back, and the next asking begins anew.
                raise AgentError(f"The conversation outgrew the context of {self.model}: the model said more than fits "
                                 "into one. Shorter answers, or a model with a longer context.") from error
            raise AgentError(f"The question is longer than the context of {self.model} even at its shortest: "
                             f"{error.text} Choose a model with a longer context.", blame="provider") from error
        raise AgentError(error.text, blame="provider") from error

    def _heed(self, answer: Answer) -> None:
        """Some servers cut a question that is too long for them and say nothing: their count of its tokens tells."""
        counted, sent = answer.usage.input + answer.usage.cached, self._sent
        if not answer.usage.estimated and 0 < counted < CUT_SHORT * sent and not self._noted:
            self._noted = True
            self.repairs.append(f"the endpoint counted {counted:,} tokens in a question of about {sent:,}: it may cut "
                                "questions short; give its model a longer context")

    def _take(self, answer: Answer, reading: Reading) -> Proposal | None:
        """Run what can be run and tell the model the rest; a proposal where a call made one."""
        self._say(said(answer, reading.cut))
        if reading.calls:
            end = self._run(reading)
            if end is not None:
                return end
        else:
            kept = self.bench.keep(reading.code) if reading.code else ""
            if kept:
                self.repairs.append(f"a kernel in prose was put aside as {kept}")
            self._say(user(advice(reading, kept)))
        if "tools" in answer.dropped and not self._taught:
            self._taught = True
            self._say(user(WRITTEN))
        self._wasted = self._wasted + 1 if reading.fault else 0
        if self._wasted >= self.limits.wasted:
            raise AgentError(f"{self._wasted} answers in a row were of no use. The last one: {reading.fault}")
        note = warning(self.limits, self.exchange.paid)
        if note:
            self._say(user(note))
        return None

    def _run(self, reading: Reading) -> Proposal | None:
        written = reading.kind == "prose_calls"
        if written:
            self.repairs.append("calls written as text were taken as calls")
        results: list[str] = []
        for number, one in enumerate(reading.calls):
            text, end = self._one(one, number, reading.cut)
            if end is not None:
                return end
            if written:
                results.append(f"Result of {one.name}:\n{text}")
            else:
                self._say(result(one, text))
        if written:
            self._say(user("\n\n".join(results)))
        return None

    def _one(self, one: ToolCall, number: int, cut: bool) -> tuple[str, Proposal | None]:
        if number >= MOST_CALLS:
            return TOO_MANY.format(most=MOST_CALLS), None
        tool = TOOLS.get(one.name)
        if cut and tool is not None and tool.ending:
            return CUT_CALL, None
        made = call(self.bench, one.name, one.arguments)
        self._refused += made.is_error and tool is not None and tool.ending
        if self._refused >= self.limits.refused:
            raise AgentError(f"{self._refused} proposals of this asking were refused before they were sent on. The last"
                             f" reason: {made.text}")
        return (f"{NOT_RUN} {made.text}" if made.is_error else made.text), made.ends

    def _say(self, message: Message) -> None:
        self._messages.append(message)
        self._added.append(message)
