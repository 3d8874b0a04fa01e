"""The playbook's one rule: of all strategies that apply, are allowed and were not tried, take the best predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from harness.agents.playbook.again import again_moves
from harness.agents.playbook.feasible import impossible
from harness.agents.playbook.move import Move
from harness.agents.protocol import AgentContext
from harness.domain.proposal import Candidate, Hypothesis, Proposal
from harness.domain.vocabulary import Backend, Tier
from harness.evaluation.source.normal_form import normal_digest

BOOKS: dict[tuple[str, Backend], str] = {
    ("rms_norm", Backend.NUMBA): "harness.agents.playbook.rms_norm_numba",
    ("softmax", Backend.NUMBA): "harness.agents.playbook.softmax_numba",
    ("decode_attention", Backend.NUMBA): "harness.agents.playbook.decode_attention_numba",
    ("rms_norm", Backend.TRITON): "harness.agents.playbook.rms_norm_triton",
    ("softmax", Backend.TRITON): "harness.agents.playbook.softmax_triton",
    ("decode_attention", Backend.TRITON): "harness.agents.playbook.decode_attention_triton",
    ("matmul_bias_gelu", Backend.NUMBA): "harness.agents.playbook.matmul_bias_gelu_numba",
    ("matmul_bias_gelu", Backend.TRITON): "harness.agents.playbook.matmul_bias_gelu_triton",
    ("add_rms_norm", Backend.NUMBA): "harness.agents.playbook.add_rms_norm_numba",
    ("layer_norm", Backend.NUMBA): "harness.agents.playbook.layer_norm_numba",
    ("add_rms_norm", Backend.TRITON): "harness.agents.playbook.add_rms_norm_triton",
    ("layer_norm", Backend.TRITON): "harness.agents.playbook.layer_norm_triton",
    ("swiglu", Backend.NUMBA): "harness.agents.playbook.swiglu_numba",
    ("rope", Backend.NUMBA): "harness.agents.playbook.rope_numba",
    ("swiglu", Backend.TRITON): "harness.agents.playbook.swiglu_triton",
    ("rope", Backend.TRITON): "harness.agents.playbook.rope_triton",
    ("cross_entropy", Backend.NUMBA): "harness.agents.playbook.cross_entropy_numba",
    ("topk", Backend.NUMBA): "harness.agents.playbook.topk_numba",
    ("cross_entropy", Backend.TRITON): "harness.agents.playbook.cross_entropy_triton",
    ("topk", Backend.TRITON): "harness.agents.playbook.topk_triton",
}
LEAST, MOST = 3, 5
TURNS_PER_STRATEGY = 2
"""A strategy gets a second turn when the incumbent has changed since its first."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A strategy that can be played now, with the kernel it makes."""

    move: Move
    hypothesis: Hypothesis
    source: str


