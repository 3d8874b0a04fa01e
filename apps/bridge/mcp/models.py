"""What an outside agent did before it answered: the site's own record, whatever the agent says of itself."""

from __future__ import annotations

from django.db import models


class Asking(models.Model):
    """One asking of an outside agent, named by how many answers the campaign had got before it: whatever is answered,
    the next asking begins with nothing read and nothing stated. ``round`` and ``attempt`` (from 1) are those asked for.

    ``log_queries`` is the evidence for rule R7. ``stated`` holds the hypotheses that were stated in this asking and
    wait for a candidate; ``journal`` the calls in order, shown and never interpreted.
    """

    campaign = models.ForeignKey("campaigns.Campaign", on_delete=models.PROTECT, related_name="outside_askings")
    answers_before = models.PositiveIntegerField()
    round = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    log_queries = models.PositiveIntegerField(default=0)
    log_queried_at = models.DateTimeField(null=True)
    stated = models.JSONField(default=list)
    journal = models.JSONField(default=list)
    began_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["campaign_id", "answers_before"]
        constraints = [models.UniqueConstraint(fields=["campaign", "answers_before"], name="asking_once")]

    def __str__(self) -> str:
        return f"{self.campaign} round {self.round}, answer {self.attempt}"
