"""Registers, shared memory and spills without a GPU; IR that a plan may not hold."""

from __future__ import annotations

import dataclasses

import pytest
from triton_candidates import argument, candidate

from harness.backends.triton.check import PlanForged, read_plan
from harness.backends.triton.compiler.compiled import CompileFailed, compile_plans
from harness.backends.triton.compiler.process import CompilerProcess, KernelSource
from harness.backends.triton.limits import exceeded
from harness.backends.triton.targets import find_target, occupancy
from harness.domain.codec import to_document
from harness.domain.goal import Limits
from harness.evaluation.arithmetic import matmul_shared_bytes
from harness.evaluation.ports import CandidateFault

TARGET = find_target("nvidia-h200")
MATMUL = """
    @triton.jit
    def _matmul(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        m, n, kk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
        total = tl.zeros([BM, BN], tl.float32)
        for start in range(0, k, BK):
            left = tl.load(a + m[:, None] * 4096 + start + kk[None, :])
            right = tl.load(b + (start + kk)[:, None] * 4096 + n[None, :])
            total = tl.dot(left, right, total)
        tl.store(c + m[:, None] * 4096 + n[None, :], total.to(tl.bfloat16))
    """
SQUARE = [
    argument(name, kind, "bfloat16", (4096, 4096))
    for name, kind in (("x", "input"), ("lens", "input"), ("out", "output"))
]


def matmul(bm: int, bn: int, bk: int, **options: int) -> str:
    extra = "".join(f", {key}={value}" for key, value in options.items())
    return candidate(f"_matmul[(1,)](x, lens, out, x.shape[1], BM={bm}, BN={bn}, BK={bk}{extra})", MATMUL)


@pytest.fixture(scope="module")
def compiler() -> CompilerProcess:
    return CompilerProcess(TARGET)


@pytest.mark.sandbox
def test_shared_memory_of_a_product_is_the_formula(record, compiler):
    plan = record(matmul(128, 128, 64, num_stages=3, num_warps=8), SQUARE)
    (row,) = compile_plans([plan], compiler)[0].launches
    assert row.shared_bytes == matmul_shared_bytes(128, 128, 64, 2, 3)
    assert (row.num_warps, row.spill_bytes, row.stack_bytes) == (8, 0, 0)
    assert 0 < row.registers <= 255
    again = CompilerProcess(TARGET)
    assert compile_plans([plan], again)[0].launches == (row,)


@pytest.mark.sandbox
def test_spills_are_counted(record, compiler):
    plan = record(matmul(128, 128, 32, num_stages=1, num_warps=4, maxnreg=96), SQUARE)
    (row,) = compile_plans([plan], compiler)[0].launches
    assert row.registers <= 96
    assert row.spill_bytes > 0
    impossible, forbidden = exceeded([row], [plan], Limits(), TARGET)
    assert impossible == []
    assert [reason.code for reason in forbidden] == ["spills_over_limit"]
    assert f"{row.spill_bytes:,} bytes" in forbidden[0].text


@pytest.mark.sandbox
def test_too_few_registers_for_an_instruction_are_infeasible_in_the_assembler_s_words(record, compiler):
    plan = record(matmul(128, 128, 32, num_stages=1, num_warps=4, maxnreg=64), SQUARE)
    with pytest.raises(CompileFailed) as caught:
        compile_plans([plan], compiler)
    assert caught.value.problem == "infeasible"
    assert "Insufficient registers (64)" in caught.value.text
    assert "/" not in caught.value.text.replace("\n", "")


