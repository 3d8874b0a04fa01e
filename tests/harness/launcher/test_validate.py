"""Forged plans are refused before anything runs; the original is accepted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from harness.backends.triton.launcher.arrays import span_bytes
from harness.backends.triton.launcher.program import read_plan
from harness.backends.triton.launcher.refused import PlanRefused
from harness.backends.triton.launcher.validate import check_parameters, check_plan

BINARY = {"symbol": "_k", "num_warps": 4, "num_ctas": 1, "shared_bytes": 0}
MAP = {"buffer": 0, "offset": 0, "box": [4, 8], "swizzle": 0, "element_bytes": 4, "element_type": 7,
       "fp4_padded": False, "shape": [8, 16], "strides": [16, 1], "padding": "zero", "tf32": False}
PLAN: dict[str, Any] = {
    "target": "cuda:90", "compiler": "triton 3.7.1", "second_call": "same",
    "buffers": [
        {"id": 0, "kind": "input", "bytes": 512, "align": 512, "shape": [8, 16], "strides": [16, 1],
         "dtype": "float32"},
        {"id": 1, "kind": "output", "bytes": 512, "align": 512, "shape": [8, 16], "strides": [16, 1],
         "dtype": "float32"},
        {"id": 2, "kind": "scratch", "bytes": 64, "align": 512, "shape": [16], "strides": [1], "dtype": "float32"},
    ],
    "steps": [
        {"fill": {"buffer": 2, "offset": 0, "bytes": 64, "pattern": "00"}},
        {"launch": {"function": "_k", "grid": [8, 1, 1], "num_ctas": 1, "cooperative": False, "pdl": False,
                    "args": [{"buffer": 0, "offset": 0}, {"buffer": 1, "offset": 64}, {"tensormap": MAP},
                             {"scalar": "i32", "hex": "10000000"}, {"null": True}]}},
    ],
}
LAUNCH = ("steps", 1, "launch")


def change(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def apply(plan: dict[str, Any]) -> None:
        target: Any = plan
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = to

    return apply


FORGERIES = {
    "argument behind its buffer": change(*LAUNCH, "args", 0, "offset", to=513),
    "argument before its buffer": change(*LAUNCH, "args", 1, "offset", to=-4),
    "buffer that does not exist": change(*LAUNCH, "args", 0, "buffer", to=3),
    "negative buffer": change(*LAUNCH, "args", 0, "buffer", to=-1),
    "output that claims to be scratch": change("buffers", 1, "kind", to="scratch"),
    "buffers out of order": change("buffers", 2, "id", to=1),
    "fill of an input": change("steps", 0, "fill", "buffer", to=0),
    "fill behind its buffer": change("steps", 0, "fill", "bytes", to=65),
    "fill with an eight-byte pattern": change("steps", 0, "fill", "pattern", to="00" * 8),
    "fill that is not whole patterns": change("steps", 0, "fill", "pattern", to="0000" * 2 + "00" * 3),
    "empty grid": change(*LAUNCH, "grid", to=[0, 1, 1]),
    "grid over the limit": change(*LAUNCH, "grid", to=[1, 65_536, 1]),
    "grid of two axes": change(*LAUNCH, "grid", to=[8, 1]),
    "other cluster than compiled": change(*LAUNCH, "num_ctas", to=2),
    "map behind its buffer": change(*LAUNCH, "args", 2, "tensormap", "shape", to=[9, 16]),
    "map with a huge box": change(*LAUNCH, "args", 2, "tensormap", "box", to=[4, 512]),
    "map of an unknown type": change(*LAUNCH, "args", 2, "tensormap", "element_type", to=99),
    "map with negative strides": change(*LAUNCH, "args", 2, "tensormap", "strides", to=[-16, 1]),
    "launch without a binary": lambda plan: plan["steps"].append(copy.deepcopy(plan["steps"][1])),
}


def test_original_is_accepted() -> None:
    check_plan(read_plan(PLAN), 2, [BINARY])


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forgery_is_refused(forgery: str) -> None:
    plan = copy.deepcopy(PLAN)
    FORGERIES[forgery](plan)
    with pytest.raises(PlanRefused):
        check_plan(read_plan(plan), 2, [BINARY])


@pytest.mark.parametrize("warps", [0, 33])
def test_impossible_blocks_are_refused(warps: int) -> None:
    with pytest.raises(PlanRefused):
        check_plan(read_plan(PLAN), 2, [{**BINARY, "num_warps": warps}])


def test_parameters_have_to_match_the_binary() -> None:
    launch = PLAN["steps"][1]["launch"]
    check_parameters(launch, [8, 8, 128, 4, 8])
    for declared in ([8, 8, 128, 4], [8, 8, 128, 8, 8], [8, 8, 128, 4, 8, 8]):
        with pytest.raises(PlanRefused, match="parameters"):
            check_parameters(launch, declared)


@pytest.mark.parametrize(("kind", "data"), [("fp8", "00"), ("i32", "0000"), ("i64", "00000000")])
def test_scalars_have_the_bytes_of_their_type(kind: str, data: str) -> None:
    launch = {"function": "_k", "args": [{"scalar": kind, "hex": data}]}
    with pytest.raises(PlanRefused):
        check_parameters(launch, [len(data) // 2])


def test_arrays_are_measured_by_strides_and_only_known_dtypes() -> None:
    array = {"shape": [3, 5], "strides": [8, 1], "dtype": "bfloat16"}
    assert span_bytes(array) == 2 * (2 * 8 + 4 + 1)
    with pytest.raises(PlanRefused, match="float8"):
        span_bytes({**array, "dtype": "float8"})
