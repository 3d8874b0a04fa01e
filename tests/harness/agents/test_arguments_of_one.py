"""Triton makes an integer argument that is 1 a constant of Python's: what the ladders write still compiles then.

The interpreter makes tensors of all arguments and never shows it; a kernel function that asks such an argument for a
method, or hands it to what wants a tensor, fails at sizes of 1 alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from harness.backends.triton.planning import record_one
from harness.backends.triton.targets import DEFAULT_TARGET, find_target
from harness.domain.vocabulary import Backend
from harness.operators import registry
from tests.harness.agents.climbing import calls, climb, smallest, strategies

ONE_WRONG = """
import triton
import triton.language as tl

PARAMS = {}


@triton.jit
def _double(x, out, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    inside = lanes.to(tl.int64) < n.to(tl.int64)
    tl.store(out + lanes, 2.0 * tl.load(x + lanes, mask=inside), mask=inside)


def run(x, out):
    _double[(1,)](x, out, x.shape[1], BLOCK=16)
"""


def compiled(files: list[dict[str, Any]]) -> list[list[dict[str, str]]]:
    """The faults of each file, from one process for all of them."""
    asked = json.dumps({"target": DEFAULT_TARGET, "files": files})
    done = subprocess.run([sys.executable, "-m", "tests.harness.agents.front_end"], input=asked, capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)["faults"]


def ours(size: int) -> dict[str, Any]:
    """One call of the kernel above."""
    return {"attributes": {}, "arguments": [
        {"name": name, "kind": kind, "dtype": "float32", "shape": [1, size], "strides": [size, 1], "offset": 0}
        for name, kind in (("x", "input"), ("out", "output"))]}


def test_an_argument_of_one_that_is_asked_for_a_method_is_found() -> None:
    """At a size of 1 as it is called, at others by the specialisations that the call did not need."""
    small, large, right = compiled([{"source": ONE_WRONG, "calls": [ours(1)]},
                                    {"source": ONE_WRONG, "calls": [ours(7)]},
                                    {"source": ONE_WRONG.replace("n.to(tl.int64)", "n"), "calls": [ours(1), ours(7)]}])
    assert {fault["how"] for fault in small} == {"as called", "n 1"} and "'to'" in small[0]["error"]
    assert {fault["how"] for fault in large} == {"n 1"}
    assert right == []


@pytest.mark.slow
def test_every_file_of_every_ladder_compiles_whatever_its_integer_arguments_are() -> None:
    paths, files = [], []
    for operator in registry.NAMES:
        found, applied = climb(operator)
        assert applied == strategies(operator), f"some strategy of {operator} never applied, or never can run"
        assert registry.get(operator).baseline(Backend.TRITON) in found
        asked = calls(operator)
        paths += [f"{operator}: {path}" for path in found.values()]
        files += [{"source": source, "calls": asked} for source in found]
    faults = {path: found for path, found in zip(paths, compiled(files), strict=True) if found}
    assert faults == {}


@pytest.mark.sandbox
@pytest.mark.parametrize("operator", ["decode_attention", "matmul_bias_gelu"])
def test_the_top_of_a_ladder_goes_the_evaluator_s_way_at_the_smallest_sizes(operator: str) -> None:
    """Recorded in the sandbox, derived from the file again and made a binary of."""
    from harness.backends.triton.compiler.compiled import compile_plans
    from harness.backends.triton.compiler.process import compiler_for
    from harness.backends.triton.derive import matching
    from harness.evaluation.sandbox import opener

    files, _ = climb(operator)
    source, target = max(files, key=lambda text: files[text].count(",")), find_target(DEFAULT_TARGET)
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": target.name})
    try:
        worker.load(source)
        plans = [record_one(worker, call["arguments"], call["attributes"], target) for call in smallest(operator)]
    finally:
        worker.close()
    assert [plan.refusals for plan in plans] == [()] * len(plans)
    matching.prove(opener("triton-derive"), source, plans, target, deadline_s=60.0)
    launched = [row for one in compile_plans(plans, compiler_for(target), deadline_s=60.0) for row in one.launches]
    assert launched and all(row.registers for row in launched)