@pytest.mark.sandbox
def test_half_a_megabyte_of_shared_memory_is_infeasible_with_numbers(record):
    with pytest.raises(CandidateFault) as caught:
        record(matmul(256, 256, 128, num_stages=4, num_warps=8), SQUARE)
    fault = caught.value.fault
    assert (str(fault.outcome), fault.code) == ("resource_infeasible", "out_of_resources")
    assert str(matmul_shared_bytes(256, 256, 128, 2, 4)) in fault.text
    assert str(TARGET.shared_optin) in fault.text


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("tl.device_print('x', total)", "print"),
        ("tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [kk], tl.int32, True, 1)", "assembly"),
        ("tl.store((k.to(tl.int64) + 4096).to(tl.pointer_type(tl.float32)), 1.0)", "pointer made from an integer"),
    ],
)
def test_operations_that_plans_may_not_hold(record, compiler, line, word):
    before = MATMUL.replace("        tl.store(c", f"        value = {line}\n        tl.store(c")
    if "asm" in line:
        before = before.replace("        tl.store(c + m", "        m += tl.sum(value)\n        tl.store(c + m")
    plan = record(candidate("_matmul[(1,)](x, lens, out, x.shape[1], BM=16, BN=16, BK=16)", before), SQUARE)
    with pytest.raises(CompileFailed) as caught:
        compile_plans([plan], compiler)
    assert caught.value.problem == "refused"
    assert word in caught.value.text


FORGED = {
    "a spelling in escapes": '"tt.elementwise_inline\\5Fasm"(%0) <{asm_string = "exit;", constraints = "=r,r", '
    "packed_element = 1 : i32, pure = false}> : (i32) -> i32",
    "machine level operations": 'llvm.inline_asm has_side_effects "exit;", "" : () -> ()',
    "a foreign library": 'tt.extern_elementwise %0 {libname = "mine", libpath = "/tmp/mine.bc", pure = true, '
    'symbol = "f"} : (i32) -> i32',
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_ir_is_refused(compiler, name):
    operation = FORGED[name]
    result = "" if operation.startswith("llvm") else "%1 = "
    text = (
        "module {\n  tt.func public @k(%arg0: !tt.ptr<i32>) {\n    %0 = tt.get_program_id x : i32\n"
        f"    {result}{operation}\n    tt.return\n  }}\n}}\n"
    )
    (facts,) = compiler.compile([KernelSource(text, "ttir", {"num_warps": 4})])
    assert facts.problem == "refused", facts


@pytest.mark.parametrize("text", ["", "module {", "not ir at all", "module {\n tt.func @k() { tt.nothing }\n}"])
def test_text_that_is_no_ir_is_an_error_not_a_crash_of_the_evaluator(compiler, text):
    (facts,) = compiler.compile([KernelSource(text, "ttir", {"num_warps": 4})])
    assert facts.problem in ("error", "crash")
    assert facts.text


@pytest.mark.sandbox
def test_a_plan_whose_ir_was_swapped_is_refused(record, compiler):
    plan = record(matmul(16, 16, 16), SQUARE)
    swapped = dataclasses.replace(plan, irs={key: text + "\n" for key, text in plan.irs.items()})
    with pytest.raises(CompileFailed):
        compile_plans([swapped], compiler)


@pytest.mark.sandbox
def test_forged_plans_are_recognised(record):
    document = to_document(record(matmul(16, 16, 16), SQUARE))
    assert read_plan(document, SQUARE, "cuda:90").target == "cuda:90"

    def forged(**changes):
        return {**document, **changes}

    for wrong in (
        forged(target="cuda:80"),
        forged(steps=document["steps"] * 300),
        forged(buffers=document["buffers"][:2]),
        forged(buffers=[{**document["buffers"][0], "kind": "output"}, *document["buffers"][1:]]),
        forged(steps=[{"fill": {"buffer": 0, "offset": 0, "bytes": 4, "pattern": "00"}}]),
        forged(steps=[{"fill": {"buffer": 2, "offset": 0, "bytes": 1 << 40, "pattern": "00"}}]),
        forged(steps=[{"fill": {"buffer": 9, "offset": 0, "bytes": 4, "pattern": "00"}}]),
        {"plan": 1},
        None,
    ):
        with pytest.raises(PlanForged):
            read_plan(wrong, SQUARE, "cuda:90")


def test_occupancy_takes_the_lowest_of_its_limits():
    assert occupancy(TARGET, registers=32, warps=4, shared_bytes=0) == 1.0
    assert occupancy(TARGET, registers=255, warps=8, shared_bytes=0) == 8 / 64
    assert occupancy(TARGET, registers=32, warps=4, shared_bytes=TARGET.shared_optin) == 4 / 64
    assert occupancy(TARGET, registers=16, warps=1, shared_bytes=0) == 32 / 64