class Playbook:
    """Scripted strategies; deterministic in the context."""

    label = "scripted, no LLM"

    def propose(self, context: AgentContext) -> Proposal:
        """Hypotheses and the best candidate in a diagnosis, one candidate otherwise, or giving up with the reason."""
        entries = context.log.query()
        ready = playable(context)
        if context.purpose == "diagnosis" and len(ready) < LEAST:
            return self._give_up(f"fewer than {LEAST} strategies for {context.spec.name} on {context.goal.backend} fit "
                                 f"the {context.grant} grant.", len(entries))
        if not ready:
            return self._give_up(f"every strategy within the {context.grant} grant was tried, is closed or does not "
                                 "apply to the incumbent.", len(entries))
        if context.purpose == "diagnosis":
            stated = tuple(item.hypothesis for item in diverse(ready))
            return self._candidate(context, ready[0], stated, len(entries))
        chosen = self._chosen(context, ready)
        known = {hypothesis.id for hypothesis in context.hypotheses}
        if context.purpose == "restructure":
            fresh = [item for item in ready if item.hypothesis.id not in known]
            if not fresh:
                return self._give_up("no strategy is left that was not stated before.", len(entries))
            chosen = fresh[0]
        new = () if chosen.hypothesis.id in known else (chosen.hypothesis,)
        return self._candidate(context, chosen, new, len(entries))

    def _chosen(self, context: AgentContext, ready: list[Ready]) -> Ready:
        """The first stated idea that can be played, unless an unstated one is predicted to give more. Where people
        changed the order, their order stands whatever the predictions say."""
        by_id = {item.hypothesis.id: item for item in ready}
        first = next((by_id[h.id] for h in context.open_hypotheses if h.id in by_id), ready[0])
        gains = [hypothesis.expected_gain for hypothesis in context.open_hypotheses]
        reordered = gains != sorted(gains, reverse=True)
        return first if reordered or first.move.expected_gain(context) >= ready[0].move.expected_gain(context) \
            else ready[0]

    def _candidate(self, context: AgentContext, item: Ready, stated: tuple[Hypothesis, ...], read: int) -> Proposal:
        summary = item.move.summary
        if context.feedback:
            last = context.feedback[-1]
            # A scripted agent cannot act on prose; it says so instead of pretending.
            summary += f" (reviewer {last.person or 'unnamed'} wrote: \"{last.text}\"; a script cannot read it)"
        candidate = Candidate(item.hypothesis.id, item.source, summary)
        return Proposal("candidate", True, stated, candidate, trace={"agent": self.label, "log_entries_read": read})

    def _give_up(self, reason: str, read: int) -> Proposal:
        return Proposal("give_up", True, reason=reason, trace={"agent": self.label, "log_entries_read": read})


def playable(context: AgentContext) -> list[Ready]:
    """All strategies that may be played now, best prediction first (ties keep the book's order)."""
    name = BOOKS.get((context.spec.name, context.goal.backend))
    if name is None:
        return []
    book: Callable[[AgentContext], list[Move]] = import_module(name).moves
    ready = []
    seen: set[str] = set()
    for move in [*book(context), *again_moves(context)]:
        item = _ready(context, move, seen)
        if item is not None:
            ready.append(item)
    return sorted(ready, key=lambda item: -item.hypothesis.expected_gain)


def diverse(ready: list[Ready]) -> list[Ready]:
    """The best strategy of each direction and function first: a board of five block sizes would tell nobody much."""
    leaders: dict[str, Ready] = {}
    for item in ready:
        leaders.setdefault(item.move.direction_key, item)
    first = list(leaders.values())
    rest = [item for item in ready if item not in first]
    chosen = (first[:MOST] + rest)[: max(LEAST, min(MOST, len(first)))]
    return [item for item in ready if item in chosen]


def _ready(context: AgentContext, move: Move, seen: set[str]) -> Ready | None:
    if move.tier > context.grant or move.tier is Tier.NONE or move.direction_key in context.closed_directions:
        return None
    hypothesis = _turn(context, move)
    if hypothesis is None or hypothesis.id in context.struck or move.key in context.struck:
        return None
    source = move.transform(context)
    if source is None or impossible(context, source):
        return None
    digest = normal_digest(source)
    if move.duplicate_of is None and (digest in context.tried or digest in seen):
        return None
    seen.add(digest)
    return Ready(move, hypothesis, source)


def _turn(context: AgentContext, move: Move) -> Hypothesis | None:
    """The strategy's hypothesis for its next turn, or ``None`` when its turns are over."""
    turns = [attempt for attempt in context.attempts if attempt.hypothesis.split("@")[0] == move.key]
    hypothesis = move.hypothesis(context)
    if not turns:
        return hypothesis
    last = turns[-1]
    undecided = last.verdict.passed and not last.verdict.faster  # what was refused once is refused again
    if len(turns) >= TURNS_PER_STRATEGY or context.incumbent_round <= last.round or not undecided:
        return None
    text = f"{hypothesis.text} It brought nothing in round {last.round}, on another incumbent."
    return Hypothesis(f"{move.key}@{context.incumbent_round}", hypothesis.direction, hypothesis.function, text,
                      hypothesis.evidence, round(hypothesis.expected_gain / 2, 3))
