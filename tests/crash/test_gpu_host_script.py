"""``scripts/on_gpu_host.py`` from an empty folder to a champion, with a stand-in for the evaluator: the way through the
product is real, the figures are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.hardware.detect import hardware_name
from scripts.gpu_host.journey import PEOPLE, Journey
from scripts.gpu_host.record import Record
from scripts.gpu_host.site import ROOT, Site
from scripts.gpu_host.visitor import Failed
from scripts.on_gpu_host import AGENTS, ENDPOINTS, goal_of

FAKE = f"{sys.executable} {ROOT / 'tests' / 'crash' / 'fake_evaluator.py'}"
SELF_TEST = """
import django
django.setup()
from apps.bridge import api
from apps.campaigns.jobs.workers import selftest_record
selftest_record(evaluator_version=api.evaluator_version(), isolation=3, backend="numba", quick=True, passed=True,
                environment_class=api.environment_class_here(api.hardware_here(), "numba"), report={})
"""


class StandIn(Site):
    """A site whose evaluator is a stand-in; its self-test, which a stand-in does not run, is recorded as passed."""

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"KERNELOPT_EVALUATE_COMMAND": FAKE, "KERNELOPT_CANARY_EVERY": "0"}

    def start(self) -> None:
        subprocess.run([sys.executable, "-c", SELF_TEST], cwd=ROOT, env=self.environment, check=True)
        super().start()


def _went(folder: Path, site: Site) -> Journey:
    """A whole journey with the scripted model on ``site``."""
    (folder / "endpoints.toml").write_text(ENDPOINTS, "utf-8")
    goal = goal_of("rms_norm", "numba", hardware_name(), "medium", 2, AGENTS["scripted"])
    journey = Journey(site, Record(limit_s=240.0), goal, [hardware_name()])
    try:
        journey.run()
    except Failed as problem:
        raise AssertionError(f"{problem}\n{journey.record.table()}\n{journey.site.log()}") from problem
    finally:
        left = journey.site.stop()
    assert not left
    assert all(step.ok for step in journey.record.steps)
    return journey


@pytest.mark.slow
def test_the_script_goes_all_the_way(tmp_path: Path) -> None:
    journey = _went(tmp_path, StandIn(tmp_path))
    assert journey.champion["approvals"][0]["by"] in {name.capitalize() for name in PEOPLE}
    names = [step.name for step in journey.record.steps]
    played = next(step for step in journey.record.steps if step.name == "the model's answers, played again")
    assert played.text.startswith("2 askings") and "round 2 candidate" in played.text, played.text
    assert names[-2:] == ["the promotion's git tag", "the leaderboard shows it"] and "submitted again" not in names


@pytest.mark.slow
def test_a_loss_that_only_the_verification_finds_is_accepted_by_name_in_a_second_request(tmp_path: Path) -> None:
    class Losing(StandIn):
        @property
        def environment(self) -> dict[str, str]:
            return super().environment | {"HARNESS_FAKE_LOSS": "1"}

    journey = _went(tmp_path, Losing(tmp_path))
    steps = {step.name: step.text for step in journey.record.steps}
    assert "R-2" in steps["submitted again"] and "1 slower shapes accepted by name" in steps["rosa approves"]
    verified = [step.text for step in journey.record.steps if step.name == "verified anew and promoted"]
    assert len(verified) == 2 and "Clearly slower on 8x8" in verified[0] and verified[1] == "promoted"


def test_what_does_not_happen_is_a_sentence_in_the_table(tmp_path: Path) -> None:
    record = Record(limit_s=240.0)
    with pytest.raises(Failed, match=r"no_such_command ended with 1: .*Unknown command"), record.step("a command"):
        Site(tmp_path).manage("no_such_command")
    with pytest.raises(Failed, match=r"the impossible did not happen within 0 s"), record.step("waiting"):
        record.until("the impossible", lambda: None, 0.0)
    with record.step("what comes out") as step:
        step.text = str(record.until("a find", lambda: 7, 0.0))
    assert [row["ok"] for row in record.document()] == [False, False, True]
    assert "FAILED: the impossible did not happen" in record.table() and record.table().splitlines()[-1].endswith("7")
