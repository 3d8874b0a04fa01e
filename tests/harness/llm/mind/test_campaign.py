"""Whole campaigns of a language model on the command line, with a model that is a script: what it wrote is on the log,
and the stored campaign plays again without a network."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from harness.agents.llm.agent import LanguageModel
from harness.agents.llm.ports import Question, TransportError
from harness.agents.registry import LABELS, make_agent
from harness.campaign.model_desk import endpoints_path
from harness.campaign.model_turns import FileTurns, keep_facts
from harness.campaign.replay import replay
from harness.campaign.start import start_state
from harness.cli import main
from harness.cli.optimize import optimize
from harness.domain.errors import UsageError
from harness.domain.goal import AgentChoice, Budget, Goal, Stop
from harness.domain.turn import Answer
from harness.domain.vocabulary import Backend, Tier
from harness.engine.state import Status
from harness.hardware.detect import hardware_name
from tests.harness.campaign.fake_evaluator import FakeEvaluator
from tests.harness.llm.mind.contexts import CHOICE, block
from tests.harness.llm.mind.fakes import FACTS, LOG, Said, Script, calls, desk, says, submits
from tests.harness.llm.mind.test_tools import ideas

SPEED = FakeEvaluator(lambda source: 40.0 if '"BLOCK": 64' in source else 100.0).speed


def goal(**more: Any) -> Goal:
    return replace(Goal("softmax", Backend.NUMBA, hardware_name(), "llm", grant=Tier.LIGHT, agent=CHOICE,
                        budget=Budget(rounds=4), stop=Stop(direction_failures=2)), **more)


DIAGNOSIS: list[Said] = [calls(LOG, ("read_profile", {"shape": None})),
                         calls(("state_hypotheses", ideas()), submits(block(64), "h1", claimed_gain=0.5))]
STORY: list[Said] = [
    *DIAGNOSIS,
    says("I think round 2 should try 128."), calls(LOG, submits(block(128), "h2", claimed_gain=3.0)),
    calls(LOG, submits(block(128), "h3")), calls(submits(block(256), "h3")),
    calls(LOG, ("give_up", {"reason": "Wider blocks bring nothing on this machine."})),
]


def played(folder: Path, *said: Said, a_goal: Goal | None = None, capsys: Any = None) -> tuple[int, Any, Script]:
    """Run ``optimize`` in ``folder``; its exit code, its document and the model's script."""
    script = Script(*said)
    keep_facts(folder, FACTS)
    agent = LanguageModel(replace(desk(script), turns=FileTurns(folder)))
    capsys.readouterr()
    code = optimize(start_state(a_goal or goal(), attended=False), agent, lambda progress: FakeEvaluator(SPEED),
                    out=folder, as_json=True)
    return code, json.loads(capsys.readouterr().out), script


def test_a_campaign_and_its_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, script = played(tmp_path, *STORY, capsys=capsys)
    assert code == 0 and document["status"] == Status.FINISHED and document["agent"]["label"] == "model-a at house"
    log = {entry["round"]: entry for entry in document["log"]}
    assert log[1]["conclusion"] == "confirmed" and document["final"]["round"] == 1
    assert log[2]["claim_contradicted"] and log[2]["agent_claim"]["gain"] == 3.0
    told = script.questions[-1].messages[1]["content"]
    assert "claimed +300% - CONTRADICTED by the measurement" in told
    again = [json.dumps(list(question.messages)) for question in script.questions]
    assert any("tried in round 2" in text for text in again), "the repeated idea was sent back with its round"
    assert document["asked"] == {"turns": 7, "tokens": 7700, "money": pytest.approx(0.0098)}
    askings = list(replay(tmp_path))
    assert [one.differs for one in askings] == [""] * 4 and [len(one.turns) for one in askings] == [2, 2, 2, 1]
    assert main(["replay", str(tmp_path), "--round", "2"]) == 0
    text = capsys.readouterr().out
    assert "round 1 diagnosis: candidate for h1" in text and "model said:\nI think round 2" in text
    assert main(["replay", str(tmp_path), "--round", "7"]) == 2
    assert "not asked in round 7" in capsys.readouterr().err


