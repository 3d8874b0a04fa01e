"""The parity run: what Triton launches natively against the plan. No GPU here: the driver underneath does nothing."""

from __future__ import annotations

import copy
import json
import os
import re
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_triton_cubin import INFO, cubin
from triton_candidates import ARGUMENTS, argument, candidate

from harness import cli
from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.process import compiler_for
from harness.backends.triton.launcher.binary import Binary
from harness.backends.triton.native import parity as native
from harness.backends.triton.native import process
from harness.backends.triton.native.compare import differences, expected_launches, only_code_differs
from harness.backends.triton.targets import find_target
from harness.domain.codec import from_document
from harness.domain.errors import InfrastructureError
from harness.domain.plan import LaunchPlan
from harness.hardware import gpu
from harness.operators import registry
from tests.harness import escape

TARGET = find_target("nvidia-h200")
CUBIN = cubin({".text._k": b"code", ".nv.info._k": INFO})
BINARY = Binary("_k", CUBIN, num_warps=4, num_ctas=1, shared_bytes=1024)


def launch(args, **changes):
    return {"launch": {
        "function": "_k", "ir": "sha256:" + "0" * 64, "kind": "ttir", "options": {}, "signature": {}, "constants": {},
        "divisible": {}, "grid": [8, 1, 1], "num_ctas": 1, "cooperative": False, "pdl": False,
        "args": [*args, {"null": True}, {"null": True}], **changes}}


def plan_of(*steps) -> LaunchPlan:
    kinds = ("input", "output", "scratch", "scratch")
    buffers = [{"id": number, "kind": kind, "bytes": 64, "align": 512, "shape": [16], "strides": [1],
                "dtype": "float32"} for number, kind in enumerate(kinds)]
    return from_document({"version": 1, "target": "cuda:90", "compiler": "triton 3.7.1", "second_call": "same",
                          "buffers": buffers, "steps": list(steps), "refusals": []}, LaunchPlan)


PLAN = plan_of(
    {"fill": {"buffer": 3, "offset": 0, "bytes": 64, "pattern": "00"}},
    launch([{"buffer": 0, "offset": 4}, {"buffer": 3, "offset": 0}, {"scalar": "i32", "hex": "10000000"}]),
    launch([{"tensormap": {"buffer": 3, "offset": 8, "box": [16], "shape": [16], "strides": [1]}},
            {"buffer": 2, "offset": 0}, {"buffer": 1, "offset": 0}], pdl=True),
)
EXPECTED = expected_launches(PLAN, [BINARY, BINARY])


def test_scratch_is_numbered_by_first_use_and_the_implicit_pointers_are_left_out():
    first, second = EXPECTED
    assert first["args"] == [{"argument": 0, "offset": 4}, {"scratch": 0, "offset": 0},
                             {"scalar": "i32", "hex": "10000000"}]
    assert second["args"] == [{"tensormap": {"scratch": 0, "offset": 8, "box": [16], "shape": [16], "strides": [1]}},
                              {"scratch": 1, "offset": 0}, {"argument": 1, "offset": 0}]
    assert differences(EXPECTED, copy.deepcopy(EXPECTED), "A call") == []


@pytest.mark.parametrize(("field", "value", "words"), [
    ("function", "_other", "the kernel function is _other natively, _k by the plan"),
    ("grid", [9, 1, 1], "the grid is [9, 1, 1] natively, [8, 1, 1] by the plan"),
    ("num_warps", 8, "the number of warps is 8"), ("num_ctas", 2, "CTAs per cluster is 2"),
    ("shared_bytes", 0, "dynamic shared memory in bytes is 0"), ("cooperative", True, "the cooperative launch is True"),
    ("pdl", True, "the dependent launch is True"), ("global_scratch", True, "global scratch is True"),
    ("code", "sha256:1", "the machine code is sha256:1"),
])
def test_each_field_that_differs_is_told(field, value, words):
    seen = copy.deepcopy(EXPECTED)
    seen[0][field] = value
    (text,) = differences(EXPECTED, seen, "The first call")
    assert text.startswith("The first call, launch 1 ('_k'): ")
    assert words in text
    assert only_code_differs(EXPECTED, seen) == (field == "code")


