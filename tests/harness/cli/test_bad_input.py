"""Options, files and documents that nobody meant: exit code 2, a sentence on stderr, nothing changed, no traceback."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli import COMMANDS, EXIT_UNREAD, main, parser_of
from harness.cli.numbers import SECONDS, Number
from harness.cli.terminal import CLEAR, Shown, escaped, shown
from harness.domain.codec import schema
from harness.domain.errors import UsageError
from harness.domain.files import MAX_DEPTH, read_document, read_regular
from harness.domain.vocabulary import Backend
from harness.hardware import gpu
from harness.operators import registry
from harness.report.settings import Folder, Settings, remember
from harness.search.journal import Journal
from tests.harness.cli.kernels import HONEST

NEVER = ("nan", "inf", "-inf", "-1", "-0.5", "1e999", "1" * 5000, "", " ", "ten", "0x10", "1\x1b[2J")
OPERATORS = registry.NAMES
ROOT = Path(__file__).parents[3]


def numeric_options() -> Iterator[tuple[str, argparse.Action]]:
    """Every option of every command whose values are numbers."""
    for command in COMMANDS:
        parser = next(action.choices[command] for action in parser_of(command)._actions
                      if isinstance(action, argparse._SubParsersAction))
        for action in parser._actions:
            if action.type in (int, float) or isinstance(action.type, Number) or (isinstance(
                    action.default, int | float) and not isinstance(action.default, bool)):
                yield command, action


NUMERIC = [pytest.param(command, action, id=f"{command} {action.option_strings[0]}")
           for command, action in numeric_options()]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is said about a command that ends with 2; usage errors of the parser exit, others return."""
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code  # type: ignore[assignment]
    said = capsys.readouterr()
    assert code == 2, said
    assert said.out == ""
    assert "Traceback" not in said.err and "\x1b" not in said.err
    return said.err


def test_there_are_numeric_options_and_all_have_the_one_type() -> None:
    assert len(NUMERIC) > 10
    for command, action in numeric_options():
        assert isinstance(action.type, Number), (command, action.option_strings)


@pytest.mark.parametrize(("command", "action"), NUMERIC)
def test_no_numeric_option_takes_what_it_does_not_declare(command: str, action: argparse.Action) -> None:
    assert isinstance(action.type, Number)
    for text in NEVER:
        with pytest.raises(argparse.ArgumentTypeError, match="is not a"):
            action.type(text)
    with pytest.raises(argparse.ArgumentTypeError):
        action.type(str(int(action.type.most) + 1))
    assert action.type(str(int(action.type.most))) == action.type.most
    if action.default is not None:
        assert action.type(str(action.default)) == action.default


