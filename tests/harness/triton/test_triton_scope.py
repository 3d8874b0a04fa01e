"""The wider constructs that plans hold: clusters, cooperative launches, warp specialisation, Gluon, persistent TMA."""

from __future__ import annotations

import pytest
from triton_candidates import argument, candidate

from harness.backends.triton.compiler.compiled import compile_plans
from harness.backends.triton.compiler.process import CompilerProcess
from harness.backends.triton.targets import find_target

pytestmark = pytest.mark.sandbox

SQUARE = [
    argument(name, kind, "bfloat16", (1024, 1024))
    for name, kind in (("x", "input"), ("lens", "input"), ("out", "output"))
]
PERSISTENT = """
    @triton.jit
    def _matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
        a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
        b_desc = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
        c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
        columns = tl.cdiv(N, BN)
        for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0), warp_specialize=WS):
            m, n = tile // columns * BM, tile % columns * BN
            total = tl.zeros([BM, BN], tl.float32)
            for k in range(0, K, BK):
                total = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), total)
            c_desc.store([m, n], total.to(tl.bfloat16))


    def _allocate(size, align, stream):
        return torch.empty(size, dtype=torch.int8, device="cuda")
    """


@pytest.fixture(scope="module")
def compiler() -> CompilerProcess:
    return CompilerProcess(find_target("nvidia-h200"))


def compiled(record, compiler, body, before="", arguments=None):
    plan = record(candidate(body, before), arguments)
    assert plan.refusals == ()
    return plan, compile_plans([plan], compiler)[0].launches


@pytest.mark.parametrize("specialised", [False, True])
def test_persistent_product_through_device_descriptors(record, compiler, specialised):
    body = f"""
        triton.set_allocator(_allocate)
        sms = torch.cuda.get_device_properties(x.device).multi_processor_count
        _matmul[(min(sms, 64),)](x, lens, out, 1024, 1024, 1024, BM=128, BN=128, BK=64, WS={specialised}, num_stages=3,
                                 num_warps=4)
        """
    plan, (row,) = compiled(record, compiler, body, PERSISTENT, SQUARE)
    (launch,) = [step["launch"] for step in plan.steps]
    assert launch["options"]["num_warps"] == 4
    assert row.num_warps == (4 if not specialised else row.num_warps)
    assert row.num_warps >= 4
    assert row.shared_bytes >= 3 * (128 * 64 + 64 * 128) * 2
    assert plan.buffers[-1].kind == "global_scratch"


def test_clusters(record, compiler):
    plan, (row,) = compiled(record, compiler, "_copy[(4,)](x, out, 4096, BLOCK=1024, num_ctas=2)")
    assert plan.steps[0]["launch"]["num_ctas"] == 2
    assert row.num_ctas == 2


def test_cooperative_and_dependent_launches(record, compiler):
    body = (
        "_copy[(4,)](x, out, 4096, BLOCK=1024, launch_cooperative_grid=True)\n"
        "_copy[(4,)](x, out, 4096, BLOCK=1024, launch_pdl=True)"
    )
    plan, rows = compiled(record, compiler, body)
    kinds = [(step["launch"]["cooperative"], step["launch"]["pdl"]) for step in plan.steps]
    assert kinds == [(True, False), (False, True)]
    assert len(rows) == 2


def test_gluon_goes_through_ttgir(record, compiler):
    before = """
        from triton.experimental import gluon
        from triton.experimental.gluon import language as gl


        @gluon.jit
        def _gluon(x_ptr, out_ptr, BLOCK: gl.constexpr):
            layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
            at = gl.arange(0, BLOCK, layout=layout)
            gl.store(out_ptr + at, gl.load(x_ptr + at))
        """
    plan, (row,) = compiled(record, compiler, "_gluon[(1,)](x, out, BLOCK=128)", before)
    assert plan.steps[0]["launch"]["kind"] == "ttgir"
    assert row.registers > 0


def test_libdevice_is_linked(record, compiler):
    before = """
        from triton.language.extra import libdevice


        @triton.jit
        def _tanh(x_ptr, out_ptr, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            tl.store(out_ptr + at, libdevice.tanh(tl.load(x_ptr + at)))
        """
    _, (row,) = compiled(record, compiler, "_tanh[(1,)](x, out, BLOCK=128)", before)
    assert row.registers > 0


def test_atomics_into_zeroed_scratch(record, compiler):
    before = """
        @triton.jit
        def _sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), 0))
        """
    body = "total = torch.zeros(1, device=x.device)\n_sum[(16,)](x, total, 16384, BLOCK=1024)\n"
    plan, _ = compiled(record, compiler, body + "_copy[(1,)](total, out, 1, BLOCK=16)", before)
    assert [next(iter(step)) for step in plan.steps] == ["fill", "launch", "launch"]


def test_an_older_target_compiles_for_its_own_architecture():
    from harness.evaluation.sandbox import opener

    source = candidate("_copy[(4,)](x, out, 4096, BLOCK=1024)")
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": "nvidia-a100"})
    try:
        worker.load(source)
        answer = worker.ask({"op": "record", "arguments": SQUARE, "attributes": {}})
    finally:
        worker.close()
    from harness.backends.triton.check import read_plan

    plan = read_plan(answer["plan"], SQUARE, "cuda:80")
    (row,) = compile_plans([plan], CompilerProcess(find_target("nvidia-a100")))[0].launches
    assert row.registers > 0