def test_arguments_and_launches_that_differ_are_told():
    seen = copy.deepcopy(EXPECTED)
    seen[1]["args"][1] = {"scratch": 0, "offset": 0}
    (text,) = differences(EXPECTED, seen, "A call")
    assert "argument 2 is {'scratch': 0, 'offset': 0} natively" in text
    seen[1]["args"].pop()
    assert "2 arguments natively, 3 by the plan" in differences(EXPECTED, seen, "A call")[0]
    assert "launches 1 kernels natively (_k), 2 by the plan" in differences(EXPECTED, seen[:1], "A call")[0]
    assert "launches 0 kernels natively (nothing)" in differences(EXPECTED, [], "A call")[0]
    assert not only_code_differs(EXPECTED, seen)
    assert not only_code_differs(EXPECTED, seen[:1])


@pytest.mark.parametrize("answer", [{}, {"calls": []}, {"calls": [[], 3]}, {"calls": [[1], []]}, {"calls": "x"}])
def test_answers_that_hold_no_calls(answer):
    result = native.judge(answer, PLAN, [BINARY, BINARY], TARGET)
    assert not result.same
    assert result.differences


@pytest.mark.parametrize("value", [True, "1", float("nan"), -1.0, 1e300, None, [2]])
def test_times_that_are_no_times_are_left_out(value):
    answer = {"calls": [EXPECTED, EXPECTED], "host_us": value, "first_call_s": 0.5}
    result = native.judge(answer, PLAN, [BINARY, BINARY], TARGET)
    assert (result.same, result.host_us, result.first_call_s) == (True, None, 0.5)


def test_another_compiler_is_a_difference_and_another_gpu_no_comparison(monkeypatch):
    answer = {"calls": [EXPECTED, EXPECTED], "compiler": "triton 3.6.0", "device": "NVIDIA H200"}
    assert native.judge(answer, PLAN, [BINARY, BINARY], TARGET).differences == (
        "The native compiler is triton 3.6.0, the plan was recorded with triton 3.7.1.",)
    del answer["compiler"]
    monkeypatch.setattr(native, "ask_native", lambda *_, **__: answer)
    assert native.compare_native("", [], {}, PLAN, [BINARY, BINARY], TARGET).same
    answer["device"] = "NVIDIA A100-SXM4-80GB"
    with pytest.raises(InfrastructureError, match="A100"):
        native.compare_native("", [], {}, PLAN, [BINARY, BINARY], TARGET)


# Native runs on a driver that launches nothing: everything else is Triton's own.

TUPLES = """
    @triton.jit
    def _many(out_ptr, none, flag, one, small, big, f, h: tl.float16, b: tl.bfloat16, d: tl.float64, pair):
        value = small.to(tl.float32) + big.to(tl.float32) + f + h + b + d.to(tl.float32)
        tl.store(out_ptr, value + tl.load(pair[0]) + pair[1])
        if flag:
            tl.store(out_ptr + 1, 1.0)
    """
TMA = """
    @triton.jit
    def _tma(desc, out_ptr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at[:, None] * 256 + at[None, :], desc.load([0, 0]))


    @triton.jit
    def _device(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
        tile = tl.make_tensor_descriptor(x_ptr, [rows, cols], [cols, 1], [BLOCK, BLOCK]).load([0, 0])
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at[:, None] * 256 + at[None, :], tile)
    """
SAME = {
    "plain": ("_copy[(16,)](x, out, x.numel(), BLOCK=1024, num_warps=8)", ""),
    "views and a shifted base": ("_copy[(1,)](x.view(-1)[3:], out[5], 200, BLOCK=256)", ""),
    "scratch, two views of it": (
        "a = torch.empty(512, device=x.device)\nb = torch.zeros(64, device=x.device)\n"
        "_copy[(1,)](x, b, 64, BLOCK=64)\n_copy[(1,)](x, a[256:], 256, BLOCK=256)\n_copy[(1,)](a, out, 256, BLOCK=256)",
        ""),
    "an empty grid": ("_copy[(0,)](x, out, 16, BLOCK=16)\n_copy[(1,)](x, out, 16, BLOCK=16)", ""),
    "every scalar and a tuple": ("_many[(1,)](out, None, True, 1, 7, 1 << 40, 1e300, 1.5, 1.0, 2.0, (x, 5))", TUPLES),
    "host descriptor": ("_tma[(1,)](TensorDescriptor.from_tensor(x[8:], [16, 16]), out, BLOCK=16)", TMA),
    "device descriptor": (
        "triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=x.device))\n"
        "_device[(2,)](x, out, 64, 256, BLOCK=16)", TMA),
    "clusters and dependent launch": (
        "_copy[(4,)](x, out, 4096, BLOCK=1024, num_ctas=2)\n"
        "_copy[(4,)](x, out, 4096, BLOCK=1024, num_ctas=2, launch_pdl=True)", ""),
}
SHIFTED = [argument("x", "input", "float32", (64, 256), 1), argument("lens", "input", "int32", (64,)),
           argument("out", "output", "float32", (64, 256), 1)]


