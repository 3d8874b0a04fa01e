"""The self-test over several processes, and a run that goes on where it stopped."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from harness.cli import main, selftest
from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.run import Place
from harness.evaluation.selftest import resume
from harness.evaluation.selftest.corpus import CorpusKernel, whole_corpus
from harness.evaluation.selftest.pool import run_pooled
from harness.evaluation.selftest.results import CorpusResult, result_of
from harness.evaluation.selftest.resume import Resumed

KERNELS = [kernel for kernel in whole_corpus() if kernel.stage is Stage.STATIC][:6]
FAKE = '''
import json, os, sys
open(sys.argv[1], "a").write(str(os.getpid()) + "\\n")
for line in sys.stdin:
    asked = json.loads(line)
    if asked["name"] == sys.argv[2]:
        os._exit(7)
    if asked["name"] == sys.argv[3]:
        sys.stdin.read()
    print(json.dumps({"name": asked["name"], "outcome": "policy_violation", "stage": "static", "code": "x", "text": "t",
                      "right": True, "seconds": 0.1, "environment": "here", "isolation": 2, "place": "numba"}),
          flush=True)
'''


def fake(folder: Path, dies: str = "", hangs: str = "") -> Sequence[str]:
    script = folder / "worker.py"
    script.write_text(FAKE, "utf-8")
    return (sys.executable, str(script), str(folder / "pids"), dies, hangs)


def alive(folder: Path) -> list[int]:
    pids = [int(line) for line in (folder / "pids").read_text().split()]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_two_workers_answer_for_every_kernel(tmp_path: Path) -> None:
    results = list(run_pooled(KERNELS, jobs=2, command=fake(tmp_path)))
    assert sorted(r.kernel.name for r in results) == sorted(k.name for k in KERNELS)
    assert all(r.right for r in results)
    assert len((tmp_path / "pids").read_text().split()) <= 2
    assert alive(tmp_path) == []


def test_a_worker_that_dies_costs_its_kernel_only(tmp_path: Path) -> None:
    results = {r.kernel.name: r for r in run_pooled(KERNELS, jobs=2, command=fake(tmp_path, dies=KERNELS[1].name))}
    dead = results.pop(KERNELS[1].name)
    assert (dead.outcome, dead.right) == (Outcome.INFRA_ERROR, None)
    assert "status 7" in dead.text
    assert all(r.right for r in results.values())
    assert len(results) == len(KERNELS) - 1


def test_a_run_that_is_given_up_leaves_no_worker_behind(tmp_path: Path) -> None:
    results = run_pooled(KERNELS, jobs=2, command=fake(tmp_path, hangs=KERNELS[0].name))
    assert next(results).right
    results.close()
    deadline = time.monotonic() + 60.0
    while alive(tmp_path) and time.monotonic() < deadline:
        os.sched_yield()
    assert alive(tmp_path) == []


def test_real_workers_judge_as_this_process_does() -> None:
    results = list(run_pooled(KERNELS[:3], jobs=2))
    assert [r.right for r in results] == [True] * 3
    assert {r.stage for r in results} == {Stage.STATIC}


def test_a_result_survives_the_way_into_a_file() -> None:
    result = CorpusResult(KERNELS[0], Outcome.TIMEOUT, Stage.SMOKE, "timeout", "text", False, 1.5, "class", 3,
                          Place.DEVICE)
    assert result_of(json.loads(json.dumps(result.document())), KERNELS[0]) == result


def outcome(kernel: CorpusKernel, right: bool | None = True) -> CorpusResult:
    return CorpusResult(kernel, Outcome.POLICY_VIOLATION, Stage.STATIC, "x", "t", right, 0.1, "here", 2)


def test_what_counts_is_taken_over_and_the_rest_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept.jsonl"
    first = Resumed(file, KERNELS, None)
    assert (first.taken, first.open) == ([], KERNELS)
    first.add(outcome(KERNELS[0]))
    first.add(outcome(KERNELS[1], right=None))  # not judged: asked again
    first.add(outcome(KERNELS[2]))
    with file.open("a") as end:
        end.write('\n{"key": "half a line')
    again = Resumed(file, KERNELS, None)
    assert [r.kernel.name for r in again.taken] == [KERNELS[0].name, KERNELS[2].name]
    assert again.open == [KERNELS[1], *KERNELS[3:]]
    again.add(outcome(KERNELS[3]))  # behind the half line
    assert len(Resumed(file, KERNELS, None).taken) == 3
    changed = dataclasses.replace(KERNELS[0], source=KERNELS[0].source + "# new\n")
    assert changed in Resumed(file, [changed, *KERNELS[1:]], None).open
    stricter = dataclasses.replace(KERNELS[2], outcomes=(Outcome.TIMEOUT,))
    assert stricter in Resumed(file, [stricter], None).open
    monkeypatch.setattr(resume, "EVALUATOR_VERSION", "another")
    assert Resumed(file, KERNELS, None).taken == []
    monkeypatch.undo()
    monkeypatch.setattr(resume, "GOOD_FOR_S", -1.0)
    assert Resumed(file, KERNELS, None).taken == []


def test_a_file_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="--resume"):
        Resumed(tmp_path / "bytes", KERNELS, None)
    with pytest.raises(UsageError, match="cannot be kept"):
        Resumed(tmp_path / "no" / "folder", KERNELS, None).add(outcome(KERNELS[0]))


def test_the_command_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[list[CorpusKernel]] = []

    def judge(kernels: Sequence[CorpusKernel], *_: object) -> Generator[CorpusResult, None, None]:
        asked.append(list(kernels))
        for number, kernel in enumerate(kernels):
            if number == 2 and len(asked) == 1:
                raise KeyboardInterrupt
            yield outcome(kernel)

    monkeypatch.setattr(selftest, "chosen_kernels", lambda **_: KERNELS)
    monkeypatch.setattr(selftest, "_results", judge)
    command = ["selftest", "--resume", str(tmp_path / "kept")]
    assert main(command) == 130
    assert "Stopped after 2 of 6" in capsys.readouterr().err
    assert main([*command, "--json"]) == 0
    assert asked == [KERNELS, KERNELS[2:]]
    document = json.loads(capsys.readouterr().out)
    assert document["counts"]["right"] == len(KERNELS)
    assert document["by_kind"][0]["run"] == len([k for k in KERNELS if k.backend is Backend.NUMBA])


def test_a_gpu_that_is_not_here_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--hardware", "nvidia-z9"]) == 2
    assert "This host has no nvidia-z9" in capsys.readouterr().err


def test_places_decide_what_is_asked_where() -> None:
    here = {k.name for k in selftest.chosen_kernels(quick=False, backend="triton")}
    device = {k.name for k in selftest.chosen_kernels(quick=False, backend="triton", hardware="nvidia-h200")}
    assert "wrong/triton_race_between_programs.py" in device - here
    assert here < device
    assert not [k for k in selftest.chosen_kernels(quick=False, hardware="nvidia-h200")
                if not k.judged_at(Place.DEVICE) and k.backend is Backend.TRITON]
