"""The engine's rules as a model is told them before the engine would bounce its answer (R7, R14, R16).

The engine decides and asks nobody; these questions are the same ones, put early, so that no bounce and no round is
spent on what is known beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.agents.protocol import AgentContext
from harness.domain.errors import SourceError
from harness.domain.proposal import Hypothesis
from harness.evaluation.source.structure import read_structure

LEAST, MOST = 3, 5


def list_problem(context: AgentContext, ideas: Sequence[Hypothesis]) -> str | None:
    """What is wrong with a list of new hypotheses as a whole."""
    ids = [idea.id for idea in ideas]
    if len(set(ids)) != len(ids):
        return "Two hypotheses share an id. Give each its own."
    known = {hypothesis.id for hypothesis in context.hypotheses}
    again = [name for name in ids if name in known]
    if again:
        return (f"{', '.join(again)} was stated earlier in this campaign and keeps its meaning. Name it in "
                "submit_candidate as it is, or give a new idea a new id.")
    if context.purpose == "diagnosis" and not LEAST <= len(ids) <= MOST:
        return f"The diagnosis needs {LEAST} to {MOST} hypotheses, not {len(ids)}."
    gains = [idea.expected_gain for idea in ideas]
    if gains != sorted(gains, reverse=True):
        return "The list is not ranked: put the largest expected_gain first."
    return None


def idea_problem(context: AgentContext, idea: Hypothesis) -> str | None:
    """Why this one idea may not be stated."""
    if idea.id in context.struck:
        return f"A person struck hypothesis {idea.id}. Propose another idea."
    forbidden = forbidden_problem(context, idea) or elsewhere_problem(context, idea)
    if forbidden is not None or context.retry_available:
        return forbidden  # a closed direction is left open for the campaign's one retry
    return closed_problem(context, idea)


def forbidden_problem(context: AgentContext, idea: Hypothesis) -> str | None:
    """Whether a person forbade the idea's direction."""
    for key in (key_of(idea), str(idea.direction)):
        if key in context.forbidden:
            return f"{context.forbidden[key] or 'A person'} forbade direction {key}. Switch to another one."
    return None


def elsewhere_problem(context: AgentContext, idea: Hypothesis) -> str | None:
    """R16: whether a closed or forbidden direction is led on under the name of a function that the incumbent does not
    have. Such a name has no record of its own, and a new one for every try would keep any direction open."""
    same = [key for key in (*context.closed_directions, *context.forbidden)
            if key.partition(":")[0] == str(idea.direction)]
    if not same or key_of(idea) in same:
        return None
    names = functions_of(context)
    if idea.function in names:
        return None
    return (f"The incumbent has no function '{idea.function}', and {', '.join(same)} is closed or forbidden: another "
            f"name opens nothing. Name the function that the idea touches ({', '.join(names)}), or switch to another "
            "direction.")


def functions_of(context: AgentContext) -> tuple[str, ...]:
    """The functions of the incumbent that an idea may touch, kernels first."""
    try:
        found = read_structure(context.incumbent.source, context.goal.backend)
    except SourceError:  # a baseline of one's own need not parse here to be measured
        return ()
    return (*found.kernels, *found.hosts)


def closed_problem(context: AgentContext, idea: Hypothesis) -> str | None:
    """Whether the idea's direction is closed, and whether the one retry would open it."""
    rounds = context.closed_directions.get(key_of(idea))
    if rounds is None:
        return None
    where = f"Direction {key_of(idea)} is closed after rounds {', '.join(map(str, rounds))}."
    if context.retry_available:
        return (f"{where} Switch to another direction, or use the campaign's one retry: retry_of is one of these "
                "rounds and essential_difference says what is different now.")
    return f"{where} The campaign's one retry was used. Switch to another direction."


def key_of(idea: Hypothesis) -> str:
    """The direction of an idea: what it is about, and the kernel function it touches."""
    return f"{idea.direction}:{idea.function}"
