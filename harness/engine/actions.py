"""What a campaign needs done next. The runner does it and reports a result; the engine never acts itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from harness.domain.request import Opponent, SourceRef
from harness.domain.vocabulary import Tier

AskPurpose = Literal["diagnosis", "candidate", "restructure"]


class PlateauCause(StrEnum):
    """Why a campaign stands on a plateau (R15)."""

    NO_GAIN = "no_gain"
    ROOF = "roof"
    BUDGET = "budget"
    GAVE_UP = "gave_up"


class PlateauChoice(StrEnum):
    """What a person may choose on a plateau (R22). ``FINISH`` is the default."""

    FINISH = "finish"
    RESTRUCTURE = "restructure"
    RAISE_GRANT = "raise_grant"
    RAISE_BUDGET = "raise_budget"


@dataclass(frozen=True, slots=True)
class EvaluateBaseline:
    """Round 0: measure the baseline against nothing. Answer with ``BaselineMeasured`` or ``InfrastructureFault(0)``."""

    kernel: SourceRef


@dataclass(frozen=True, slots=True)
class AskAgent:
    """Ask for a proposal. ``bounced`` holds the sentences that refused earlier proposals of the same round.

    Answer with ``results.proposed(...)`` or ``AgentFailed``. ``diagnosis`` wants three to five hypotheses (a candidate
    may come along), ``restructure`` new hypotheses on algorithm or layout, ``candidate`` a kernel.
    """

    round: int
    purpose: AskPurpose
    bounced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TakeQueued:
    """Begin round ``round`` with the next alternative of an earlier asking; nobody is asked. Answer with
    ``QueueTaken``."""

    round: int


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Evaluate the round's candidate. Answer with ``Evaluated`` or ``InfrastructureFault``.

    ``grant`` bounds the step tier, ``attempt`` counts from 1 and grows after infrastructure faults.
    """

    round: int
    candidate: SourceRef
    against: tuple[Opponent, ...]
    grant: Tier
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class AskSpotCheck:
    """Ask a reviewer to look at the incumbent after this round (R17); the campaign goes on.
    Answer with ``SpotCheckAsked``."""

    round: int


@dataclass(frozen=True, slots=True)
class OpenReview:
    """Open a review request for the incumbent. Answer with ``ReviewOpened``."""

    round: int
    kernel: SourceRef


@dataclass(frozen=True, slots=True)
class ProposePlateau:
    """Tell people that the campaign stands still and offer ``options``. Answer with ``PlateauReached(cause)``."""

    cause: PlateauCause
    text: str
    options: tuple[PlateauChoice, ...]
    default: PlateauChoice = PlateauChoice.FINISH


@dataclass(frozen=True, slots=True)
class WaitForPerson:
    """Nothing to do until a person acts (``PlateauChosen``, ``Resumed``, ``Stopped``); holds no worker and no device.

    ``code`` is ``plateau`` or the pause's code.
    """

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The campaign is over in good order (finished or stopped by a person)."""

    text: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The campaign cannot go on; ``text`` says why and what to do."""

    text: str


Action = (
    EvaluateBaseline | AskAgent | TakeQueued | Evaluate | AskSpotCheck | OpenReview | ProposePlateau | WaitForPerson
    | Finish | Fail
)
