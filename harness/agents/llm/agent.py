"""The language model as an agent: asks for one or several candidates and puts them into one proposal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from harness.agents.errors import AgentCancelled, AgentError
from harness.agents.llm.conversation import Conversation
from harness.agents.llm.endpoints import ModelFacts
from harness.agents.llm.exchange import Exchange, paid_for
from harness.agents.llm.limits import Limits, Paid, within_budget
from harness.agents.llm.ports import Delta, Desk, Transport
from harness.agents.llm.prompt import TEMPLATE
from harness.agents.llm.replay import question_digest
from harness.agents.llm.samples import Keep, side_by_side
from harness.agents.llm.together import proposal_of
from harness.agents.llm.tools import Workbench
from harness.agents.protocol import AgentContext
from harness.domain.errors import UsageError
from harness.domain.proposal import Proposal
from harness.domain.turn import Turn


@dataclass(frozen=True, slots=True)
class Asking:
    """What all samples of one asking share."""

    context: AgentContext
    transport: Transport
    endpoint: str
    model: str
    facts: ModelFacts | None
    limits: Limits
    samples: int
    stored: tuple[Turn, ...]


class LanguageModel:
    """An agent behind an OpenAI-compatible endpoint. Keeps nothing between two askings but its desk: what it knows
    comes from the context and from the stored turns."""

    def __init__(self, desk: Desk, limits: Limits | None = None) -> None:
        """``limits`` bound one asking; the campaign's budget narrows them."""
        self._desk = desk
        self._limits = limits or Limits()
        self.label = "language model"

    def propose(self, context: AgentContext) -> Proposal:
        """Several turns with the model, to one proposal.

        Raises:
            AgentError: no proposal came; ``blame`` says whose fault that is.
            AgentCancelled: somebody stopped the answer.
            UsageError: the server has no such endpoint or model.
        """
        asking = self._asking(context)
        self.label = f"{asking.model} at {asking.endpoint}"
        attempt = self._attempt(asking)
        made: list[Conversation] = []
        jobs = [self._job(asking, attempt, sample, made) for sample in range(asking.samples)]
        futures = side_by_side(jobs, self._desk.turns.keep)
        paid = left_over(asking.stored, attempt)
        for conversation in made:
            paid.add(conversation.exchange.paid)
        made.sort(key=lambda conversation: conversation.sample)
        trace = {"agent": self.label, "endpoint": asking.endpoint, "model": asking.model, "template": TEMPLATE,
                 "attempt": attempt, "turns": paid.turns, "tokens": paid.tokens, "money": paid.money,
                 "currency": asking.facts.price.currency if asking.facts and asking.facts.price else "",
                 "samples": [{"sample": one.sample, "turns": one.exchange.paid.turns, "repairs": one.repairs}
                             for one in made]}
        proposals = _results(futures, paid)
        return proposal_of(context, proposals, trace)

    def _asking(self, context: AgentContext) -> Asking:
        choice = context.choice
        endpoint, model = choice.endpoint or "", choice.model or ""
        if not endpoint or not model:
            raise UsageError("The campaign's agent names no endpoint or no model. Choose both from the server's "
                             "settings.", code="agent_unavailable")
        # A diagnosis states one board of hypotheses, which several samples cannot share.
        samples = 1 if context.purpose == "diagnosis" else choice.best_of
        return Asking(context, self._desk.transport(endpoint), endpoint, model, self._desk.facts(endpoint, model),
                      within_budget(context, self._limits, samples), samples, self._desk.turns.stored(context.round))

    def _attempt(self, asking: Asking) -> int:
        """The stored attempt that began with this very question, else a new one. Any sample tells: a kill may come
        before the first one was written and after the others were paid for."""
        last = max((turn.attempt for turn in asking.stored), default=0)
        for sample in sorted({turn.sample for turn in asking.stored if turn.sample < asking.samples}):
            first = question_digest(self._conversation(asking, 0, sample, lambda turn: None).first_question())
            same = [turn.attempt for turn in asking.stored
                    if turn.sample == sample and turn.request_digest == first]
            if same:
                return same[-1]
        return max(asking.context.attempt, last + 1)

    def _job(self, asking: Asking, attempt: int, sample: int,
             made: list[Conversation]) -> Callable[[Keep], Proposal]:
        def job(keep: Keep) -> Proposal:
            conversation = self._conversation(asking, attempt, sample, keep)
            made.append(conversation)
            conversation.exchange.close_open()
            return conversation.run()

        return job

    def _conversation(self, asking: Asking, attempt: int, sample: int, keep: Keep) -> Conversation:
        kept = tuple(turn for turn in asking.stored if (turn.attempt, turn.sample) == (attempt, sample))
        desk = self._desk

        def told(delta: Delta) -> None:
            desk.told(replace(delta, sample=sample) if sample else delta)

        exchange = Exchange(asking.transport, asking.endpoint, asking.facts, asking.context.round, attempt, sample,
                            kept, keep, told, desk.cancelled)
        return Conversation(Workbench(asking.context), exchange, asking.limits, asking.model,
                            asking.context.choice.effort, sample, asking.samples)


def _results(futures: Sequence[Future[Proposal]], paid: Paid) -> list[Proposal]:
    """The proposals that came. Where none did, the gravest failure is raised, with what was paid."""
    proposals, failures = [], []
    for future in futures:
        error = future.exception()
        if error is None:
            proposals.append(future.result())
        elif isinstance(error, AgentError | AgentCancelled):
            failures.append(error)
        else:
            raise error
    if proposals:
        return proposals
    cancelled = next((error for error in failures if isinstance(error, AgentCancelled)), None)
    if cancelled is not None:
        raise cancelled
    errors = [error for error in failures if isinstance(error, AgentError)]
    provider = next((error for error in errors if error.blame == "provider"), None)
    if provider is not None:
        raise provider  # asked again after the pause: then what was paid is counted, once
    raise AgentError(errors[0].text, tokens=paid.tokens, money=paid.money, turns=paid.turns)


def left_over(stored: Sequence[Turn], attempt: int) -> Paid:
    """What the askings of this round just before cost that came to no end (stopped, endpoint down) and were begun anew
    with another question: nothing of it was counted then, and the next one that comes to an end counts it."""
    paid = Paid()
    for other in sorted({turn.attempt for turn in stored if turn.attempt < attempt}, reverse=True):
        turns = [turn for turn in stored if turn.attempt == other]
        last = {turn.sample: turn for turn in turns}
        if any(turn.status == "complete" or turn.blame == "model" for turn in last.values()):
            break
        for turn in turns:
            paid.add(paid_for(turn))
    return paid
