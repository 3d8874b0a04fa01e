"""Feasibility from PARAMS: the sums, the limits, tables over buckets. Nothing is compiled."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.triton.targets import find_target
from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend
from harness.evaluation.arithmetic import (
    accumulator_registers,
    check_feasibility,
    matmul_shared_bytes,
    values_for,
)
from harness.operators import registry
from harness.operators.base import Buckets, TileDemand

BUCKETS = Buckets("cols", (("short", 1024), ("long", None)))


def product_tile(params, dims, itemsize):
    m, n, k = params["BLOCK_M"], params["BLOCK_N"], params["BLOCK_K"]
    threads = 32 * params["num_warps"]
    shared = matmul_shared_bytes(m, n, k, itemsize, params["num_stages"])
    registers = accumulator_registers(m, n, threads) + 32
    return TileDemand(shared, registers, f"({m}x{k} + {k}x{n}) x {itemsize} x {params['num_stages']} stages")


SPEC = dataclasses.replace(registry.get("rms_norm"), tile=product_tile, buckets=BUCKETS)


def product(m: int, n: int, k: int, warps: int, stages: int):
    params = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "num_warps": warps, "num_stages": stages}
    return check_feasibility(SPEC, Backend.TRITON, params, {"cols": 4096}, "nvidia-h200")


def test_a_256_by_128_accumulator_over_512_threads_fits():
    assert accumulator_registers(256, 128, 512) == 64
    result = product(256, 128, 64, 16, 2)
    assert result.feasible
    assert (result.registers, result.threads) == (96, 512)
    assert "96 registers x 512 threads = 49,152 of 65,536" in result.text


def test_shared_memory_per_stage_is_two_operand_tiles():
    assert matmul_shared_bytes(128, 128, 64, 2) == (128 * 64 + 64 * 128) * 2
    result = product(256, 256, 128, 8, 4)
    assert (result.feasible, result.code, result.shared_bytes) == (False, "shared_infeasible", 524_288)
    assert "524,288" in result.text
    assert "232,448" in result.text


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        ((256, 256, 16, 4, 1), "registers_infeasible"),  # 512 + 32 registers a thread
        ((256, 128, 16, 32, 1), ""),  # 64 x 1024 = the whole file
        ((256, 256, 16, 32, 1), "registers_infeasible"),  # 96 x 1024 is over the file
        ((16, 16, 16, 64, 1), "threads_infeasible"),
        ((16, 16, 16, 3, 1), "params_unusable"),
    ],
)
def test_the_limit_that_is_broken_is_named(shape, code):
    result = product(*shape)
    assert (result.code, result.feasible) == (code, not code)


@pytest.mark.parametrize(
    "params", [{}, {"BLOCK_M": "wide"}, {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "num_warps": 0, "num_stages": 1}]
)
def test_unusable_values_are_a_sentence(params):
    result = check_feasibility(SPEC, Backend.TRITON, params, {"cols": 8})
    assert (result.feasible, result.code) == (False, "params_unusable")


def test_tables_take_the_bucket_of_the_shape():
    table = {"BLOCK": {"short": 256, "long": 2048}, "num_warps": 4}
    assert values_for(table, {"cols": 1024}, BUCKETS) == {"BLOCK": 256, "num_warps": 4}
    assert values_for(table, {"cols": 1025}, BUCKETS) == {"BLOCK": 2048, "num_warps": 4}


def test_nothing_is_allotted_on_a_cpu():
    assert check_feasibility(SPEC, Backend.NUMBA, {"BLOCK": 1 << 30}, {"cols": 8}).feasible


def test_an_unknown_target_is_a_usage_error():
    with pytest.raises(UsageError, match="nvidia-h200"):
        check_feasibility(SPEC, Backend.TRITON, {}, {}, "nvidia-h2000")


@given(
    st.sampled_from([16, 32, 64, 128, 256]),
    st.sampled_from([16, 32, 64, 128, 256]),
    st.sampled_from([16, 32, 64]),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.integers(1, 8),
)
def test_feasible_plans_fit_and_infeasible_ones_do_not(m, n, k, warps, stages):
    result = product(m, n, k, warps, stages)
    target = find_target("nvidia-h200")
    fits = (
        result.shared_bytes <= target.shared_optin
        and result.registers <= 255
        and result.registers * result.threads <= target.registers_per_sm
    )
    assert result.feasible == fits


@pytest.mark.parametrize("name", registry.NAMES)
def test_shipped_baselines_are_feasible_for_every_shape_and_target(name):
    spec = registry.get(name)
    for workload in spec.workloads.values():
        for point in workload.shapes[Backend.TRITON]:
            for target in ("nvidia-h200", "nvidia-h100", "nvidia-a100"):
                result = check_feasibility(spec, Backend.TRITON, {}, point.dims, target)
                assert result.feasible, result.text


def test_the_arithmetic_loads_no_compiler():
    code = (
        "import sys, harness.evaluation.arithmetic, harness.backends.triton.export, harness.cli.plan; "
        "print([m for m in ('torch', 'triton', 'numba', 'numpy') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
