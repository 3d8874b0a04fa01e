"""Keys of endpoints: the engine has them, no other child of ``serve`` does, and nothing that the engine starts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from apps.bridge.runner.keys import key_names, secrets_of, without_keys
from apps.bridge.runner.site import child_specs
from apps.bridge.runner.supervisor import ChildSpec, Supervisor

GOOD = '[endpoint.here]\nurl = "http://127.0.0.1:9/v1"\nkey_variable = "A_KEY_OF_THE_TESTS"\nmodels = ["m"]\n'


@pytest.mark.parametrize("text", [
    GOOD, GOOD + "unknown = 7\n", GOOD.replace('url = "http://127.0.0.1:9/v1"', "url = 7"), GOOD + "not toml at all",
    "key_variable='A_KEY_OF_THE_TESTS'", '"key_variable" = "A_KEY_OF_THE_TESTS"'])
def test_a_file_that_is_wrong_somewhere_still_names_its_keys(tmp_path: Path, text: str) -> None:
    path = tmp_path / "endpoints.toml"
    path.write_text(text, "utf-8")
    assert key_names(path) == {"A_KEY_OF_THE_TESTS", "OPENAI_API_KEY"}


def test_no_file_names_no_keys(tmp_path: Path) -> None:
    assert key_names(tmp_path / "endpoints.toml") == {"OPENAI_API_KEY"}
    assert secrets_of({"OPENAI_API_KEY": " sk-1 ", "OTHER": "x"}, frozenset({"OPENAI_API_KEY"})) == ("sk-1",)


def test_the_engine_alone_asks_models(tmp_path: Path) -> None:
    specs = child_specs(host="127.0.0.1", port=1, manage=tmp_path / "manage.py")
    assert [spec.name for spec in specs if spec.keys] == ["engine"]


def test_children_get_the_keys_only_where_they_ask_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY_OF_THE_TESTS", "sk-secret-of-the-tests")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    monkeypatch.setenv("SOMETHING_ELSE", "stays")
    (tmp_path / "endpoints.toml").write_text(GOOD, "utf-8")
    program = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps(dict(os.environ)))"
    specs = [ChildSpec(name, (sys.executable, "-c", program, str(tmp_path / name)), keys=name == "engine")
             for name in ("engine", "evalworker")]
    supervisor = Supervisor(specs=specs, folder=tmp_path, state_file=tmp_path / "state.json", say=lambda text: None,
                            key_names=lambda: key_names(tmp_path / "endpoints.toml"))
    for child in supervisor.children:
        supervisor._start(child, 0.0)
        assert child.process is not None
        assert child.process.wait(60) == 0
    engine, worker = (json.loads((tmp_path / name).read_text("utf-8")) for name in ("engine", "evalworker"))
    assert engine["A_KEY_OF_THE_TESTS"] == "sk-secret-of-the-tests" and engine["SOMETHING_ELSE"] == "stays"
    assert worker["SOMETHING_ELSE"] == "stays"
    assert "A_KEY_OF_THE_TESTS" not in worker and "OPENAI_API_KEY" not in worker
    assert without_keys(os.environ, key_names(tmp_path / "endpoints.toml")).keys() == (
        os.environ.keys() - {"A_KEY_OF_THE_TESTS", "OPENAI_API_KEY"})
