"""What every test may need: databases whose own guards are lifted only while they are emptied."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import TransactionTestCase


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
