"""One worker records a plan per correctness case: strided rows, shifted bases, odd sizes; few IRs among them."""

from __future__ import annotations

import os

import pytest
import torch

from harness.backends.triton.check import PlanForged, read_plan
from harness.backends.triton.planning import ALIGNMENT, lent_documents, record_one
from harness.backends.triton.targets import find_target
from harness.domain.codec import to_document
from harness.domain.vocabulary import Backend
from harness.evaluation.buffers import OutputBlock, lend_input
from harness.evaluation.ports import Lent
from harness.evaluation.sandbox import opener
from harness.operators import registry

TARGET = find_target("nvidia-h200")


def lent(dtype: torch.dtype, rows: int, cols: int, layout: str) -> list[Lent]:
    """The arrays of one RMSNorm call as the judge lends them; the caller closes them."""
    output = OutputBlock("out", (rows, cols), dtype, "offset" if layout == "offset" else "dense")
    return [lend_input("x", torch.zeros(rows, cols, dtype=dtype), layout),
            lend_input("weight", torch.zeros(cols, dtype=dtype), "offset" if layout == "offset" else "dense"),
            output.lent]


def documents(*given) -> list[dict]:
    arrays = lent(*given)
    try:
        return lent_documents(arrays)
    finally:
        for array in arrays:
            os.close(array.fd)


def test_documents_carry_strides_and_the_shift_from_an_aligned_address():
    x, weight, out = documents(torch.bfloat16, 4, 32, "strided")
    assert (x["shape"], x["offset"], x["dtype"]) == ([4, 32], 0, "bfloat16")
    assert x["strides"][0] > 32
    assert (weight["strides"], out["strides"]) == ([1], [32, 1])
    assert [item["offset"] for item in documents(torch.float32, 4, 32, "offset")] == [1, 1, 1]


def test_an_array_between_two_elements_has_no_document():
    odd = Lent("x", "input", "float32", (4,), (1,), 65_538, 100_000, -1)
    with pytest.raises(ValueError, match="4-byte"):
        lent_documents([odd])


@pytest.mark.sandbox
def test_cases_of_one_candidate_share_imports_and_irs():
    spec = registry.get("rms_norm")
    cases = [(rows, cols, layout) for cols in (1024, 4096, 1021, 4099, 1) for rows in (1, 7)
             for layout in ("dense", "strided", "offset") if not (layout == "strided" and rows == 1)]
    assert len(cases) == 25
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": TARGET.name})
    plans = {}
    try:
        worker.load(spec.baseline(Backend.TRITON))
        for rows, cols, layout in cases:
            given = documents(torch.bfloat16, rows, cols, layout)
            plan = record_one(worker, given, {"eps": 1e-6}, TARGET)
            assert plan.refusals == ()
            plans[rows, cols, layout] = plan
            (launch,) = [step["launch"] for step in plan.steps]
            x, weight, out, *_ = launch["args"]
            shift = 2 if layout == "offset" else 0
            assert [place["offset"] for place in (x, weight, out)] == [shift] * 3
            assert [buffer.offset for buffer in plan.buffers] == [shift] * 3
            aligned = {"x", "weight", "out"} if layout != "offset" else set()
            strides = {"x_stride": given[0]["strides"][0], "out_stride": cols, "cols": cols}
            assert set(launch["divisible"]) == aligned | {name for name, n in strides.items() if n % 16 == 0}
            assert launch["constants"].keys() - {"BLOCK"} == {name for name, n in strides.items() if n == 1}
    finally:
        worker.close()
    irs = {step["launch"]["ir"] for plan in plans.values() for step in plan.steps}
    assert len(irs) <= 10  # by alignment of base and strides and by ones, not by case
    assert plans[1, 1024, "dense"].steps[0]["launch"]["ir"] == plans[7, 4096, "dense"].steps[0]["launch"]["ir"]


@pytest.mark.sandbox
def test_a_plan_for_another_place_is_not_the_one_asked_for(record):
    from triton_candidates import ARGUMENTS, candidate

    plan = to_document(record(candidate("_copy[(1,)](x, out, 16, BLOCK=16)")))
    moved = [{**ARGUMENTS[0], "offset": 1}, *ARGUMENTS[1:]]
    with pytest.raises(PlanForged, match="'x'"):
        read_plan(plan, moved, "cuda:90")
    assert plan["buffers"][0]["align"] == ALIGNMENT


@pytest.mark.sandbox
def test_more_calls_than_invented_addresses(record):
    from triton_candidates import ARGUMENTS, candidate

    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": TARGET.name})
    try:
        worker.load(candidate("_copy[(1,)](x, out, 16, BLOCK=16)"))
        plans = {str(to_document(record_one(worker, ARGUMENTS, {}, TARGET))) for _ in range(260)}
    finally:
        worker.close()
    assert len(plans) == 1
