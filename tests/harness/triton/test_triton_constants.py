"""Compile-time constants survive a document."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.triton.recorder.constants import NotAConstant, decode, encode

PLAIN = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats() | st.text()


def same(one, other) -> bool:
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=12))
def test_numbers_text_and_tuples_come_back(value):
    assert same(decode(json.loads(json.dumps(encode(value))), {}), value)


@pytest.mark.parametrize("value", [1 << 64, -(1 << 70), "\ud800", {"a": 1}, {1}, object(), b"x", (1, [object()])])
def test_what_no_document_carries_is_refused(value):
    with pytest.raises(NotAConstant):
        encode(value)


@pytest.mark.parametrize("document", [{}, {"float": "inf", "x": 1}, {"function": "gone"}, {"make": 1},
                                      {"layout": "_layouts.nothing", "fields": {}},
                                      {"layout": "os.system", "fields": {}}])
def test_documents_that_encode_never_gives_are_refused(document):
    with pytest.raises(NotAConstant):
        decode(document, {})


def test_types_layouts_and_functions_come_back():
    import triton.language as tl
    from triton.experimental.gluon import language as gl
    from triton.runtime.jit import JITFunction

    def _helper(x):
        return x

    function = JITFunction(_helper)
    layout = gl.SliceLayout(1, gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))
    for value in (tl.float8e5, tl.bfloat16, layout):
        assert decode(json.loads(json.dumps(encode(value))), {}) == value
    assert encode(tl.constexpr((1, tl.int32))) == [1, {"dtype": "int32"}]
    assert decode(encode(function), {"_helper": function}) is function
