"""The system page: may promotions happen, what is proved, what the canary says, and what a maintainer may order."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from gate_world import ENVIRONMENT, HARDWARE, World

from apps.bridge import api
from apps.campaigns.canary.models import CanaryBase, CanaryDrift, CanaryReading
from apps.campaigns.canary.plot import Point, canary_plot
from apps.campaigns.canary.selectors import Window
from apps.campaigns.jobs.workers import selftest_record, worker_beat
from apps.campaigns.models import SelfTestOrder, Worker
from apps.core.screens.doctor import doctor_rows
from apps.core.screens.isolation import Missing, mode_rows
from apps.kernels.services import baseline_kernel

SignIn = Callable[..., Client]


@pytest.fixture
def worker(world: World) -> Worker:
    """The device's worker, up."""
    return worker_beat(name=f"evalworker:{HARDWARE}", kind="evalworker", hardware=HARDWARE, backends=["numba"],
                       isolation=3, proved=["netns"], environment={"class": ENVIRONMENT, "clocks": {"speed": 0.7}})


@pytest.fixture
def base(world: World) -> CanaryBase:
    """A base with a reference and two readings beyond it."""
    operator = world.campaign.slot.operator
    row = CanaryBase.objects.create(
        operator=operator, backend="numba", hardware=HARDWARE, workload="llm", begun_at=timezone.now(),
        reason="The operator is in use on this device.", kernel=baseline_kernel(operator=operator, backend="numba"))
    verdicts = [world.answer(world.job(row.kernel, purpose="canary", against={})) for _ in range(5)]
    for number, (verdict, factor) in enumerate(zip(verdicts, (1.0, 1.0, 1.0, 1.06, 1.06), strict=True)):
        CanaryReading.objects.create(
            base=row, verdict=verdict, environment_class=ENVIRONMENT, outcome="passed", medians={"64x64": 100 * factor},
            weights={"64x64": 1.0}, noise=0.004, side=None if number < 3 else 1, shift=factor, margin=0.02,
            at=timezone.now() - timedelta(minutes=9 - number))
    return row


def system(client: Client) -> str:
    return client.get("/system/").content.decode()


def test_the_page_shows_readings_drift_and_what_to_do(
    world: World, base: CanaryBase, worker: Worker, sign_in: SignIn
) -> None:
    client = sign_in(world.vic)
    text = system(client)
    assert "1.060×" in text and "beyond" in text and "steady" in text and 'class="rej"' in text
    CanaryDrift.objects.create(
        base=base, hardware=HARDWARE, environment_class=ENVIRONMENT, since=timezone.now() - timedelta(minutes=6),
        opened_at=timezone.now(), text=f"{HARDWARE} drifts: so and so.")
    text = system(client)
    assert text.count(f"{HARDWARE} drifts: so and so.") >= 2 and 'class="shade"' in text
    home = client.get("/").content.decode()
    assert "Promotions wait" in home and "drifts: so and so" in home
    assert client.get("/ready/").json()["promotions_blocked"][-1].endswith("so and so.")
    part = client.get("/system/?part=canary").content.decode()
    assert part.strip().startswith("<section") and "drifts: so and so" in part
    assert "70% of the fastest seen" in text.replace("\u202f", "")


def test_only_maintainers_begin_a_new_reference_and_with_a_reason(
    world: World, base: CanaryBase, sign_in: SignIn
) -> None:
    address = f"/system/canary/{base.pk}/rebase/"
    sign_in(world.vic).post(address, {"reason": "no"})
    sign_in(world.maintainer).post(address, {"reason": " "})
    assert CanaryBase.objects.count() == 1 and "Begin a new reference" not in system(sign_in(world.vic))
    assert "Begin a new reference" in system(sign_in(world.maintainer))
    assert sign_in(world.maintainer).post(address, {"reason": "another host"}).status_code == 303
    assert CanaryBase.objects.get(ended_at=None).reason == "another host"
    assert sign_in(world.maintainer).post(address, {"reason": "again"}).status_code == 404
    assert sign_in(None).post(address, {"reason": "x"}).status_code == 302


def test_maintainers_order_self_tests_others_read_why_not(world: World, worker: Worker, sign_in: SignIn) -> None:
    address = f"/system/workers/{worker.pk}/selftest/"
    assert "Run the whole corpus again" not in system(sign_in(world.ben))
    sign_in(world.ben).post(address, {"quick": "no"})
    assert not SelfTestOrder.objects.exists()
    client = sign_in(world.maintainer)
    assert "Run the whole corpus again" in system(client)
    client.post(address, {"quick": "no"})
    client.post(address, {"quick": "yes"})
    assert [order.quick for order in SelfTestOrder.objects.all()] == [False, True]
    assert "Mia asked for the whole self-test" in system(client)
    assert client.post("/system/workers/99/selftest/", {"quick": "yes"}).status_code == 404


