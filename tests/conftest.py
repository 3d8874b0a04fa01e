"""What every test may need: databases that begin with their tables, and whose own guards are lifted only while they are
emptied; properties that are never refuted by a busy machine; an order in which several processes end together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings

from tests.tables import begin_with_tables

# A limit on the time of one example says how busy the machine is. Loaded before any test module is imported.
settings.register_profile("unhurried", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where modules are handed out to several processes, those with slow tests go first and short ones last: no process
    begins a long one when the others have nothing left to do."""
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        sizes = Counter(item.path for item in items)
        items.sort(key=lambda item: (item.path not in slow, -sizes[item.path]))


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool, django_db_modify_db_settings: None) -> bool:
    """Whether Django finds a database there; its migrations then have nothing left to do."""
    database = site.DATABASES["default"]
    here = database["ENGINE"].endswith("sqlite3") and begin_with_tables(Path(database["TEST"]["NAME"]))
    return here or django_db_keepdb


@pytest.fixture(autouse=True, scope="session")
def _guards_lifted_for_flushes() -> Any:
    """The gate's triggers refuse deletes, and so the flush after a transactional test: lift them there and only
    there. The flush itself puts them back (``post_migrate``)."""
    original = TransactionTestCase._fixture_teardown

    def teardown(self: TransactionTestCase) -> None:
        from apps.reviews import triggers

        if triggers.tables_exist():
            triggers.lift()
        original(self)

    TransactionTestCase._fixture_teardown = teardown  # type: ignore[method-assign]
    yield
    TransactionTestCase._fixture_teardown = original  # type: ignore[method-assign]
