"""A team beside the imported results, and one report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gate"))

from gate_world import World, make_world
from report_world import as_file, report

from apps.imports.models import ImportedReport
from apps.imports.services import report_import


@pytest.fixture
def world(db: None) -> World:
    """A team with a running campaign of its own."""
    return make_world()


@pytest.fixture
def document() -> dict[str, Any]:
    """A report on two operators, consistent."""
    return report("rms_norm", "softmax")


@pytest.fixture
def imported(world: World, document: dict[str, Any]) -> ImportedReport:
    """The report, imported by the command's door."""
    row, new = report_import(data=as_file(document), file="report.json", by=None)
    assert new
    return row


@pytest.fixture
def sign_in() -> Callable[..., Client]:
    """A client of a person."""

    def client_of(person: object) -> Client:
        client = Client()
        if person is not None:
            client.force_login(person)
        return client

    return client_of
