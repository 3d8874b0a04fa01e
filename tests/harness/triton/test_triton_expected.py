"""Accepted idioms against the plan they must give, step by step."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from triton_candidates import candidate

pytestmark = pytest.mark.sandbox

X, LENS, OUT = ({"buffer": number, "offset": 0} for number in range(3))
NULL = {"null": True}


def i32(value: int) -> dict[str, str]:
    return {"scalar": "i32", "hex": struct.pack("<i", value).hex()}


def i64(value: int) -> dict[str, str]:
    return {"scalar": "i64", "hex": struct.pack("<q", value).hex()}


def at(buffer: int, offset: int = 0) -> dict[str, int]:
    return {"buffer": buffer, "offset": offset}


def launch(*args: dict[str, Any], function: str = "_copy", grid: tuple[int, ...] = (1, 1, 1), **more: Any) -> dict:
    return {"function": function, "grid": list(grid), "args": [*args, NULL, NULL], "num_ctas": 1, "cooperative": False,
            "pdl": False, **more}


def fill(buffer: int, size: int, pattern: str = "00", offset: int = 0) -> dict[str, Any]:
    return {"buffer": buffer, "offset": offset, "bytes": size, "pattern": pattern}


KERNELS = """
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl


    @triton.jit
    def _tma(desc, out_ptr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at[:, None] * 256 + at[None, :], desc.load([0, 0]))


    @triton.jit
    def _nested(out_ptr, group, n):
        tl.store(out_ptr, tl.load(group[0]) + tl.load(group[1][0]).to(tl.float32) + group[1][1] + n)


    @triton.heuristics({"EVEN": lambda given: given["n"] % 16 == 0, "BLOCK": lambda given: 32})
    @triton.jit
    def _chosen(x_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n or EVEN))


    @triton.jit
    def _persistent(x_ptr, out_ptr, tiles, BLOCK: tl.constexpr):
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            at = tile * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + at, tl.load(x_ptr + at))


    @gluon.jit
    def _gluon(x_ptr, out_ptr, BLOCK: gl.constexpr):
        at = gl.arange(0, BLOCK, layout=gl.BlockedLayout([1], [32], [4], [0]))
        gl.store(out_ptr + at, gl.load(x_ptr + at))


    @triton.jit
    def _flags(out_ptr, none, yes, no, one, two, far):
        if none is None and yes:
            tl.store(out_ptr + two + far, 1.0 * one)
        if no:
            tl.store(out_ptr, 2.0)
    """
EXPECTED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "host descriptor over a slice": (
        "_tma[(4,)](TensorDescriptor.from_tensor(x[8:], [16, 16]), out, BLOCK=16)",
        [launch({"tensormap": {"buffer": 0, "offset": 8192, "box": [16, 16], "shape": [56, 256], "strides": [256, 1],
                               "element_bytes": 4, "padding": "zero", "fp4_padded": False}},
                i32(56), i32(256), i64(256), i64(1), OUT, function="_tma", grid=(4, 1, 1),
                divisible={"out_ptr": 16})]),
    "nested tuple": (
        "_nested[(1,)](out, (x[1], (lens, 48)), 7)",
        [launch(OUT, at(0, 1024), LENS, i32(48), i32(7), function="_nested",
                divisible={"out_ptr": 16, "group.0": 16, "group.1.0": 16, "group.1.1": 16}, constants={})]),
    "heuristics, true": (
        "_chosen[(1,)](x, out, 32)",
        [launch(X, OUT, i32(32), function="_chosen", constants={"EVEN": True, "BLOCK": 32})]),
    "heuristics, false": (
        "_chosen[(1,)](x, out, 33)",
        [launch(X, OUT, i32(33), function="_chosen", constants={"EVEN": False, "BLOCK": 32})]),
    "cooperative": ("_copy[(4,)](x, out, 64, BLOCK=16, launch_cooperative_grid=True)",
                    [launch(X, OUT, i32(64), grid=(4, 1, 1), cooperative=True)]),
    "dependent": ("_copy[(4,)](x, out, 64, BLOCK=16)\n_copy[(4,)](x, out, 64, BLOCK=16, launch_pdl=True)",
                  [launch(X, OUT, i32(64), grid=(4, 1, 1)), launch(X, OUT, i32(64), grid=(4, 1, 1), pdl=True)]),
    "cluster": ("_copy[(2, 3)](x, out, 64, BLOCK=1024, num_ctas=4)",
                [launch(X, OUT, i32(64), grid=(2, 3, 1), num_ctas=4)]),
    "register limit, warps and stages": (
        "_copy[(1,)](x, out, 64, BLOCK=1024, maxnreg=64, num_warps=8, num_stages=2)", [launch(X, OUT, i32(64))]),
    "gluon": ("_gluon[(1,)](x, out, BLOCK=128)", [launch(X, OUT, function="_gluon", kind="ttgir")]),
    "zeros": ("t = torch.zeros(16, 2, dtype=torch.int32, device=x.device)\n_copy[(1,)](x, t, 16, BLOCK=16)",
              [fill(3, 128), launch(X, at(3), i32(16))]),
    "zeros of another": ("t = torch.zeros_like(lens)\n_copy[(1,)](x, t, 16, BLOCK=16)",
                         [fill(3, 256), launch(X, at(3), i32(16))]),
    "zero_ on an output": ("out.zero_()\n_copy[(1,)](x, out, 16, BLOCK=16)",
                           [fill(2, 65536), launch(X, OUT, i32(16))]),
    "fill_ on a row": ("out[3].fill_(-1.5)\n_copy[(1,)](x, out, 16, BLOCK=16)",
                       [fill(2, 1024, "0000c0bf", 3072), launch(X, OUT, i32(16))]),
    "fill_ on a transposed whole": ("out.t().fill_(1)\n_copy[(1,)](x, out, 16, BLOCK=16)",
                                    [fill(2, 65536, "0000803f"), launch(X, OUT, i32(16))]),
    "full in half precision": (
        "t = torch.full((8,), -math.inf, dtype=torch.bfloat16, device=x.device)\n_copy[(1,)](t, out, 8, BLOCK=16)",
        [fill(3, 16, "80ff"), launch(at(3), OUT, i32(8))]),
    "one scratch with two views": (
        "t = torch.empty(2, 64, device=x.device)\n_copy[(1,)](x, t[1], 64, BLOCK=64)\n"
        "_copy[(1,)](t.view(-1)[64:], out, 64, BLOCK=64)",
        [launch(X, at(3, 256), i32(64)), launch(at(3, 256), OUT, i32(64))]),
    "views": ("_copy[(1,)](x.view(-1)[256:], out.reshape(16, 1024)[1], 64, BLOCK=64)",
              [launch(at(0, 1024), at(2, 4096), i32(64))]),
    "transposed, narrowed, split": (
        "_copy[(1,)](x.t().narrow(0, 4, 8), out.split(32)[1], 64, BLOCK=64)",
        [launch(at(0, 16), at(2, 32768), i32(64))]),
    "other bits": ("_copy[(1,)](x.view(torch.int32)[1], out.view(torch.int32)[2], 64, BLOCK=64)",
                   [launch(at(0, 1024), at(2, 2048), i32(64), signature={"x_ptr": "*i32", "out_ptr": "*i32", "n": "i32",
                                                                         "BLOCK": "constexpr"})]),
    "data of a tensor": ("_copy[(1,)](x.data, out.detach(), 64, BLOCK=64)", [launch(X, OUT, i32(64))]),
    "persistent grid": (
        "sms = torch.cuda.get_device_properties(x.device).multi_processor_count\n"
        "_persistent[(min(sms, 256),)](x, out, 256, BLOCK=64)",
        [launch(X, OUT, i32(256), function="_persistent", grid=(132, 1, 1))]),
    "grid function": (
        "_copy[lambda given: (triton.cdiv(given['n'], given['BLOCK']), 2)](x, out, 1000, BLOCK=64)",
        [launch(X, OUT, i32(1000), grid=(16, 2, 1))]),
    "none, flags, one": (
        "_flags[(1,)](out, None, True, False, 1, 16, 1 << 33)",
        [launch(OUT, {"scalar": "u1", "hex": "01"}, {"scalar": "u1", "hex": "00"}, i32(16), i64(1 << 33),
                function="_flags", constants={"none": None, "one": 1},
                divisible={"out_ptr": 16, "two": 16, "far": 16})]),
    "launched by run": ("_copy.run(x, out, 16, BLOCK=16, grid=(3,), warmup=False)",
                        [launch(X, OUT, i32(16), grid=(3, 1, 1))]),
    "warmed up first": ("_copy.warmup(x, out, 16, BLOCK=16, grid=(1,))\n_copy[(1,)](x, out, 16, BLOCK=16)",
                        [launch(X, OUT, i32(16))]),
    "a number beyond float32": (
        "_scale[(1,)](x, out, 1e300, 16, BLOCK=16)",
        [launch(X, OUT, {"scalar": "fp32", "hex": "0000807f"}, i32(16), function="_scale")]),
}
OPTIONS = {"register limit, warps and stages": {"maxnreg": 64, "num_warps": 8, "num_stages": 2},
           "cluster": {"num_ctas": 4}, "cooperative": {"launch_cooperative_grid": True}}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_plan_of(record, name):
    body, steps = EXPECTED[name]
    plan = record(candidate(body, KERNELS))
    assert (plan.refusals, plan.second_call) == ((), "same")
    assert [next(iter(step)) for step in plan.steps] == ["fill" if "pattern" in step else "launch" for step in steps]
    for recorded, expected in zip(plan.steps, steps, strict=True):
        (got,) = recorded.values()
        for key in expected.keys() - {"args"}:
            assert got[key] == expected[key], key
        for ours, theirs in zip(got.get("args", []), expected.get("args", []), strict=True):
            assert within(theirs, ours), (theirs, ours)
    for key, value in OPTIONS.get(name, {}).items():
        assert plan.steps[-1]["launch"]["options"][key] == value


def within(expected: dict[str, Any], got: dict[str, Any]) -> bool:
    """A tensor map may say more than is expected of it."""
    if "tensormap" in expected:
        return expected["tensormap"].items() <= got["tensormap"].items()
    return expected == got
