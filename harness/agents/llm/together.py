"""Samples of one asking as one proposal: equal kernels count once, what was tried counts not at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from harness.agents.protocol import AgentContext
from harness.domain.errors import SourceError
from harness.domain.proposal import Candidate, Hypothesis, Proposal
from harness.evaluation.source.normal_form import normal_digest

MOST_STATED = 8
"""New hypotheses of one proposal at most."""


def proposal_of(context: AgentContext, samples: Sequence[Proposal], trace: dict[str, Any]) -> Proposal:
    """The first candidate with the others as alternatives, in the samples' order; giving up where all did."""
    candidates = [one for one in samples if one.candidate is not None]
    if not candidates:
        return replace(samples[0], trace=trace)
    ideas: dict[str, Hypothesis] = {hypothesis.id: hypothesis for hypothesis in context.hypotheses}
    stated: list[Hypothesis] = []
    kept: dict[str, Candidate] = {}
    for number, one in enumerate(candidates):
        names = _named_apart(one, number, ideas, stated)
        made = _candidate(one)
        candidate = replace(made, hypothesis=names.get(made.hypothesis, made.hypothesis))
        digest = _digest(candidate.source)
        if digest not in context.tried:
            kept.setdefault(digest, candidate)
    first, *others = list(kept.values()) or [_candidate(candidates[0])]
    dropped = len(candidates) - len(kept)
    return Proposal("candidate", True, _most(stated, {one.hypothesis for one in (first, *others)}), first,
                    trace={**trace, "equal_samples": dropped}, alternatives=tuple(others))


def _candidate(one: Proposal) -> Candidate:
    assert one.candidate is not None
    return one.candidate


def _most(stated: Sequence[Hypothesis], used: Collection[str]) -> tuple[Hypothesis, ...]:
    """As many ideas as a proposal may state, those that a candidate implements first; the order stays."""
    ranked = sorted(stated, key=lambda hypothesis: hypothesis.id not in used)[:MOST_STATED]
    return tuple(hypothesis for hypothesis in stated if hypothesis in ranked)


def _named_apart(one: Proposal, number: int, ideas: dict[str, Hypothesis],
                 stated: list[Hypothesis]) -> dict[str, str]:
    """Samples choose their ids without knowing of each other: a later idea under a taken id gets a name of its own."""
    names = {}
    for hypothesis in one.hypotheses:
        name = hypothesis.id
        while name in ideas and ideas[name] != replace(hypothesis, id=name):
            name = f"{hypothesis.id}.{number + 1}" if name == hypothesis.id else f"{name}x"
        names[hypothesis.id] = name
        if name not in ideas:
            ideas[name] = replace(hypothesis, id=name)
            stated.append(ideas[name])
    return names


def _digest(source: str) -> str:
    try:
        return normal_digest(source)
    except SourceError:
        return source
