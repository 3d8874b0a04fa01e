"""What an entry is about, in the words that pages use: C-6, R-2, reviewer for rosa in Inference Core."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.urls import reverse

from apps.audit.models import AuditEntry

NEEDS = {
    "teams.rolegrant": ("membership__user", "membership__team"), "reviews.thread": ("request",),
    "reviews.spotcheck": ("round__campaign",), "reviews.veto": ("by",), "kernels.slot": ("operator", "hardware"),
    "kernels.promotion": ("slot__operator", "slot__hardware"), "campaigns.selftestorder": ("by",),
}
"""Relations that the words of a model read, so that a page of entries needs one query a model."""
PAGES = {"campaigns.campaign": "campaign", "reviews.reviewrequest": "review", "kernels.verdict": "verdict",
         "imports.importedreport": "imported-report"}
DIGEST = re.compile(r"sha256:([0-9a-f]{8})[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Subject:
    """The words, and the page where there is one."""

    text: str
    url: str = ""


def subjects(entries: Iterable[AuditEntry]) -> list[tuple[AuditEntry, Subject | None]]:
    """Each entry with its subject; ``None`` where the object is no longer there: its type and number remain."""
    listed = list(entries)
    keys = defaultdict(set)
    for entry in listed:
        keys[entry.object_type].add(entry.object_id)
    found = {label: rows_of(label, wanted) for label, wanted in keys.items()}
    return [(entry, found[entry.object_type].get(entry.object_id)) for entry in listed]


def rows_of(label: str, keys: set[str]) -> dict[str, Subject]:
    """Subjects of one model by their key as text."""
    try:
        rows = apps.get_model(label)._default_manager.filter(pk__in=keys)
        if label in NEEDS:
            rows = rows.select_related(*NEEDS[label])
        return {str(row.pk): subject_of(label, row) for row in rows}
    except (LookupError, ValueError, ValidationError):  # a model or a key of an earlier version
        return {}


def subject_of(label: str, row: Model) -> Subject:
    """The words of one object, digests shortened."""
    url = reverse(PAGES[label], args=[row.pk]) if label in PAGES else ""
    if label == "teams.team":
        url = reverse("team", args=[getattr(row, "slug", "")])
    return Subject(DIGEST.sub(r"\1", str(row)), url)
