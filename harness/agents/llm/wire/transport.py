"""The transport to an OpenAI-compatible endpoint: asks, waits, asks again without what was refused, and says in one
sentence why no answer came."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from harness.agents.llm.endpoints import Endpoint
from harness.agents.llm.ports import Delta, DeltaKind, Question, Transport, TransportError
from harness.agents.llm.redaction import PieceFilter, redacted, without
from harness.agents.llm.wire.faults import Fault
from harness.agents.llm.wire.form import Api, answered_parameters, form, remembered_as
from harness.agents.llm.wire.gather import estimate
from harness.agents.llm.wire.learned import Memory
from harness.agents.llm.wire.openai_chat import STREAM
from harness.agents.llm.wire.retry import Patience, Slots, Stopped, sleep
from harness.agents.llm.wire.sending import Pieces, Sending
from harness.domain.errors import UsageError
from harness.domain.turn import Answer, ToolCall, Usage

MOST_CUTS = 3
"""Answers that break off are paid for; a question that got so many is not asked again."""
Kind = Literal["cancelled", "overflow", "refused", "unavailable", "broken"]
MEMORY, SLOTS = Memory(), Slots()


def transports(endpoints: Mapping[str, Endpoint], environ: Mapping[str, str] | None = None
               ) -> Callable[[str], Transport]:
    """From an endpoint's name to its transport, as a desk wants it. ``environ`` is where keys are read, when asked."""
    def of(name: str) -> Transport:
        if name not in endpoints:
            known = ", ".join(endpoints) or "none"
            raise UsageError(f"There is no endpoint {name!r} in the server's settings (there are: {known}). Choose one "
                             "of them, or ask who runs the server to add it.", code="agent_unavailable")
        if endpoints[name].scripted:
            from harness.agents.llm.scripted.transport import ScriptedTransport

            return ScriptedTransport()
        return OpenAITransport(endpoints[name], environ)

    return of


class OpenAITransport:
    """Carries questions to one endpoint. Several threads may ask at a time."""

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str] | None = None, *, memory: Memory = MEMORY,
                 slots: Slots = SLOTS, patience: Callable[[float], Patience] = Patience) -> None:
        self.endpoint = endpoint
        self._environ = os.environ if environ is None else environ
        self._memory, self._slots, self._patience = memory, slots, patience

    def ask(self, question: Question, *, told: Callable[[Delta], None] = lambda delta: None,
            cancelled: Callable[[], bool] = lambda: False) -> Answer:
        """See ``ports.Transport``."""
        asking = _Asking(self, question, told, cancelled)
        try:
            outcome = asking.run()
        except Stopped:
            outcome = asking.error("cancelled", "The answer was stopped.")
        if isinstance(outcome, TransportError):
            raise outcome
        return outcome

    def key(self) -> str | None:
        """The key, read now; ``None`` for an endpoint without one.

        Raises:
            TransportError: the variable is empty or holds what cannot be a key.
        """
        name = self.endpoint.key_variable
        if name is None:
            return None
        key = self._environ.get(name, "").strip()
        if key and key.isascii() and key.isprintable() and " " not in key:
            return key
        why = "has characters that no key has" if key else "is not set"
        raise TransportError(f"The variable {name} with the key of the endpoint {self.endpoint.name!r} {why} in the "
                             "server's environment. Set it, restart the server and resume.", kind="refused")


def _said(fault: Fault) -> str:
    """What the endpoint said, to be followed by the rest of a sentence."""
    return fault.text.rstrip(". ")


