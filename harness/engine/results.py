"""What happened: the only things that move a campaign. Each has a JSON form, so that a campaign can be replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from harness.domain.codec import from_document, to_document
from harness.domain.errors import DocumentError, SourceError
from harness.domain.goal import Budget
from harness.domain.proposal import Candidate, Hypothesis, Proposal
from harness.domain.steering import SteerKind
from harness.domain.summary import VerdictSummary, summary_of
from harness.domain.vocabulary import Tier
from harness.engine.actions import AskPurpose, PlateauCause, PlateauChoice


@dataclass(frozen=True, slots=True)
class BaselineMeasured:
    """The verdict on round 0."""

    verdict: VerdictSummary


@dataclass(frozen=True, slots=True)
class Proposed:
    """An agent answered. ``queried_log`` is the runner's own evidence that the log was read in this turn;
    ``normal_digest`` addresses the candidate's normalised tree (``None``: no candidate, or it does not parse),
    ``alternative_digests`` those of the alternatives. ``purpose`` is what was asked for: a person may have steered the
    campaign while the agent thought. ``tokens``, ``money`` and ``turns`` are what the answer cost."""

    round: int
    proposal: Proposal
    queried_log: bool
    normal_digest: str | None = None
    tokens: int = 0
    money: float = 0.0
    turns: int = 0
    purpose: AskPurpose | None = None
    alternative_digests: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentFailed:
    """An agent gave no proposal. ``blame`` ``model``: its own fault, counts as a bounce; ``provider``: the endpoint or
    the host failed, the campaign pauses and nothing is counted."""

    round: int
    reason: str
    blame: Literal["model", "provider"]
    tokens: int = 0
    money: float = 0.0
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The evaluator's verdict on the round's candidate."""

    round: int
    verdict: VerdictSummary


@dataclass(frozen=True, slots=True)
class InfrastructureFault:
    """The evaluator or its host failed in this round (0 is the baseline); counts against nothing."""

    round: int
    reason: str


@dataclass(frozen=True, slots=True)
class HypothesesEdited:
    """A person struck, edited or reordered the hypotheses; the list replaces the old one."""

    person: str
    hypotheses: tuple[Hypothesis, ...]


@dataclass(frozen=True, slots=True)
class PlateauReached:
    """People were told about the plateau."""

    cause: PlateauCause


@dataclass(frozen=True, slots=True)
class PlateauChosen:
    """A person (or the default, where nobody attends) chose; ``grant`` goes with ``RAISE_GRANT``, ``budget`` (the
    whole of what may be spent from now on) with ``RAISE_BUDGET``."""

    choice: PlateauChoice
    grant: Tier | None = None
    person: str | None = None
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class SpotCheckAsked:
    """Reviewers were asked to look after this round."""

    round: int


@dataclass(frozen=True, slots=True)
class SpotCheckAnswered:
    """A reviewer answered the spot check of this round; ``feedback`` is quoted to the agent."""

    round: int
    person: str
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class SpotCheckLapsed:
    """Nobody answered the spot check of this round in time."""

    round: int


@dataclass(frozen=True, slots=True)
class ReviewOpened:
    """A review request exists for this kernel (opened by the engine or by a person)."""

    round: int
    kernel: str
    person: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewDecided:
    """A review ended. ``feedback`` (with its author's name) is quoted in the next proposal's context;
    ``changes_requested`` sends a campaign on a plateau back to the agent."""

    kernel: str
    decision: Literal["approved", "changes_requested", "rejected", "vetoed"]
    feedback: str = ""
    person: str = ""


@dataclass(frozen=True, slots=True)
class Paused:
    """The campaign waits; ``code`` is machine-readable, ``reason`` a sentence."""

    reason: str
    code: str = "person"
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """A person lets a paused campaign go on."""

    person: str | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """A person ended the campaign; the active round is cancelled."""

    reason: str = ""
    person: str | None = None


@dataclass(frozen=True, slots=True)
class Steered:
    """A person steers the agent: gives a hint, forbids a direction or allows it again, asks for a restructuring, or
    changes endpoint, model or effort. Empty fields keep what was."""

    person: str
    kind: SteerKind
    text: str = ""
    direction: str = ""
    endpoint: str = ""
    model: str = ""
    effort: str = ""


@dataclass(frozen=True, slots=True)
class QueueTaken:
    """The next alternative of an earlier asking became round ``round``, or was left out because it is none any more."""

    round: int


@dataclass(frozen=True, slots=True)
class BudgetClock:
    """Seconds spent so far in total (pauses not counted)."""

    seconds: float


Result = (
    BaselineMeasured | Proposed | AgentFailed | Evaluated | InfrastructureFault | HypothesesEdited | PlateauReached
    | PlateauChosen | SpotCheckAsked | SpotCheckAnswered | SpotCheckLapsed | ReviewOpened | ReviewDecided | Paused
    | Resumed | Stopped | BudgetClock | Steered | QueueTaken
)
RESULT_KINDS: dict[str, type] = {kind.__name__: kind for kind in Result.__args__}  # type: ignore[attr-defined]


def proposed(round_number: int, proposal: Proposal, *, queried_log: bool, tokens: int = 0, money: float = 0.0,
             turns: int = 0, purpose: AskPurpose | None = None) -> Proposed:
    """Record an agent's answer together with the addresses of its candidates' normal forms."""
    mine = None if proposal.candidate is None else _normal(proposal.candidate)
    others = tuple(_normal(candidate) for candidate in proposal.alternatives)
    return Proposed(round_number, proposal, queried_log, mine, tokens, money, turns, purpose, others)


def _normal(candidate: Candidate) -> str | None:
    from harness.evaluation.source.normal_form import normal_digest

    try:
        return normal_digest(candidate.source)
    except SourceError:
        return None  # the static stage will say what is wrong with it, line and all


def result_to_document(result: Result) -> dict[str, Any]:
    """``{"kind": "Evaluated", "data": {...}}``, plain JSON."""
    return {"kind": type(result).__name__, "data": to_document(result)}


def result_from_document(document: Any) -> Result:
    """The inverse of ``result_to_document``.

    Raises:
        DocumentError: no object, an unknown kind or wrong data.
    """
    if not isinstance(document, dict):
        raise DocumentError("A result is an object with 'kind' and 'data'.", key="kind")
    kind = RESULT_KINDS.get(str(document.get("kind")))
    if kind is None:
        raise DocumentError(f"'{document.get('kind')}' is not a kind of result. Known: {', '.join(RESULT_KINDS)}.",
                            key="kind")
    return from_document(document.get("data"), kind)


__all__ = [*RESULT_KINDS, "RESULT_KINDS", "Result", "proposed", "result_from_document", "result_to_document",
           "summary_of"]