@pytest.mark.parametrize("arguments", [
    ["autotune", "--operator", "softmax", "--space", "-1"],
    ["autotune", "--operator", "softmax", "--jobs", "-3"],
    ["selftest", "--jobs", "0"],
    ["optimize", "--operator", "softmax", "--backend", "numba", "--seconds", "nan"],
    ["report", "--out", "x", "--rounds", "-2"],
    ["evaluate", "--deadline", "inf", "kernel.py"],
])
def test_the_sentence_names_the_option_and_what_it_takes(arguments: list[str], tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(arguments, capsys)
    assert re.search(r"argument --[a-z-]+: '[^']+' is not a (whole )?number (from|above) ", said)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def traps(tmp_path: Path) -> dict[str, str]:
    """Paths that a reader could hang on, fall over, or fill the memory from."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin").write_bytes(b"PARAMS = {}  # caf\xe9\n")
    (tmp_path / "deep").write_text("[" * 100_000 + "]" * 100_000)
    (tmp_path / "levels").write_text('{"a":' * 900 + "1" + "}" * 900)
    (tmp_path / "numbers").write_text('{"version": 1e999}')
    (tmp_path / "digits").write_text('{"version": ' + "9" * 4000 + "}")
    (tmp_path / "nan").write_text('{"version": NaN}')
    (tmp_path / "list").write_text("[1, 2]")
    (tmp_path / "half").write_text('{"version": 1, "job"')
    (tmp_path / "empty").write_text("")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "loop").symlink_to("loop")
    return {name: str(tmp_path / name) for name in (
        "pipe", "folder", "latin", "deep", "levels", "numbers", "digits", "nan", "list", "half", "empty", "huge",
        "loop", "missing")} | {"zero": "/dev/zero", "nul": f"{tmp_path}/a\0b",
                               "\x1b[31mred": str(tmp_path / "\x1b[31mred")}


ANY_FILE = ["pipe", "folder", "latin", "huge", "loop", "missing", "zero", "nul", "\x1b[31mred"]
DOCUMENTS = [*ANY_FILE, "deep", "levels", "numbers", "digits", "nan", "list", "half", "empty"]
BY_FILE = {
    "evaluate": ["evaluate", "--operator", "rms_norm", "--backend", "numba", "{}"],
    "incumbent": ["evaluate", "--operator", "rms_norm", "--backend", "numba", "{good}", "--incumbent", "{}"],
    "plan": ["plan", "--operator", "rms_norm", "{}"],
    "tier": ["tier", "{good}", "{}"],
    "autotune": ["autotune", "--operator", "softmax", "--compile-only", "--kernel", "{}"],
    "goal": ["optimize", "--goal", "{}"],
    "endpoints": ["optimize", "--operator", "softmax", "--backend", "numba", "--agent", "openai", "--endpoints", "{}"],
}
BY_DOCUMENT = {
    "request": ["evaluate", "--request", "{}", "--response", "{response}"],
    "show": ["report", "--show", "{}"],
}
TRIED = [(command, name) for command in BY_FILE for name in ANY_FILE] + [
    (command, name) for command in BY_DOCUMENT for name in DOCUMENTS]


@pytest.mark.parametrize(("command", "name"), TRIED)
def test_a_path_that_is_no_file_to_read(command: str, name: str, traps: dict[str, str], tmp_path: Path,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.py"
    good.write_text(HONEST)
    before = sorted(tmp_path.iterdir())
    words = (BY_FILE | BY_DOCUMENT)[command]
    said = refused([word.format(traps[name], good=good, response=tmp_path / "response") if "{" in word else word
                    for word in words], capsys)
    assert len(said) < 900 and said.endswith(".\n")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ANY_FILE)
def test_a_bad_run_json_of_a_report(name: str, traps: dict[str, str], tmp_path: Path,
                                    capsys: pytest.CaptureFixture[str]) -> None:
    if name in ("missing", "nul"):
        assert "no report to go on with" in refused(["report", "--resume", traps[name]], capsys)
    else:
        assert refused(["report", "--resume", traps[name]], capsys)[-1] == "\n"


NO_TARGETS = ["pipe", "folder", "loop", "zero", "nul", "latin/x", "missing/x"]


@pytest.mark.parametrize("name", NO_TARGETS)
@pytest.mark.parametrize("words", [["evaluate", "{good}", "--operator", "rms_norm", "--backend", "numba", "--response"],
                                   ["autotune", "--operator", "softmax", "--compile-only", "--out"]],
                         ids=lambda words: words[0])
def test_a_result_that_could_not_be_written_is_not_begun(words: list[str], name: str, traps: dict[str, str],
                                                         tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.py"
    good.write_text(HONEST)
    base, _, below = name.partition("/")
    target = traps[base] + ("/" + below if below else "")
    said = refused([*(word.format(good=good) for word in words), target], capsys)
    assert "cannot be written" in said and said.endswith(".\n")


@pytest.mark.parametrize("name", ["pipe", "folder", "latin", "loop", "huge", "zero"])
def test_results_are_not_kept_in_what_is_no_file(name: str, traps: dict[str, str],
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    only = ["selftest", "--quick", "--only", "no kernel has this name", "--resume", traps[name]]
    assert "Give --resume another file" in refused(only, capsys)


@pytest.mark.parametrize("name", ["pipe", "folder", "latin", "deep", "list", "half", "loop", "huge", "zero"])
def test_a_journal_of_a_search_that_is_none(name: str, traps: dict[str, str]) -> None:
    path = Path(traps[name])
    before = path.read_bytes() if path.is_file() and name != "huge" else b""
    with pytest.raises(UsageError):
        Journal({"operator": "softmax"}, path)
    assert name == "huge" or not path.is_file() or path.read_bytes() == before


CHANGES: list[tuple[str, object]] = [
    ("settings", None), ("settings", []), ("settings", {}), ("settings.operators", "softmax"),
    ("settings.operators", []), ("settings.operators", ["nothing"]), ("settings.operators", [["softmax"]]),
    ("settings.agents", ["magic"]), ("settings.phases", [1]), ("settings.backend", "cuda"), ("settings.grant", 7),
    ("settings.rounds", -1), ("settings.rounds", True), ("settings.rounds", "20"), ("settings.seconds", 0),
    ("settings.seconds", 1e300), ("settings.pairs", 1.5), ("settings.strategy", "guess"), ("settings.extra", 1),
    ("settings.hardware", 3), ("began", 5), ("runs", {}), ("runs", [1]), ("runs", [{}]), ("runs", [{"seconds": -4}]),
]


@pytest.mark.parametrize(("key", "value"), CHANGES)
def test_a_foreign_run_json_is_left_as_it_is(key: str, value: object, tmp_path: Path,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    from harness.hardware.detect import hardware_name

    folder = Folder(tmp_path / "begun")
    remember(folder, Settings(Backend.NUMBA, hardware_name(), "llm", ("softmax",)), "now")
    document = folder.read("run.json")
    assert document is not None
    inner, _, last = key.rpartition(".")
    (document[inner] if inner else document)[last] = value
    folder.write("run.json", document)
    before = (tmp_path / "begun" / "run.json").read_bytes()
    assert "Nothing was changed" in refused(["report", "--resume", str(tmp_path / "begun")], capsys)
    assert (tmp_path / "begun" / "run.json").read_bytes() == before


@pytest.mark.parametrize(("option", "words"), [
    (["--only", ""], "No operator is named"), (["--only", " , "], "No operator is named"),
    (["--agents", ""], "No agent is named"), (["--phases", ","], "No phase is named"),
    (["--only", "soft\x1b[2Jmax"], "no operator 'soft\\x1b[2Jmax'"),
    (["--workload", "nothing"], "no workload 'nothing'"),
])
def test_a_report_about_nothing(option: list[str], words: str, tmp_path: Path,
                                capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(["report", "--out", str(tmp_path / "out"), "--backend", "numba", *option], capsys)
    assert words in said
    assert not (tmp_path / "out").exists()


def test_texts_of_a_report_cannot_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = schema("report")["examples"][0]
    evil = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m\rpassed"
    stored = tmp_path / "report.json"
    stored.write_text(json.dumps(document | {"missing": [evil], "complete": False}))
    assert main(["report", "--show", str(stored)]) == 1
    said = capsys.readouterr().out
    assert "\\x1b]0;owned\\x07\\x1b[2J\\u202egnp.exe\\x9b31m\\rpassed".replace("\\r", "\\x0d") in said
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", said)


def test_what_is_shown_is_what_was_meant() -> None:
    plain = "größer: 日本 «x» 5 µs\n\ttab"
    assert escaped(plain) == plain
    assert escaped("a\x1b\ud800\U000e0001\u2028b") == "a\\x1b\\ud800\\U000e0001\\u2028b"


def test_only_the_commands_clear_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with shown():
        sys.stdout.write(f"x{CLEAR}y\n")
        sys.stdout.write(CLEAR)
    assert capsys.readouterr().out == f"x\\x0d\\x1b[Ky\n{CLEAR}"


def test_what_the_terminals_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        Shown(stream).write("5 µs\ud800")
    assert (tmp_path / "out").read_bytes() == b"5 \\xb5s\\ud800"


def test_documents_up_to_the_depth_are_read(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_text("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert read_document(path, "The document", "Mend it.")
    path.write_text("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2))
    with pytest.raises(UsageError, match=f"more than {MAX_DEPTH} levels deep. Mend it."):
        read_document(path, "The document", "Mend it.")


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(path, 5, "Mend it.") == b"12345"
    with pytest.raises(UsageError, match=r"more than 4 bytes\. Mend it\."):
        read_regular(path, 4, "Mend it.")


def test_bounds_are_said_without_exponents() -> None:
    assert str(SECONDS) == "a number above 0 to 2,592,000"
    assert str(Number(0.5, 1e9)) == "a number from 0.5 to 1,000,000,000"


def test_a_reader_that_goes_away_is_no_fault() -> None:
    command = [sys.executable, "-m", "harness", "operators", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (EXIT_UNREAD, b"")


def test_a_parity_run_without_the_gpu_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu, "gpu_name", lambda: "nvidia-a100")
    (tmp_path / "kernel.py").write_text(HONEST)
    said = refused(["parity", "--operator", "rms_norm", str(tmp_path / "kernel.py")], capsys)
    assert "on nvidia-h200, this host's GPU is: nvidia-a100. Nothing was compared" in said


def test_tunables_are_listed_by_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operators"]) == 0
    first = capsys.readouterr().out.partition("softmax 1")[0]
    assert "tunables on triton: BLOCK (light), num_warps (light), " in first
    assert "tunables on numba: BLOCK (light)\n" in first