def lent(documents):
    """Memory files for argument documents; the caller closes them."""
    from harness.evaluation.ports import Lent

    result = []
    for item in documents:
        count = 1
        for size in item["shape"]:
            count *= size
        start = 65_536 + item["offset"] * 4
        fd = os.memfd_create(item["name"])
        os.ftruncate(fd, start + count * 4 + 65_536)
        result.append(Lent(item["name"], item["kind"], item["dtype"], tuple(item["shape"]), tuple(item["strides"]),
                           start, start + count * 4 + 65_536, fd))
    return result


@pytest.fixture
def natively(monkeypatch, tmp_path) -> Callable[..., dict]:
    """Runs a request in this process on the driver that launches nothing."""
    import sys

    import triton
    from native_driver import CpuDriver
    from triton import knobs

    from harness.backends.triton.native.session import run_native

    def ask(request, fds, *, deadline_s):
        driver = CpuDriver()
        monkeypatch.setattr(triton.runtime.driver, "_active", driver)
        answer = run_native({**request, "calls": 3}, driver, "cpu", lambda: None)
        return json.loads(json.dumps({**answer, "walls": ["none"]}))

    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    monkeypatch.setattr(knobs.compilation, "disable_line_info", True)
    monkeypatch.setitem(sys.modules, "candidate", None)
    monkeypatch.setattr(native, "ask_native", ask)
    monkeypatch.setattr(native, "COMPILED_AGAIN", 1)
    return ask


def compared(record, source: str, given=SHIFTED):
    plan = record(source, given)
    assert plan.refusals == ()
    binaries = binaries_of([plan], compiler_for(TARGET))[0]
    files = lent(given)
    try:
        return native.compare_native(source, files, {}, plan, binaries, TARGET)
    finally:
        for item in files:
            os.close(item.fd)


@pytest.mark.sandbox
@pytest.mark.parametrize("name", SAME)
def test_what_is_launched_natively_is_what_the_plan_says(record, natively, name):
    result = compared(record, candidate(*SAME[name]), ARGUMENTS if "descriptor" in name else SHIFTED)
    assert result.differences == ()
    assert result.same
    assert result.host_us > 0
    assert result.first_call_s > 0


OTHER = {
    "another grid": ("_copy[(4 if RECORDED(x) else 8,)](x, out, 4096, BLOCK=1024)", "the grid"),
    "another kernel": ("if RECORDED(x):\n    _copy[(4,)](x, out, 4096, BLOCK=1024)\nelse:\n"
                       "    _scale[(4,)](x, out, 1.0, 4096, BLOCK=1024)", "the kernel function"),
    "another number": ("_copy[(4,)](x, out, 4096 if RECORDED(x) else 4095, BLOCK=1024)", "argument 3"),
    "another constant": ("_copy[(4,)](x, out, 4096, BLOCK=1024 if RECORDED(x) else 512)", "the machine code"),
    "another place": ("_copy[(1,)](x if RECORDED(x) else x[2:], out, 16, BLOCK=16)", "argument 1"),
    "nothing": ("if RECORDED(x):\n    _copy[(1,)](x, out, 16, BLOCK=16)", "launches 0 kernels"),
    "one more": ("_copy[(1,)](x, out, 16, BLOCK=16)\nif not RECORDED(x):\n    _copy[(1,)](x, out, 16, BLOCK=16)",
                 "launches 2 kernels"),
    "another number of warps": ("_copy[(1,)](x, out, 16, BLOCK=16, num_warps=4 if RECORDED(x) else 8)",
                                "the number of warps"),
}


@pytest.mark.sandbox
@pytest.mark.parametrize("name", OTHER)
def test_host_code_that_acts_differently_when_recorded_is_seen(record, natively, name):
    body, words = OTHER[name]
    source = candidate(body.replace("RECORDED(x)", "('StandIn' in type(x).__name__)"))
    result = compared(record, source)
    assert not result.same
    assert any(words in text for text in result.differences), result.differences


