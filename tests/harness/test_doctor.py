"""The doctor gets to the end whatever it meets, and its exit code says whether something must be mended."""

from __future__ import annotations

import argparse
import json

import pytest

from harness.cli import doctor
from harness.cli.doctor_trials import TRIALS, Check
from harness.domain.errors import InfrastructureError


def all_well() -> Check:
    return Check("well", True, "fine")


def limitation() -> Check:
    return Check("gpu", False, "none", "dry runs", "find one", optional=True)


def broken_wall() -> Check:
    raise InfrastructureError("The sandbox server did not start.")


def bug_inside() -> Check:
    raise ZeroDivisionError("division by zero")


def report(monkeypatch, capsys, *trials):
    monkeypatch.setattr(doctor, "TRIALS", trials)
    code = doctor.run(argparse.Namespace(json=True))
    return code, json.loads(capsys.readouterr().out)["checks"]


def test_limitations_do_not_fail_the_machine(monkeypatch, capsys):
    code, checks = report(monkeypatch, capsys, all_well, limitation)
    assert code == 0
    assert [check["ok"] for check in checks] == [True, False]


@pytest.mark.parametrize("trial", [broken_wall, bug_inside])
def test_whatever_a_trial_raises_is_a_finding_with_a_remedy(monkeypatch, capsys, trial):
    code, (finding, last) = report(monkeypatch, capsys, trial, all_well)
    assert code == 2
    assert not finding["ok"] and finding["remedy"] and finding["means"]
    assert last["ok"]


def test_text_names_consequence_and_remedy_of_each_gap(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "TRIALS", (limitation,))
    assert doctor.run(argparse.Namespace(json=False)) == 0
    printed = capsys.readouterr().out
    assert "means: dry runs" in printed and "to do: find one" in printed


def test_the_report_is_kept_where_the_system_page_looks(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    _, checks = report(monkeypatch, capsys, all_well)
    assert json.loads((tmp_path / "doctor.json").read_text("utf-8"))["checks"] == checks


def test_every_trial_has_a_name_for_the_reader():
    assert len({trial.__name__ for trial in TRIALS}) == len(TRIALS)
    assert all(trial.__doc__ for trial in TRIALS)
