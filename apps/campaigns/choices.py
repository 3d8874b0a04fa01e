"""Closed lists and machines of campaigns, rounds, jobs and spot checks (CONTRACTS section 4)."""

from __future__ import annotations

from django.db import models

from apps.core.transitions import Machine


class CampaignState(models.TextChoices):
    """States of a campaign."""

    DRAFT = "draft", "draft"
    RUNNING = "running", "running"
    PAUSED = "paused", "paused"
    PLATEAU = "plateau", "waits for a person"
    FINISHED = "finished", "finished"
    STOPPED = "stopped", "stopped"
    FAILED = "failed", "failed"


CAMPAIGN_MACHINE = Machine("campaign", {
    CampaignState.DRAFT: frozenset({CampaignState.RUNNING}),
    CampaignState.RUNNING: frozenset(
        {CampaignState.PAUSED, CampaignState.PLATEAU, CampaignState.STOPPED, CampaignState.FAILED}
    ),
    CampaignState.PAUSED: frozenset({CampaignState.RUNNING, CampaignState.STOPPED, CampaignState.FAILED}),
    CampaignState.PLATEAU: frozenset(
        {CampaignState.RUNNING, CampaignState.FINISHED, CampaignState.STOPPED, CampaignState.FAILED}
    ),
    CampaignState.FINISHED: frozenset(),
    CampaignState.STOPPED: frozenset(),
    CampaignState.FAILED: frozenset(),
})
CAMPAIGN_ACTIVE = (CampaignState.RUNNING, CampaignState.PAUSED, CampaignState.PLATEAU)
CAMPAIGN_ENDED = (CampaignState.FINISHED, CampaignState.STOPPED, CampaignState.FAILED)


class PlateauChoice(models.TextChoices):
    """What a person may choose on a plateau (R22)."""

    FINISH = "finish", "finish"
    RESTRUCTURE = "restructure", "restructure within the grant"
    RAISE_GRANT = "raise_grant", "raise the grant"
    RAISE_BUDGET = "raise_budget", "raise the budget"


BUDGET_LIMITS = ("rounds", "evaluations", "seconds", "tokens", "money", "turns")
"""What a person may raise."""


class RoundState(models.TextChoices):
    """States of a round."""

    THINKING = "thinking", "thinking"
    EVALUATING = "evaluating", "evaluating"
    CONCLUDED = "concluded", "concluded"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


ROUND_MACHINE = Machine("round", {
    RoundState.THINKING: frozenset(
        {RoundState.EVALUATING, RoundState.CONCLUDED, RoundState.FAILED, RoundState.CANCELLED}
    ),
    RoundState.EVALUATING: frozenset(
        {RoundState.THINKING, RoundState.CONCLUDED, RoundState.FAILED, RoundState.CANCELLED}
    ),
    RoundState.CONCLUDED: frozenset(),
    RoundState.FAILED: frozenset(),
    RoundState.CANCELLED: frozenset(),
})
ROUND_ACTIVE = (RoundState.THINKING, RoundState.EVALUATING)


class HypothesisState(models.TextChoices):
    """What became of an idea."""

    OPEN = "open", "untried"
    STRUCK = "struck", "struck by a person"
    TRIED = "tried", "tried"


class JobState(models.TextChoices):
    """States of a job. ``failed`` is an expected end of the domain, ``errored`` a fault of the machinery."""

    QUEUED = "queued", "queued"
    LEASED = "leased", "leased"
    SUCCEEDED = "succeeded", "succeeded"
    FAILED = "failed", "failed"
    ERRORED = "errored", "errored"
    CANCELLED = "cancelled", "cancelled"


JOB_MACHINE = Machine("job", {
    JobState.QUEUED: frozenset({JobState.LEASED, JobState.CANCELLED}),
    JobState.LEASED: frozenset(
        {JobState.QUEUED, JobState.SUCCEEDED, JobState.FAILED, JobState.ERRORED, JobState.CANCELLED}
    ),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.ERRORED: frozenset(),
    JobState.CANCELLED: frozenset(),
})
JOB_OPEN = (JobState.QUEUED, JobState.LEASED)
JOB_ATTEMPTS = 3


class JobPurpose(models.TextChoices):
    """Why a kernel is evaluated, as in the request document."""

    ROUND = "round", "round"
    PROBE = "probe", "probe"
    PROMOTION = "promotion", "promotion"
    SELFTEST = "selftest", "self-test"
    CANARY = "canary", "canary"


PRIORITIES = {
    JobPurpose.PROMOTION: 40,
    JobPurpose.PROBE: 30,
    JobPurpose.ROUND: 20,
    JobPurpose.CANARY: 10,
    JobPurpose.SELFTEST: 5,
}


class TurnState(models.TextChoices):
    """What became of a turn of a language model."""

    OPEN = "open", "under way"
    COMPLETE = "complete", "complete"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


class SteerKind(models.TextChoices):
    """How a person steers a language model in the middle of a campaign."""

    HINT = "hint", "give a hint"
    FORBID = "forbid", "forbid a direction"
    ALLOW = "allow", "allow a direction again"
    RESTRUCTURE = "restructure", "ask for a restructuring"
    MODEL = "model", "change the model"


STARTING = ("start", "API token", "outside agent")
"""Sources of influence that make a person a starter of the campaign, beside who created it."""


class SelfTestState(models.TextChoices):
    """Result of one pass over the corpus of cheats and honest kernels."""

    PASSED = "passed", "passed"
    FAILED = "failed", "failed"
