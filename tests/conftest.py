"""What every test may need: databases whose own guards are lifted only while they are emptied; properties that are
never refuted by a busy machine."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings

# A limit on the time of one example says how busy the machine is. Loaded before any test module is imported.
settings.register_profile("unhurried", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


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