def test_the_last_quick_and_the_last_whole_pass_are_shown_with_counts(world: World, sign_in: SignIn) -> None:
    kernels = [{"name": "cheat/a", "kind": "cheat", "right": True}, {"name": "wrong/b", "kind": "wrong", "right": False,
                                                                     "outcome": "passed", "text": "It passed."}]
    selftest_record(evaluator_version=api.evaluator_version(), environment_class=ENVIRONMENT, isolation=3,
                    backend="numba", quick=False, passed=False, report={"kernels": kernels, "seconds": 90})
    client = sign_in(world.vic)
    text = system(client)
    assert "quick subset" in text and "whole corpus" in text
    assert "Known cheats refused" in text and "0/1" in text and "wrong/b" in text
    worker_beat(name=f"evalworker:{HARDWARE}", kind="evalworker", hardware=HARDWARE, backends=["numba"], isolation=3)
    for address in ("/", "/operators/", "/leaderboards/", "/docs/troubleshooting/"):
        page = client.get(address).content.decode()
        assert "Promotions wait" in page, address


NEW = {"levels": [
    {"mode": mode, "level": 2, "proved": ["netns", "landlock"], "missing": {"uid": "the home is private"},
     "escaped": [], "remedies_by_wall": {"uid": "Run it as root."}, "next": ["Take a newer kernel.", "Run it as root."]}
    for mode in ("numba", "triton-plan")] + [
    {"mode": "triton-derive", "level": 3, "proved": ["pidns"], "missing": {}, "escaped": ["network"], "next": []},
]}
OLD = {"checks": [{"name": "isolation (numba)", "ok": False, "remedy": "Allow user namespaces.",
                   "text": "level 1 of 3 proved by the escape probe: limits, landlock. The probe got through: net"},
                  {"name": "packages", "ok": True, "text": "level headed"}]}


def written(settings: Any, tmp_path: Path, report: object) -> None:
    settings.VAR_DIR = tmp_path
    (tmp_path / "doctor.json").write_text(json.dumps(report))


def test_isolation_names_missing_walls_reasons_and_the_way_up(
    world: World, settings: Any, tmp_path: Path, sign_in: SignIn
) -> None:
    written(settings, tmp_path, NEW)
    first, second = mode_rows()
    assert (first.modes, first.level, first.remedies) == (("numba", "triton-plan"), 2, ("Take a newer kernel.",))
    assert first.missing == (Missing("uid", "the home is private", "Run it as root."),)
    assert second.next_text == "" and first.next_text
    text = system(sign_in(world.vic))
    for words in ("does not stand", "the home is private", "To reach level 3", "Run it as root.",
                  "Take a newer kernel.", "got through:"):
        assert words in text, words
    written(settings, tmp_path, OLD)
    (row,) = mode_rows()
    assert (row.modes, row.level, row.remedies) == (("numba",), 1, ("Allow user namespaces.",))
    assert [name for name, _ in row.proved] == ["limits", "landlock"]


@pytest.mark.parametrize("report", [
    None, [], {}, {"levels": "x", "checks": 3}, {"levels": [3, {}]}, {"levels": [{"level": 99, "missing": "x"}]},
    {"levels": [{"mode": "a", "missing": [{"wall": "uid", "why": "w"}, "netns", 3], "next": {"remedy": ["r", 3]}}]},
    {"checks": [3, {"name": "isolation (x)"}]},
])
def test_whatever_the_doctor_left_it_is_read_as_rows(settings: Any, tmp_path: Path, report: object) -> None:
    written(settings, tmp_path, report)
    assert all(0 <= row.level <= 3 for row in mode_rows())
    assert all(row["state"] in ("ok", "note", "warning", "error") for row in doctor_rows())


def test_the_canarys_plot_shades_drifts_and_keeps_everything_inside() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ratios = (1.0, 1.01, 1.2, 1.3, None, 1.0)
    points = [Point(start + timedelta(hours=n), ratio, 0.02, 0 if ratio and ratio < 1.1 else 1, str(n))
              for n, ratio in enumerate(ratios)]
    plot = canary_plot(points, [Window(points[1].at, points[4].at)])
    assert plot is not None and len(plot.dots) == 6 and len(plot.shades) == 1
    inside = [dot for dot in plot.dots if plot.shades[0].x <= dot.x <= plot.shades[0].x + plot.shades[0].width]
    assert [dot.label for dot in inside] == ["2", "3", "4"]
    assert all(plot.top <= dot.y <= plot.bottom and plot.left <= dot.x <= plot.right for dot in plot.dots)
    assert [dot.css for dot in plot.dots] == ["dot", "dot", "rej", "rej", "rej", "dot"]
    assert canary_plot([Point(start, None, 0.02, 1, "x")], []) is None and canary_plot([], []) is None
