"""Launches that contradict themselves are forged; what the recorder writes never is."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.triton.check_launch import Contradiction, check_launch

GOOD = {
    "function": "_k", "options": {"num_ctas": 1, "launch_cooperative_grid": False, "launch_pdl": True},
    "num_ctas": 1, "cooperative": False, "pdl": True,
    "signature": {"x": "*fp32", "pair": ["*i32", ["i32", "constexpr"]], "BLOCK": "constexpr", "eps": "fp32",
                  "desc": "tensordesc<fp32[16, 16]>", "flag": "u1"},
    "divisible": {"x": 16, "pair.0": 16, "pair.1.0": 16},
    "args": [
        {"buffer": 0, "offset": 1024}, {"buffer": 1, "offset": 0}, {"scalar": "i32", "hex": "30000000"},
        {"scalar": "fp32", "hex": "0000803f"}, {"tensormap": {"shape": [4, 4]}},
        {"scalar": "i32", "hex": "04000000"}, {"scalar": "i32", "hex": "04000000"},
        {"scalar": "i64", "hex": "0400000000000000"}, {"scalar": "i64", "hex": "0100000000000000"},
        {"scalar": "u1", "hex": "01"}, {"null": True}, {"null": True},
    ],
}


def changed(path, value):
    launch = copy.deepcopy(GOOD)
    *way, last = path
    place = launch
    for step in way:
        place = place[step]
    place[last] = value
    return launch


def test_an_honest_launch_passes():
    check_launch(GOOD)
    check_launch(changed(["args", 0], {"null": True}))
    check_launch(changed(["args", -2], {"buffer": 3, "offset": 0}))


@pytest.mark.parametrize(("path", "value", "words"), [
    (["args", 0, "offset"], 1028, "'x' of '_k' was compiled as a multiple of 16"),
    (["args", 2, "hex"], "31000000", "'pair.1.0' of '_k' was compiled as a multiple"),
    (["args", 2, "hex"], "zz000000", "no number"),
    (["args", 2, "hex"], "30", "is no i32"),
    (["args", 2, "scalar"], "i64", "is no i32"),
    (["args", 3], {"buffer": 0, "offset": 0}, "'eps' of '_k' is no fp32"),
    (["args", 0], {"scalar": "i64", "hex": "00" * 8}, "'x' of '_k' is no *fp32"),
    (["args", 4], {"buffer": 0, "offset": 0}, "arguments"),
    (["args", -1], {"buffer": 0, "offset": 0}, "implicit"),
    (["args", -2], {"scalar": "i32", "hex": "00000000"}, "implicit"),
    (["divisible", "BLOCK"], 16, "promises something about BLOCK"),
    (["divisible", "x"], 0, "multiple of 0"),
    (["divisible", "x"], "many", "multiple of many"),
    (["num_ctas"], 2, "num_ctas"), (["cooperative"], True, "launch_cooperative_grid"), (["pdl"], False, "launch_pdl"),
    (["signature"], {}, "its signature needs 2"),
    (["signature", "flag"], ["u1", "u1"], "arguments"),
    (["signature", "flag"], "unheard", "is no unheard"),
])
def test_contradictions(path, value, words):
    with pytest.raises(Contradiction, match=words.replace("*", r"\*")):
        check_launch(changed(path, value))


@given(st.recursive(st.sampled_from(["*fp32", "i32", "constexpr", "tensordesc<x>", 7, None]),
                    lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_any_signature_is_read_or_refused(kind):
    try:
        check_launch(changed(["signature", "flag"], kind))
    except Contradiction:
        pass
