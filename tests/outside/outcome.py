"""What a site's rows say in the end, as JSON. Run with that site's environment."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import django


def outcome() -> dict[str, Any]:
    """Requests, everything that was decided or promoted, what the robot did, and the record of its askings."""
    from apps.audit.models import AuditEntry
    from apps.bridge.mcp.models import Asking
    from apps.campaigns.models import Campaign
    from apps.kernels.models import Champion, Promotion
    from apps.reviews.models import Decision, ReviewRequest

    return {
        "requests": list(ReviewRequest.objects.order_by("pk").values("state", "gate_tier", "campaign_id")),
        "decided": Decision.objects.count() + Promotion.objects.count() + Champion.objects.count(),
        "grants": list(Campaign.objects.order_by("pk").values_list("grant", flat=True)),
        "deeds": sorted(set(AuditEntry.objects.filter(actor__username="robot").values_list("verb", flat=True))),
        "askings": list(Asking.objects.order_by("round", "attempt").values_list("round", "attempt", "log_queries")),
        "contributors": sorted(set(ReviewRequest.objects.values_list("kernel__contributions__user__username",
                                                                     flat=True))),
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelopt_site.settings.base")
    sys.path.insert(0, str(Path.cwd()))
    django.setup()
    sys.stdout.write(json.dumps(outcome()))
