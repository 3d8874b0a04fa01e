"""The doctor gets to the end whatever it meets, and its exit code says whether something must be mended."""

from __future__ import annotations

import argparse
import json
import os

import pytest

from harness.cli import doctor, doctor_gpu
from harness.cli.doctor_check import Check
from harness.cli.doctor_isolation import Levels
from harness.cli.doctor_trials import TRIALS
from harness.domain.errors import InfrastructureError
from harness.evaluation.sandbox import advice, modes
from harness.evaluation.sandbox.proof import Proof


def all_well() -> Check:
    return Check("well", True, "fine")


def limitation() -> Check:
    return Check("gpu", False, "none", "dry runs", "find one", optional=True)


def broken_wall() -> Check:
    raise InfrastructureError("The sandbox server did not start.")


def bug_inside() -> Check:
    raise ZeroDivisionError("division by zero")


def quiet(monkeypatch) -> None:
    """Only the trials under test: no probe, no GPU."""
    monkeypatch.setattr(Levels, "trials", lambda self: [])
    monkeypatch.setattr(doctor_gpu, "TRIALS", ())


def report(monkeypatch, capsys, *trials):
    quiet(monkeypatch)
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
    quiet(monkeypatch)
    monkeypatch.setattr(doctor, "TRIALS", (limitation,))
    assert doctor.run(argparse.Namespace(json=False)) == 0
    printed = capsys.readouterr().out
    assert "means: dry runs" in printed and "to do: find one" in printed


def test_the_report_is_kept_where_the_system_page_looks(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path))
    _, checks = report(monkeypatch, capsys, all_well)
    assert json.loads((tmp_path / "doctor.json").read_text("utf-8"))["checks"] == checks


def test_every_trial_has_a_name_for_the_reader():
    every = (*TRIALS, *Levels().trials(), *doctor_gpu.TRIALS)
    assert len({trial.__name__ for trial in every}) == len(every)
    assert all(trial.__doc__ for trial in every)


WALLS = ("pidns", "mountns", "netns", "limits", "uid", "no_new_privs", "landlock", "seccomp", "cgroup")
REFUSED = "[Errno 1] unshare: Operation not permitted"
NO_NAMESPACES = tuple((name, REFUSED) for name in ("mountns", "netns", "pidns"))


def proof(level: int, *missing: tuple[str, str], escaped: tuple[str, ...] = ()) -> Proof:
    absent = {name for name, _ in missing}
    return Proof(level, tuple(w for w in WALLS if w not in absent), escaped, own_uid="uid" not in absent,
                 missing=missing)


@pytest.mark.parametrize(("found", "words"), [
    (proof(3), "highest"),
    (proof(2, *NO_NAMESPACES, ("uid", "the worker does not run as root")), "root"),
    (proof(1, *NO_NAMESPACES, ("landlock", "this kernel has no Landlock")), "Landlock"),
    (proof(0, *NO_NAMESPACES, ("limits", "not allowed")), "limits"),
    (proof(0, escaped=("signal_keeper",)), "signal_keeper"),
])
def test_the_way_to_the_next_level_is_one_sentence(found, words, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert words in advice.next_level(found)
    assert advice.next_level(found).endswith(".")


@pytest.mark.parametrize("missing", WALLS)
def test_every_wall_that_does_not_stand_has_a_remedy(missing):
    assert advice.remedies(proof(2, (missing, "refused")))[missing].endswith(".")


@pytest.mark.parametrize(("settings", "privileged", "words"), [
    ({"/proc/sys/user/max_user_namespaces": "0"}, False, "sysctl -w user.max_user_namespaces"),
    ({"/proc/sys/kernel/unprivileged_userns_clone": "0"}, False, "unprivileged_userns_clone=1"),
    ({"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, False, "apparmor"),
    ({}, False, "as root"), ({}, True, "CAP_SYS_ADMIN"),
])
def test_namespaces_are_refused_for_a_reason_that_is_found(settings, privileged, words):
    assert words in advice.namespaces(lambda path: settings.get(path, ""), privileged)


@pytest.mark.parametrize(("found", "ok", "optional"), [
    (proof(3, ("cgroup", "none was given")), True, True),
    (proof(2, *NO_NAMESPACES), False, True),
    (proof(1, ("landlock", "this kernel has no Landlock")), False, False),
])
def test_each_mode_says_its_level_what_is_missing_and_what_to_do(found, ok, optional):
    levels = Levels()
    check = levels.found("numba", found)
    assert (check.ok, check.optional) == (ok, optional)
    (row,) = levels.rows
    assert row["level"] == found.level and row["missing"] == dict(found.missing)
    assert all(wall in check.text for wall, _ in found.missing)
    assert row["next"] and (ok or check.remedy in row["next"])
    assert set(row["remedies_by_wall"]) == set(row["missing"])


def test_every_mode_is_probed():
    assert [trial.__name__ for trial in Levels().trials()] == [f"isolation ({mode})" for mode in modes.MODES]


def test_a_tool_is_started_and_its_version_read(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    absent = doctor_gpu.compute_sanitizer()
    assert not absent.ok and absent.optional and absent.remedy
    tool = tmp_path / "compute-sanitizer"
    tool.write_text("#!/bin/sh\necho 'NVIDIA (R) Compute Sanitizer'\necho 'Version 2025.3.1'\n")
    tool.chmod(0o755)
    assert "2025.3.1" in doctor_gpu.compute_sanitizer().text
    tool.write_text("#!/bin/sh\nexit 3\n")
    broken = doctor_gpu.compute_sanitizer()
    assert not broken.ok and "does not start" in broken.text


def test_a_machine_without_a_gpu_is_a_limitation(monkeypatch):
    from harness.evaluation.sandbox import walls
    from harness.hardware import nvml

    monkeypatch.setattr(nvml, "cards", tuple)
    monkeypatch.setattr(walls, "gpu_devices", tuple)
    for check in (doctor_gpu.gpu(), doctor_gpu.device_files()):
        assert not check.ok and check.optional and check.means and check.remedy
    monkeypatch.setattr(walls, "gpu_devices", lambda: (os.devnull,))
    assert doctor_gpu.device_files().ok
