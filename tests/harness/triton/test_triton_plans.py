"""What a recorded plan says: argument order, scalars as bytes, specialisation, fills, scratch, descriptors."""

from __future__ import annotations

import struct

import pytest
from triton_candidates import argument, candidate

from harness.domain.codec import check_schema, to_document
from harness.domain.digest import digest_bytes
from harness.domain.vocabulary import Backend
from harness.operators import registry

pytestmark = pytest.mark.sandbox

COPY = "_copy[(1,)](x, out, 16, BLOCK=16)"


def launches(plan):
    return [step["launch"] for step in plan.steps if "launch" in step]


def test_arguments_in_the_binary_s_order_with_two_implicit_pointers(record):
    (launch,) = launches(record(candidate("_scale[(4,)](x, out, 2.5, x.numel(), BLOCK=256)")))
    assert launch["function"] == "_scale"
    assert launch["grid"] == [4, 1, 1]
    assert launch["args"] == [
        {"buffer": 0, "offset": 0},
        {"buffer": 2, "offset": 0},
        {"scalar": "fp32", "hex": struct.pack("<f", 2.5).hex()},
        {"scalar": "i32", "hex": struct.pack("<i", 64 * 256).hex()},
        {"null": True},
        {"null": True},
    ]
    assert launch["constants"] == {"BLOCK": 256}
    assert launch["divisible"] == {"x_ptr": 16, "out_ptr": 16, "n": 16}


def test_every_scalar_kind_none_bool_one_and_a_nested_tuple(record):
    before = """
        @triton.jit
        def _many(out_ptr, none, flag, one, small, big, neg, f, h: tl.float16, b: tl.bfloat16, d: tl.float64, pair):
            value = small.to(tl.float32) + big.to(tl.float32) + neg.to(tl.float32) + f + h + b + d.to(tl.float32)
            tl.store(out_ptr, value + tl.load(pair[0]) + pair[1])
            if flag:
                tl.store(out_ptr + 1, 1.0)
        """
    body = "_many[(1,)](out, None, True, 1, 7, 1 << 40, -3, math.nan, 1.5, 1.0, 2.0, (x, 5))"
    (launch,) = launches(record(candidate(body, before)))
    kinds = [arg.get("scalar", "pointer") for arg in launch["args"]]
    assert kinds == [
        "pointer",
        "u1",
        "i32",
        "i64",
        "i32",
        "fp32",
        "fp16",
        "bf16",
        "fp64",
        "pointer",
        "i32",
        "pointer",
        "pointer",
    ]
    values = [arg.get("hex") for arg in launch["args"]]
    assert values[1:5] == ["01", "07000000", struct.pack("<q", 1 << 40).hex(), struct.pack("<i", -3).hex()]
    assert values[6:9] == ["003e", "803f", struct.pack("<d", 2.0).hex()]
    assert launch["constants"] == {"none": None, "one": 1}
    assert launch["divisible"]["pair.0"] == 16


def test_an_unaligned_base_loses_its_divisibility(record):
    given = [
        argument("x", "input", "float32", (64, 256), offset=1),
        argument("lens", "input", "int32", (64,)),
        argument("out", "output", "float32", (64, 256)),
    ]
    (launch,) = launches(record(candidate(COPY), given))
    assert launch["args"][0] == {"buffer": 0, "offset": 4}
    assert launch["divisible"] == {"out_ptr": 16, "n": 16}


def test_views_point_into_their_buffer(record):
    (launch,) = launches(record(candidate("_copy[(1,)](x[3, 4:], out[1], 16, BLOCK=16)")))
    assert launch["args"][:2] == [{"buffer": 0, "offset": (3 * 256 + 4) * 4}, {"buffer": 2, "offset": 1024}]