@pytest.mark.sandbox
def test_code_that_compiles_in_several_ways_is_compiled_again(record, natively, monkeypatch):
    source = candidate("_copy[(4,)](x, out, 4096, BLOCK=1024)")
    plan = record(source, SHIFTED)
    binaries = binaries_of([plan], compiler_for(TARGET))[0]
    answer = {"calls": [expected_launches(plan, binaries)] * 2}
    (odd,) = binaries_of([record(candidate("_copy[(4,)](x, out, 4096, BLOCK=512)"), SHIFTED)],
                         compiler_for(TARGET))[0]
    assert native.judge(answer, plan, [odd], TARGET).same  # the plan's own code turns up at the second attempt
    answer["calls"][0][0]["code"] = "sha256:other"
    assert not native.judge(answer, plan, binaries, TARGET).same


@pytest.mark.sandbox
def test_the_command(natively, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gpu, "gpu_name", lambda: TARGET.name)
    file = tmp_path / "kernel.py"
    source = registry.get("rms_norm").baseline("triton")
    file.write_text(source)
    shape = registry.get("rms_norm").workloads["llm"].shapes["triton"][0].label
    words = ["parity", "--operator", "rms_norm", "--shape", shape, str(file)]
    assert cli.main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["same"] for row in document["shapes"]] == [True]
    assert cli.main(words) == 0
    assert "the same" in capsys.readouterr().out
    grid = "[(rows if 'StandIn' in type(x).__name__ else rows - 1,)]"
    file.write_text(escape.PYTHON + source.replace("[(rows,)]", grid))
    assert cli.main(words) == 1
    assert "the grid is" in capsys.readouterr().out
    file.write_text(source.replace("rows, cols = x.shape", "rows, cols = x.sum().item()"))
    assert cli.main(words) == 1
    assert cli.main(["parity", "--operator", "rms_norm", "--shape", "none", str(file)]) == 2
    assert cli.main(["parity", "--operator", "rms_norm", "--workload", "none", str(file)]) == 2


# The process around it.

ENDS = {
    "crash": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
    "late": ("import time; time.sleep(60)", "did not end"),
    "no answer": ("raise SystemExit(0)", "left no answer"),
    "garbled": ("print('{{{')", "left no answer"),
    "deep": ("print('[' * 100000)", "left no answer"),
    "a list": ("print('[1]')", "left no answer"),
    "raises": ("print('{\"fault\": {\"text\": \"run() raises\"}}')", "run() raises"),
    "garbled fault": ("print('{\"fault\": 3}')", "3"),
    "own words": ("import sys; sys.exit('the last words')", "the last words"),
}


@pytest.mark.parametrize("name", ENDS)
def test_each_end_of_a_native_process_has_a_sentence(monkeypatch, tmp_path, name):
    script, words = ENDS[name]
    child = tmp_path / "child.py"
    child.write_text(script)
    monkeypatch.setattr(process, "CHILD", child)
    with pytest.raises(process.NativeFailed, match=re.escape(words)):
        process.ask_native({}, [], deadline_s=1.0 if name == "late" else 20.0)


def test_a_host_that_cannot_do_it_is_no_fault_of_the_candidate(monkeypatch, tmp_path):
    child = tmp_path / "child.py"
    child.write_text("print('{\"host\": \"no GPU\"}')")
    monkeypatch.setattr(process, "CHILD", child)
    with pytest.raises(InfrastructureError, match="no GPU"):
        process.ask_native({}, [], deadline_s=20.0)


def test_nothing_stays_behind(monkeypatch, tmp_path):
    note = tmp_path / "pid"
    child = tmp_path / "child.py"
    child.write_text(textwrap.dedent(f"""
        import pathlib, subprocess
        started = subprocess.Popen(["sleep", "60"])
        pathlib.Path({str(note)!r}).write_text(str(started.pid))
        print("{{}}")
        """))
    monkeypatch.setattr(process, "CHILD", child)
    assert process.ask_native({}, [], deadline_s=20.0) == {}
    until = time.monotonic() + 5
    path = Path("/proc", note.read_text(), "stat")
    while path.exists() and path.read_text().rpartition(")")[2].split()[0] not in "ZX" and time.monotonic() < until:
        os.sched_yield()
    assert not path.exists() or path.read_text().rpartition(")")[2].split()[0] in "ZX"
