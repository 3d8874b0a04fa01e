"""The audit trail says what it is about in the words of the pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone
from gate_world import World

from apps.audit.models import AuditEntry
from apps.audit.subjects import NEEDS, rows_of, subjects
from apps.reviews.models import ReviewRequest


def entry(label: str, key: str) -> AuditEntry:
    """An entry about an object, not saved."""
    return AuditEntry(at=timezone.now(), actor_name="system", verb="test.entry", object_type=label, object_id=key)


def test_entries_name_people_campaigns_and_requests(world: World, sign_in: Callable[..., Client]) -> None:
    page = sign_in(world.maintainer).get("/audit/").content.decode()
    request = ReviewRequest.objects.get()
    assert f'<a href="/reviews/{request.pk}/">R-{request.pk}</a>' in page
    assert f'<a href="/campaigns/{world.campaign.pk}/">C-{world.campaign.pk}</a>' in page
    assert f"reviewer for {world.ben.username} in {world.team.name}" in page


@pytest.mark.parametrize(("label", "key"), [
    ("teams.team", "999999"), ("gone.model", "1"), ("campaigns.campaign", "no number"), ("campaigns.job", "no uuid"),
])
def test_an_object_that_is_gone_leaves_its_type_and_number(world: World, label: str, key: str) -> None:
    (_, subject), = subjects([entry(label, key)])
    assert subject is None


@pytest.mark.parametrize("label", NEEDS)
def test_related_words_can_be_read(label: str, world: World) -> None:
    assert isinstance(rows_of(label, {"1"}), dict)


def test_a_page_of_entries_takes_one_query_a_model(
    world: World, django_assert_max_num_queries: Callable[..., object]
) -> None:
    listed = list(AuditEntry.objects.all())
    models = {one.object_type for one in listed}
    with django_assert_max_num_queries(len(models)):  # type: ignore[attr-defined]
        found = subjects(listed)
    assert len(found) == len(listed) > len(models) and all(subject is not None for _, subject in found)
