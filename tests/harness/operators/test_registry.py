"""Operators register only when complete, and their declarations load no array library."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.operators.completeness import IncompleteOperator, missing_parts

OPERATORS = registry.all_operators()


def test_the_shipped_operators_are_complete_and_in_order() -> None:
    assert [spec.name for spec in OPERATORS] == list(registry.NAMES)
    assert all(missing_parts(spec) == () for spec in OPERATORS)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=", ".join(registry.NAMES)):
        registry.get("rmsnorm")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cases": OPERATORS[0].cases[:5]}, "5 correctness cases"),
        ({"tile": None}, "tile formula"),
        ({"buckets": None}, "shape buckets"),
        ({"workloads": {}}, "no workload"),
        ({"wrong_kernels": ()}, "wrong numba kernel"),
        ({"tunables": ()}, "no tunable key for triton"),
        ({"tolerances": {}}, "no tolerance for float32"),
        ({"semantics": " "}, "semantics is empty"),
        ({"arguments": OPERATORS[0].inputs}, "no output argument"),
        ({"interpret_cases": ()}, "no interpreted case is marked for smoke"),
        ({"folder": OPERATORS[0].folder / "nowhere"}, "implementation.py is missing"),
    ],
)
def test_a_gap_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(IncompleteOperator) as refused:
        registry.register(replace(OPERATORS[0], **change))
    assert any(named in gap for gap in refused.value.missing)
    assert named in refused.value.text


def test_a_dropped_weight_is_noticed() -> None:
    spec = OPERATORS[0]
    workload = spec.workloads["llm"]
    shapes = {**workload.shapes, Backend.NUMBA: workload.shapes[Backend.NUMBA][:1]}
    gaps = missing_parts(replace(spec, workloads={"llm": replace(workload, shapes=shapes)}))
    assert gaps == ("weights of workload llm on numba do not sum to 1",)


def test_loading_every_operator_loads_no_array_library() -> None:
    code = (
        "import sys\nfrom harness.operators import registry\nregistry.all_operators()\n"
        "print([m for m in ('torch', 'numpy', 'numba', 'triton', 'openai', 'django') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_costs_and_tiles_follow_the_shapes(spec: Any) -> None:
    for backend in Backend:
        for point in spec.workloads["llm"].shapes[backend]:
            assert spec.bytes_per_call(point.dims, 4) > spec.bytes_per_call(point.dims, 2) > 0
            assert spec.flops_per_call(point.dims) > 0
            length = spec.reduction_length(point.dims)
            # 1 where an operator counts by itself what its sums lose, for its result is none of them
            assert length in (1, 2) if spec.elementwise_local else length in (1, *point.dims.values())
            small, large = (spec.tile(dict.fromkeys(("BLOCK", "BLOCK_N"), size), point.dims, 2) for size in (64, 256))
            assert large.registers_per_thread > small.registers_per_thread
            assert str(large.shared_bytes) in large.text


def test_rms_norm_moves_x_twice_and_the_weight_once() -> None:
    assert registry.get("rms_norm").bytes_per_call({"rows": 3, "cols": 5}, 2) == (2 * 15 + 5) * 2
