"""Writes of the campaigns app by name; see the modules for what each raises."""

from apps.campaigns.services.acting import influence_add
from apps.campaigns.services.engine import (
    campaigns_to_run,
    engine_lease,
    engine_release,
    engine_renew,
    engine_state,
    engine_tell,
    engine_tell_verdict,
    results_of,
    start_document,
    tell,
)
from apps.campaigns.services.lifecycle import (
    campaign_create,
    campaign_fork,
    campaign_pause,
    campaign_resume,
    campaign_start,
    campaign_stop,
    hypotheses_edit,
    plateau_choose,
)
from apps.campaigns.services.outside import proposal_from_outside
from apps.campaigns.services.rounds import round_start, round_trace_set
from apps.campaigns.services.steering import answer_stop, campaign_steer
from apps.campaigns.turns.services import turn_keep

__all__ = [
    "answer_stop", "campaign_create", "campaign_fork", "campaign_pause", "campaign_resume", "campaign_start",
    "campaign_steer", "campaign_stop", "campaigns_to_run", "engine_lease", "engine_release", "engine_renew",
    "engine_state", "engine_tell", "engine_tell_verdict", "hypotheses_edit", "influence_add", "plateau_choose",
    "proposal_from_outside", "results_of", "round_start", "round_trace_set", "start_document", "tell", "turn_keep",
]