def test_a_replay_sees_that_something_else_was_proposed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    played(tmp_path, *DIAGNOSIS, a_goal=goal(budget=Budget(rounds=1)), capsys=capsys)
    results = (tmp_path / "results.jsonl").read_text("utf-8")
    assert not next(replay(tmp_path)).differs and results.count("another block") == 1
    (tmp_path / "results.jsonl").write_text(results.replace("another block", "something else"), "utf-8")
    assert "recorded: candidate for h1: something else" in next(replay(tmp_path)).differs
    turns = (tmp_path / "turns.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "turns.jsonl").write_text("\n".join(turns[:2]) + "\n", "utf-8")
    assert "No stored turn answers" in next(replay(tmp_path)).differs
    assert main(["replay", str(tmp_path)]) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_an_outage_pauses_and_the_next_run_pays_no_turn_again(tmp_path: Path,
                                                              capsys: pytest.CaptureFixture[str]) -> None:
    down = TransportError("The endpoint answers 503.", kind="unavailable")
    small = goal(budget=Budget(rounds=1))
    code, document, _ = played(tmp_path, DIAGNOSIS[0], down, a_goal=small, capsys=capsys)
    assert code == 2 and document["status"] == Status.PAUSED and "503" in document["cause"]
    code, document, script = played(tmp_path, DIAGNOSIS[1], a_goal=small, capsys=capsys)
    assert code == 0 and document["final"]["round"] == 1 and len(script.questions) == 1


def test_a_useless_model_loses_rounds_and_not_the_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Useless(Script):
        def ask(self, question: Question, **more: Any) -> Answer:
            return says("As a language model I recommend vectorisation.")

    agent = LanguageModel(replace(desk(Useless()), turns=FileTurns(tmp_path)))
    code = optimize(start_state(goal(budget=Budget(rounds=2)), attended=False), agent,
                    lambda progress: FakeEvaluator(SPEED), out=tmp_path, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert code == 0 and document["status"] == Status.FINISHED and document["rounds"] == 2
    assert all(entry["conclusion"] == "failed" for entry in document["log"]) and document["final"]["round"] == 0
    turns = FileTurns(tmp_path).all()
    assert len(turns) == 18 and {turn.blame for turn in turns} == {"model"}


ENDPOINTS = '[endpoint.house]\nurl = "http://127.0.0.1:9/v1"\nmodels = ["model-a"]\n'


@pytest.mark.parametrize(("options", "said"), [
    ([], "needs --endpoint and --model. Endpoints of"),
    (["--endpoint", "house"], "house"),
    (["--endpoint", "other", "--model", "model-a"], "has no endpoint 'other'. It has: house"),
    (["--endpoint", "house", "--model", "model-z"], "does not offer 'model-z'. It offers: model-a"),
    (["--endpoint", "house", "--model", "model-a", "--effort", "high"], "has no effort 'high'. Its efforts: none"),
])
def test_what_is_not_in_the_settings_is_said_before_anything_runs(options: list[str], said: str, tmp_path: Path,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "endpoints.toml"
    file.write_text(ENDPOINTS, "utf-8")
    assert main(["optimize", "--operator", "softmax", "--backend", "numba", "--agent", "openai", "--endpoints",
                 str(file), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("variables", [{"KERNELOPT_VAR": "{}/site"}, {"KERNELOPT_ENDPOINTS": "{}/site/endpoints.toml"},
                                       {}], ids=lambda variables: next(iter(variables), "neither"))
def test_the_file_lies_where_the_site_looks_for_it(variables: dict[str, str], tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("KERNELOPT_VAR", "KERNELOPT_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / ("site" if variables else "var") / "endpoints.toml"
    words = ["optimize", "--operator", "softmax", "--backend", "numba", "--agent", "openai"]
    assert main(words) == 2
    assert f"{endpoints_path()}, is not there" in capsys.readouterr().err
    file.parent.mkdir()
    file.write_text(ENDPOINTS, "utf-8")
    assert main(words) == 2
    assert f"Endpoints of {endpoints_path()}: house" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["openai", "mcp"])
def test_an_agent_that_cannot_be_asked_from_here_is_a_usage_error(kind: Any) -> None:
    with pytest.raises(UsageError) as caught:
        make_agent(AgentChoice(kind))
    assert caught.value.code == "agent_unavailable" and "--agent playbook" in caught.value.text
    assert isinstance(make_agent(CHOICE, desk=desk(Script())), LanguageModel)
    assert set(LABELS) == set(get_args(get_type_hints(AgentChoice)["kind"]))


def test_a_folder_that_is_no_campaign_of_a_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no campaign of a language model"):
        list(replay(tmp_path))
