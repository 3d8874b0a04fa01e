"""The personas without a server: for trials and for machines that have neither a network nor an HTTP client."""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.llm.ports import Delta, DeltaKind, Question, TransportError
from harness.agents.llm.scripted.conversation import Said, conversation_of
from harness.agents.llm.scripted.personas import PERSONAS
from harness.agents.llm.scripted.wire import counted, pieces
from harness.agents.llm.wire.retry import Stopped, sleep
from harness.domain.turn import Answer, ToolCall, Usage


class ScriptedTransport:
    """Answers as the persona that a question's model names."""

    def ask(self, question: Question, *, told: Callable[[Delta], None] = lambda delta: None,
            cancelled: Callable[[], bool] = lambda: False) -> Answer:
        """See ``ports.Transport``."""
        persona = PERSONAS.get(question.model)
        if persona is None:
            raise TransportError(f"There is no scripted model {question.model!r}. Choose one of {', '.join(PERSONAS)}.",
                                 kind="refused")
        said = persona.answer(conversation_of(question.messages))
        try:
            sleep(persona.first_s, cancelled)
            for kind, text in _told(said):
                told(Delta(kind, text))
                sleep(persona.gap_s, cancelled)
        except Stopped:
            stopped = True
        else:
            stopped = False
        if stopped:
            raise TransportError("The answer was stopped.", kind="cancelled")
        sent, answered, thought = counted({"messages": [dict(item) for item in question.messages]}, said)
        turn = len(question.messages)
        calls = tuple(ToolCall(f"call_{turn}_{number}", name, text) for number, (name, text) in enumerate(said.calls))
        return Answer(said.text, said.reasoning, "", calls, said.reason, Usage(sent, answered, reasoning=thought),
                      persona.name)


def _told(said: Said) -> list[tuple[DeltaKind, str]]:
    parts: list[tuple[DeltaKind, str]] = [("reasoning", text) for text in pieces(said.reasoning)]
    parts += [("text", text) for text in pieces(said.text)]
    for name, arguments in said.calls:
        parts += [("call", name), *(("call", text) for text in pieces(arguments))]  # type: ignore[misc]
    return parts