def test_fills_are_steps_in_order_with_the_shortest_pattern(record):
    body = f"out.zero_()\ntmp = torch.full((8,), 1.0, device=x.device)\n{COPY}\nout[2].fill_(-0.0)"
    plan = record(candidate(body))
    assert [next(iter(step)) for step in plan.steps] == ["fill", "fill", "launch", "fill"]
    assert plan.steps[0]["fill"] == {"buffer": 2, "offset": 0, "bytes": 64 * 256 * 4, "pattern": "00"}
    assert plan.steps[1]["fill"] == {"buffer": 3, "offset": 0, "bytes": 32, "pattern": "0000803f"}
    assert plan.steps[3]["fill"] == {"buffer": 2, "offset": 2048, "bytes": 1024, "pattern": "00000080"}
    assert [buffer.kind for buffer in plan.buffers] == ["input", "input", "output", "scratch"]


def test_an_empty_grid_launches_nothing(record):
    assert len(launches(record(candidate(f"_copy[(0,)](x, out, 16, BLOCK=16)\n{COPY}")))) == 1


def test_heuristics_on_shapes(record):
    before = """
        @triton.heuristics({"EVEN": lambda args: args["n"] % 16 == 0})
        @triton.jit
        def _even(x_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            if EVEN:
                tl.store(out_ptr + at, tl.load(x_ptr + at))
        """
    (launch,) = launches(record(candidate("_even[(1,)](x, out, 32, BLOCK=16)", before)))
    assert launch["constants"] == {"EVEN": True, "BLOCK": 16}


TMA = """
    @triton.jit
    def _tma(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
        desc = tl.make_tensor_descriptor(x_ptr, [rows, cols], [cols, 1], [BLOCK, BLOCK])
        tile = desc.load([0, 0])
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at[:, None] * 256 + at[None, :], tile)
    """


def test_device_descriptor_takes_global_scratch_from_the_candidate_s_allocator(record):
    body = """
        triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        _tma[(2, 3)](x, out, 64, 256, BLOCK=16)
        """
    plan = record(candidate(body, TMA))
    scratch = plan.buffers[-1]
    (launch,) = launches(plan)
    assert (scratch.kind, scratch.bytes) == ("global_scratch", 6 * 128)
    assert launch["args"][-2:] == [{"buffer": scratch.id, "offset": 0}, {"null": True}]


def test_host_descriptor_is_a_tensor_map_with_shape_and_strides(record):
    before = """
        @triton.jit
        def _host(desc, out_ptr, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            tl.store(out_ptr + at[:, None] * 256 + at[None, :], desc.load([0, 0]))
        """
    body = "_host[(1,)](TensorDescriptor.from_tensor(x[8:], [16, 32]), out, BLOCK=16)".replace("[16, 32]", "[16, 16]")
    (launch,) = launches(record(candidate(body, before)))
    tensormap = launch["args"][0]["tensormap"]
    assert (tensormap["buffer"], tensormap["offset"], tensormap["box"]) == (0, 8 * 1024, [16, 16])
    assert (tensormap["shape"], tensormap["strides"], tensormap["element_bytes"]) == ([56, 256], [256, 1], 4)
    assert [arg.get("scalar", "other") for arg in launch["args"]] == [
        "other",
        "i32",
        "i32",
        "i64",
        "i64",
        "other",
        "other",
        "other",
    ]


@pytest.mark.parametrize("name", registry.NAMES)
def test_baseline_of(record, name):
    from harness.backends.triton.planning import argument_documents

    spec = registry.get(name)
    workload = next(iter(spec.workloads.values()))
    point = workload.shapes[Backend.TRITON][0]
    given = argument_documents(spec.arguments, point.dims, workload.dtypes[Backend.TRITON])
    attributes = {a.name: a.default for a in spec.attributes} | dict(point.attributes)
    plan = record(spec.baseline(Backend.TRITON), given, attributes)
    check_schema(to_document(plan), "plan")
    assert (plan.refusals, plan.second_call) == ((), "same")
    assert [b.kind for b in plan.buffers[: len(given)]] == [a.kind for a in spec.arguments]
    assert {digest_bytes(text.encode()) for text in plan.irs.values()} == set(plan.irs)
    assert all("loc(" not in text for text in plan.irs.values())