class _Asking:
    """One question until it is answered or given up."""

    def __init__(self, transport: OpenAITransport, question: Question, told: Callable[[Delta], None],
                 cancelled: Callable[[], bool]) -> None:
        self.transport, self.question, self.told, self.cancelled = transport, question, told, cancelled
        self.endpoint, self.memory = transport.endpoint, transport._memory
        self.key = transport.key()
        self.secrets = (self.key,) if self.key else ()
        self.patience = transport._patience(self.endpoint.patience_s)
        self.refused = set(self.memory.refused(self.endpoint.url, question.model))
        self.retries, self.cuts = 0, 0
        self.lost = Usage()
        self.once: set[str] = set()
        self.found: set[str] = set()
        self.partial: Answer | None = None

    def run(self) -> Answer | TransportError:
        api, certain = self._api()
        while True:
            sending, pieces = form(api, self.question, self.refused | self.once)
            self.once = set()
            self.partial = None
            with self.transport._slots.place(self.endpoint.url, self.endpoint.parallel, self.cancelled):
                fault = self._once(sending, pieces)
            answer = self._answer(pieces)
            if fault is None and (certain or api == "chat" or pieces.gathered.anything):
                self._remember(api)
                return self._with_lost(answer)
            if fault is None:
                fault = Fault("none", "the Responses API gave an empty answer", no_api=True)
            if pieces.gathered.anything:
                self.partial = answer
                self._lose(answer)
            if fault.cure == "filtered":
                return self._with_lost(Answer(refusal=self._clean(fault.text), finish="content_filter",
                                              usage=self._estimated(Answer())))
            if fault.cure == "without" and fault.parameter not in self.refused:
                self._leave_out(api, fault)
                self.retries += 1
                continue
            if not certain and api == "responses" and self._other_api(fault):
                api = "chat"
                self.retries += 1
                continue
            error = self._give_up(fault)
            if error is not None:
                return error
            self.retries += 1

    def _api(self) -> tuple[Api, bool]:
        """The API to ask with and whether that is certain."""
        if self.endpoint.api != "auto":
            return self.endpoint.api, True
        known = self.memory.api(self.endpoint.url, self.question.model)
        return (known, True) if known else ("responses", False)

    def _other_api(self, fault: Fault) -> bool:
        """Whether a fault may come from an API that the endpoint does not have, or has half."""
        return fault.cure != "shorten" and (fault.no_api or fault.cure == "cut"
                                            or fault.status in (400, 415, 422, 500, 501))

    def _once(self, sending: Sending, pieces: Pieces) -> Fault | None:
        filters: dict[DeltaKind, PieceFilter] = {}

        def clean(delta: Delta) -> None:
            shown = filters.setdefault(delta.kind, PieceFilter(self.secrets)).feed(delta.text)
            if shown:
                self.told(Delta(delta.kind, shown))

        from harness.agents.llm.wire.line import Line  # loads an HTTP client: only when something is asked

        line = Line(self.endpoint, self.key, sending, pieces)
        try:
            fault = line.talk(clean, self.cancelled)
        except Stopped:
            self.partial = self._answer(pieces)
            raise
        for kind, held in filters.items():
            rest = held.rest()
            if rest:
                self.told(Delta(kind, rest))
        return fault

    def _leave_out(self, api: Api, fault: Fault) -> None:
        name = remembered_as(api, fault.parameter)
        self.refused.add(name)
        if fault.lasting:
            self.found.add(name)

    def _remember(self, api: Api) -> None:
        """Keep what was found out, now that it led to an answer: a part that was left out in vain is sent again."""
        for name in self.found:
            self.memory.refuse(self.endpoint.url, self.question.model, name)
        self.memory.answered(self.endpoint.url, self.question.model, api)

    def _give_up(self, fault: Fault) -> TransportError | None:
        """The error to end with, or ``None`` after a wait."""
        if fault.cure == "shorten":
            return self.error("overflow", f"{self._who()} finds the question too long for the model "
                                          f"{self.question.model!r}: {fault.text}")
        if fault.cure in ("none", "without"):
            return self.error("refused", f"{self._who()} refused the question: {_said(fault)}. Asking again will not "
                                         "help; mend the endpoint, its key or the model's name, then resume.")
        self.cuts += fault.cure == "cut"
        if fault.cure == "cut" and self.partial is None:
            # A server that fails once its stream is open can only hang up; asked for a whole answer it says why.
            self.once = {STREAM}
        wait = None if self.cuts >= MOST_CUTS else self.patience.wait_s(fault.after_s)
        if wait is not None:
            sleep(wait, self.cancelled)
            return None
        asked = f" and asks to wait {fault.after_s:,.0f} s" if fault.after_s and fault.after_s >= 1 else ""
        tries = f"{self.retries + 1} tries" if self.retries else "one try"
        return self.error("broken" if fault.cure == "cut" else "unavailable",
                          f"{self._who()} did not answer after {tries}: {_said(fault)}{asked}. Resume when it is back.")

    def _who(self) -> str:
        return f"The endpoint {self.endpoint.name!r}"

    def error(self, kind: Kind, text: str) -> TransportError:
        """The error of this question. Made outside every ``except``: it drags no other exception along."""
        partial = self.partial
        if partial is not None and self.lost.total:
            partial = replace(partial, usage=self.lost)
        return TransportError(self._clean(text), kind=kind, partial=partial, retries=self.retries)

    def _clean(self, text: str) -> str:
        return redacted(text, self.secrets)

    def _answer(self, pieces: Pieces) -> Answer:
        """What was gathered, without the key (an endpoint may say it back) and with its tokens counted."""
        answer = pieces.gathered.answer()
        calls = tuple(ToolCall(*(without(part, self.secrets) for part in (call.id, call.name, call.arguments)))
                      for call in answer.calls)
        answer = replace(answer, text=without(answer.text, self.secrets), calls=calls,
                         reasoning=without(answer.reasoning, self.secrets),
                         refusal=without(answer.refusal, self.secrets), model=without(answer.model, self.secrets),
                         finish=without(answer.finish, self.secrets),
                         dropped=answered_parameters(self.question, self.refused))
        usage = answer.usage
        # A count of nothing for something is none: a budget would never end.
        free = not usage.input or (not usage.output and pieces.gathered.anything)
        return replace(answer, usage=self._estimated(answer)) if free or usage.estimated else answer

    def _estimated(self, answer: Answer) -> Usage:
        return estimate(self.question.messages, self.question.tools, answer)

    def _lose(self, answer: Answer) -> None:
        """Count the tokens of an answer that broke off: they are paid for as well."""
        usage = answer.usage
        self.lost = Usage(self.lost.input + usage.input, self.lost.output + usage.output,
                          self.lost.cached + usage.cached, self.lost.reasoning + usage.reasoning, True)

    def _with_lost(self, answer: Answer) -> Answer:
        lost, usage = self.lost, answer.usage
        answer = replace(answer, retries=self.retries)
        if not lost.total:
            return answer
        return replace(answer, usage=Usage(usage.input + lost.input, usage.output + lost.output,
                                           usage.cached + lost.cached, usage.reasoning + lost.reasoning, True))
