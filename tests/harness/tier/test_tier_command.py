"""``python -m harness tier``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.domain.vocabulary import Backend
from harness.operators import registry

BASELINE = registry.get("softmax").baseline(Backend.NUMBA)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    base, new = tmp_path / "base.py", tmp_path / "new.py"
    base.write_text(BASELINE, "utf-8")
    new.write_text(BASELINE.replace('"BLOCK": 16', '"BLOCK": 32').replace("np.empty", "np.zeros"), "utf-8")
    return str(base), str(new)


def test_text_names_tier_lines_and_what_was_guessed(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tier", *files]) == 0
    out = capsys.readouterr().out
    assert out.startswith("heavy  (softmax, numba)")
    assert "run changed" in out
    assert "BLOCK 16 to 32" in out


def test_json_carries_the_digests(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tier", files[0], files[0], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["tier"], document["why"], document["operator"]) == ("none", [], "softmax")
    assert document["base"] == document["new"]


@pytest.mark.parametrize(("text", "words"), [
    (b"x = 1\r\n", "carriage return"), (b"def f(:\n", "Mend the syntax"), (b"x = 1\n", "Give --backend"),
    (b"\xff", "UTF-8")])
def test_unusable_files_are_one_sentence_and_exit_2(files: tuple[str, str], text: bytes, words: str,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    Path(files[1]).write_bytes(text)
    assert main(["tier", *files]) == 2
    assert words in capsys.readouterr().err


def test_a_missing_file_is_one_sentence_and_exit_2(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tier", files[0], files[1] + ".not"]) == 2
    assert "No such file" in capsys.readouterr().err
