"""Goal document first, options over it, and what they changed in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.campaign.goal_options import Options, goal_of
from harness.cli import main
from harness.domain.codec import to_document
from harness.domain.errors import GoalError, UsageError
from harness.domain.goal import AgentChoice, Goal
from harness.domain.vocabulary import Backend, Tier
from harness.hardware.detect import hardware_name


def _document(path: Path, *lines: str) -> Path:
    file = path / "goal.toml"
    head = ['version = 1', 'operator = "softmax"', 'backend = "numba"', f'hardware = "{hardware_name()}"',
            'workload = "llm"']
    file.write_text("\n".join([*head, *lines]) + "\n", "utf-8")
    return file


def test_options_alone_make_a_goal_for_this_machine() -> None:
    goal, changed = goal_of(None, Options(operator="softmax", backend="numba", rounds=3))
    assert (goal.hardware, goal.budget.rounds, goal.agent.kind, changed) == (hardware_name(), 3, "playbook", ())
    triton, _ = goal_of(None, Options(operator="softmax", backend="triton"))
    assert triton.backend is Backend.TRITON and triton.hardware == "nvidia-h200"


def test_options_override_the_document_and_say_so(tmp_path: Path) -> None:
    file = _document(tmp_path, 'grant = "light"', "[budget]", "rounds = 7", "[agent]", 'kind = "autotune"')
    goal, changed = goal_of(file, Options(grant="heavy", rounds=2))
    assert goal.grant is Tier.HEAVY and goal.budget.rounds == 2 and goal.agent.kind == "autotune"
    assert changed == ("--grant heavy overrides grant = light", "--rounds 2 overrides budget.rounds = 7")
    same, unchanged = goal_of(file, Options(rounds=7))
    assert same.budget.rounds == 7 and unchanged == ()


def test_bad_goals_are_one_sentence_with_a_key(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--operator"):
        goal_of(None, Options(backend="numba"))
    with pytest.raises(UsageError, match="cannot be read"):
        goal_of(tmp_path / "absent.toml", Options())
    with pytest.raises(GoalError, match="not valid TOML"):
        broken = tmp_path / "broken.toml"
        broken.write_text("version = ", "utf-8")
        goal_of(broken, Options())
    with pytest.raises(GoalError) as caught:
        goal_of(_document(tmp_path), Options(rounds=0))
    assert caught.value.key == "budget.rounds"
    with pytest.raises(UsageError, match="this machine"):
        goal_of(None, Options(operator="softmax", backend="numba", hardware="cpu-other-9-64t"))
    with pytest.raises(UsageError, match="nvidia-h200"):
        goal_of(None, Options(operator="softmax", backend="triton", hardware="nvidia-z1"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--operator", "nothing", "--backend", "numba"], "rms_norm"),
        (["--operator", "softmax", "--backend", "numba", "--agent", "openai"], "endpoint"),
        (["--operator", "softmax", "--backend", "numba", "--workload", "none"], "workload"),
        (["--backend", "numba"], "--operator"),
    ],
)
def test_usage_errors_exit_with_two(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def _left(folder: Path, agent: AgentChoice, operator: str = "softmax", results: str = '{"kind": "budget"}\n') -> None:
    folder.mkdir(exist_ok=True)
    goal = Goal(operator, Backend.NUMBA, hardware_name(), "llm", agent=agent)
    (folder / "goal.json").write_text(json.dumps(to_document(goal)), "utf-8")
    (folder / "results.jsonl").write_text(results, "utf-8")


MODEL = AgentChoice("openai", endpoint="house", model="model-a")


@pytest.mark.parametrize("left", ["playbook", "openai elsewhere", "no goal", "a file"])
def test_a_campaign_that_lies_there_is_not_written_over(left: str, tmp_path: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    if left == "a file":
        out.write_text("mine", "utf-8")
    else:
        _left(out, AgentChoice("playbook") if left == "playbook" else MODEL, "rope" if "else" in left else "softmax")
    if left == "no goal":
        (out / "goal.json").unlink()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    asked = [] if left == "playbook" else ["--agent", "openai", "--endpoint", "house", "--model", "model-a"]
    assert main(["optimize", "--operator", "softmax", "--backend", "numba", "--out", str(out), *asked]) == 2
    said = capsys.readouterr().err
    assert f"--out {out}" in said and "name a new folder" in said
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("agent", [AgentChoice("playbook"), MODEL], ids=["nothing was brought", "a model's goes on"])
def test_a_folder_is_used_again_where_nothing_is_lost(agent: AgentChoice, tmp_path: Path,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    _left(tmp_path, agent, results="" if agent.kind == "playbook" else "{}\n")
    endpoints = tmp_path / "none.toml"
    assert main(["optimize", "--operator", "softmax", "--backend", "numba", "--agent", "openai", "--endpoint", "house",
                 "--model", "model-a", "--endpoints", str(endpoints), "--out", str(tmp_path)]) == 2
    assert f"The file of endpoints, {endpoints}, is not there" in capsys.readouterr().err
