"""The door refuses hostile bytes with a sentence and never falls over."""

from __future__ import annotations

import ast

import pytest
from hostile_texts import HOSTILE
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.errors import SourceError
from harness.evaluation.source.intake import MAX_BYTES, MAX_DEPTH, parse, read_source
from harness.evaluation.source.normal_form import normal_digest


@pytest.mark.parametrize("text", HOSTILE, ids=[repr(text[:18]) for text in HOSTILE])
def test_hostile_text_ends_in_a_tree_or_a_sentence(text: str) -> None:
    try:
        tree = parse(text)
    except SourceError as error:
        assert error.text.endswith(".")
        assert error.code in ("source_nesting", "source_too_large", "syntax_error", "source_identifier")
    else:
        assert isinstance(tree, ast.Module)
        assert normal_digest(text).startswith("sha256:")


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_a_source_error(data: bytes) -> None:
    try:
        text = read_source(data)
    except SourceError as error:
        assert error.text
    else:
        assert text.encode("utf-8") == data


@settings(deadline=None)
@given(st.text(alphabet="()[]{}:=+-*/.,'\"\\\n #abcdeflmnorstx01@é", max_size=120))
def test_any_text_parses_or_gives_a_source_error(text: str) -> None:
    try:
        parse(text)
    except SourceError as error:
        assert error.text


@pytest.mark.parametrize(("data", "code", "line"), [
    (b"\xef\xbb\xbfx = 1\n", "source_encoding", 1),
    (b"x = 1\ny = '\xff'\n", "source_encoding", 2),
    (b"# -*- coding: latin-1 -*-\nx = 1\n", "source_encoding", 1),
    (b"\n# vim: set fileencoding=utf-7 :\nx = 1\n", "source_encoding", 2),
    (b"x = 1\r\n", "source_characters", 1),
    (b"x = 1  # calm\rimport os\n", "source_characters", 1),
    (b"if x:\n\ty = 1\n", "source_characters", 2),
    (b"x = 1\n\x00\n", "source_characters", 2),
    (b"x = 1\n\x0cy = 2\n", "source_characters", 2),
    ("x = 1\n# \u202e reversed\n".encode(), "source_characters", 2),
    ("x = 'a\u200bb'\n".encode(), "source_characters", 1),
    ("x = 'a\u3164b'\n".encode(), "source_characters", 1),
    ("x = 1\u2028y = 2\n".encode(), "source_characters", 1),
    (b"\n  \n", "source_empty", 1),
    (b"", "source_empty", 1),
])
def test_bytes_that_read_differently_from_how_they_run(data: bytes, code: str, line: int) -> None:
    with pytest.raises(SourceError) as caught:
        read_source(data)
    assert (caught.value.code, caught.value.line) == (code, line)


def test_size_is_capped_to_the_byte() -> None:
    assert read_source(b"#" * MAX_BYTES)
    with pytest.raises(SourceError, match="65,537 bytes"):
        read_source(b"#" * (MAX_BYTES + 1))


def test_text_outside_ascii_is_welcome_in_comments_and_strings() -> None:
    source = read_source('x = "Größe — ✓"  # naïve, 日本語\n'.encode())
    assert parse(source).body


@pytest.mark.parametrize("text", ["ｅｘｅｃ('1')\n", "х = 1\n", "x.ﬁeld = 1\n"])
def test_names_outside_ascii_are_refused(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse(text)
    assert caught.value.code == "source_identifier"


def test_depth_is_capped_below_what_recursive_walks_bear() -> None:
    chain = "x = (" + " +\n".join(["1"] * (MAX_DEPTH // 2)) + ")"
    assert parse(chain)
    with pytest.raises(SourceError) as caught:
        parse("x = (" + " +\n".join(["1"] * (MAX_DEPTH + 5)) + ")")
    assert caught.value.code == "source_nesting"


@pytest.mark.parametrize(("text", "line"), [("def f(:\n", 1), ("x = 1\nreturn x\n", 2), ("def f(a, a): pass\n", 1)])
def test_syntax_errors_name_their_line(text: str, line: int) -> None:
    with pytest.raises(SourceError) as caught:
        parse(text)
    assert (caught.value.code, caught.value.line) == ("syntax_error", line)
