"""IR that follows from the reviewed file, and IR that does not."""

from __future__ import annotations

import dataclasses
import textwrap

import pytest
from test_triton_stages import make_run
from triton_candidates import candidate

from harness.backends.triton import planning, stages
from harness.backends.triton.derive import matching
from harness.backends.triton.derive.matching import IrForeign, line_of, prove
from harness.backends.triton.targets import find_target
from harness.domain.digest import digest_bytes
from harness.domain.vocabulary import Backend, Outcome, Stage
from harness.evaluation.run import Refused
from harness.evaluation.sandbox import opener
from harness.operators import registry

pytestmark = pytest.mark.sandbox

TARGET = find_target("nvidia-h200")
LAUNCH = "_copy[(4,)](x, out, 16384, BLOCK=64)"


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    monkeypatch.setattr(matching, "_proved", type(matching._proved)())


def derived(source, *plans) -> int:
    return prove(opener("triton-derive"), source, plans, TARGET)


@pytest.mark.parametrize("operator", registry.NAMES)
def test_the_code_of_a_baseline_follows_from_its_file(operator):
    spec = registry.get(operator)
    workload = spec.workloads["llm"]
    worker = opener("triton-plan").open(deadline_s=60.0, options={"target": TARGET.name})
    try:
        plans = planning.record_plans(
            worker, spec.baseline(Backend.TRITON), spec.arguments, workload.shapes[Backend.TRITON],
            workload.dtypes[Backend.TRITON], TARGET, {a.name: a.default for a in spec.attributes})
    finally:
        worker.close()
    irs = {step["launch"]["ir"] for plan in plans for step in plan.steps if "launch" in step}
    assert derived(spec.baseline(Backend.TRITON), *plans) >= len(irs)
    assert derived(spec.baseline(Backend.TRITON), *plans) == 0  # known by now


IDIOMS = {
    "helper, module constant and library": (
        "_k[(1,)](x, out, BLOCK=64)",
        """
        from triton.language.extra import libdevice

        SCALE: tl.constexpr = tl.constexpr(math.log2(math.e))


        @triton.jit(noinline=True)
        def _helper(v):
            return libdevice.tanh(v) * SCALE


        @triton.jit
        def _k(x_ptr, out_ptr, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            tl.store(out_ptr + at, tl.load(x_ptr + at) * _helper(tl.load(x_ptr)))
        """),
    "tuple with a pointer and attributes inside": (
        "_k[(1,)](out, (x, 16, (lens, 5)), BLOCK=64)",
        """
        @triton.jit
        def _k(out_ptr, pair, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            length = tl.load(pair[2][0])
            tl.store(out_ptr + at * pair[1], tl.load(pair[0] + at, mask=at < length + pair[2][1]))
        """),
    "constants of every kind": (
        "_k[(1,)](x, out, None, 1, True, tl.float16, float('-inf'), 'ieee', (2, 4), _double, BLOCK=64)",
        """
        @triton.jit
        def _double(v):
            return v * 2


        @triton.jit
        def _k(x_ptr, out_ptr, none, one, FLAG: tl.constexpr, TYPE: tl.constexpr, LOW: tl.constexpr,
               MODE: tl.constexpr, SHAPE: tl.constexpr, FN: tl.constexpr, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            value = tl.load(x_ptr + at * one, mask=at < 60, other=LOW).to(TYPE).to(tl.float32)
            if FLAG and MODE == "ieee":
                value += SHAPE[0] * SHAPE[1]
            tl.store(out_ptr + at, FN(value))
        """),
    "heuristics": (
        "_k[(1,)](x, out, 64, BLOCK=64)",
        """
        @triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
        @triton.jit
        def _k(x_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            if EVEN:
                tl.store(out_ptr + at, tl.load(x_ptr + at))
        """),
    "no specialisation": (
        "_k[(1,)](x, out, 1, 16)",
        """
        @triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["m"])
        def _k(x_ptr, out_ptr, n, m):
            tl.store(out_ptr + n, tl.load(x_ptr + m))
        """),
    "host descriptor": (
        "_k[(1,)](TensorDescriptor.from_tensor(x, [16, 16]), out)",
        """
        @triton.jit
        def _k(desc, out_ptr):
            at = tl.arange(0, 16)
            tl.store(out_ptr + at[:, None] * 256 + at[None, :], desc.load([0, 0]))
        """),
    "gluon with a layout as constant": (
        "_k[(1,)](x, out, 128, gl.SliceLayout(0, gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])), num_warps=4)",
        """
        from triton.experimental import gluon
        from triton.experimental.gluon import language as gl


        @gluon.jit
        def _k(x_ptr, out_ptr, BLOCK: gl.constexpr, LAYOUT: gl.constexpr):
            at = gl.arange(0, BLOCK, layout=LAYOUT)
            gl.store(out_ptr + at, gl.load(x_ptr + at))
        """),
    "clusters and a register limit": ("_copy[(4,)](x, out, 4096, BLOCK=1024, num_ctas=2, maxnreg=64)", ""),
    "eight warps, odd base": ("_copy[(4,)](x.view(-1)[1:], out, 4097, BLOCK=1024, num_warps=8)", ""),
}


@pytest.mark.parametrize("name", IDIOMS)
def test_idioms_derive_equal(record, name):
    source = candidate(*IDIOMS[name])
    plan = record(source)
    assert plan.refusals == ()
    assert derived(source, plan) == 1


def test_a_plan_with_another_kernel_s_code_is_refused(record):
    source = candidate(LAUNCH + "\n_scale[(4,)](x, out, 2.0, 16384, BLOCK=64)")
    plan = record(source)
    assert derived(source, plan) == 2
    first, second = (step["launch"] for step in plan.steps)
    swapped = dataclasses.replace(plan, steps=({"launch": {**first, "ir": second["ir"]}}, plan.steps[1]))
    with pytest.raises(IrForeign) as caught:
        derived(source, swapped)
    assert caught.value.function == "_copy"
    assert "_scale" in caught.value.text


def test_a_plan_with_edited_code_is_refused(record):
    source = candidate(LAUNCH)
    plan = record(source)
    (text,) = plan.irs.values()
    edited = text.replace("arith.cmpi slt", "arith.cmpi sle")
    assert edited != text
    digest = digest_bytes(edited.encode())
    step = {"launch": {**plan.steps[0]["launch"], "ir": digest}}
    with pytest.raises(IrForeign, match="cmpi sle"):
        derived(source, dataclasses.replace(plan, steps=(step,), irs={digest: edited}))


REPLACED = {
    "bound to another function": "_copy = _scale_only",
    "text replaced": "_copy._unsafe_update_src(_copy.src.replace('mask=at < n)', 'mask=at < n - 1)'))",
    "function of another's code": "_copy = triton.jit(_maker(3))",
    "replaced in the module": "globals()['_copy'] = _scale_only",
    "other body": "_copy._src = _scale_only._src.replace('_scale_only', '_copy')",
}
OTHERS = """
    @triton.jit
    def _scale_only(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 3.0, mask=at < n)


    def _maker(factor):
        def _copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 3.0, mask=at < n)
        return _copy


    """


@pytest.mark.parametrize("name", REPLACED)
def test_a_kernel_function_replaced_at_import_is_refused(record, name):
    source = candidate(LAUNCH, textwrap.dedent(OTHERS) + REPLACED[name])
    plan = record(source)
    assert plan.refusals == ()
    if plan.steps[0]["launch"]["function"] == "_scale_only":  # launched under its own name: nothing is hidden
        assert derived(source, plan) == 1
    else:
        with pytest.raises(IrForeign):
            derived(source, plan)


COMPILER = """
    from triton.backends.nvidia.compiler import CUDABackend
    _make = CUDABackend.make_ttir


    class _Text:
        def __init__(self, module):
            self.module = module
        def str_nodebug(self):
            return self.module.str_nodebug().replace("arith.cmpi slt", "arith.cmpi sle")


    from harness.backends.triton.recorder import ircapture
    _keep = ircapture._keep
    ircapture._keep = lambda metadata, module, options, kind: _keep(metadata, _Text(module), options, kind)
    """


def test_a_recorder_tampered_with_is_refused(record):
    source = candidate(LAUNCH, COMPILER)
    with pytest.raises(IrForeign):
        derived(source, record(source))


def test_the_stage_refuses_with_the_function_s_line():
    spec = registry.get("rms_norm")
    source = spec.baseline(Backend.TRITON)
    bad = source.replace("\n\ndef run(", "\n\n_rms_norm._unsafe_update_src(_rms_norm.src.replace('+ eps', '+ 2 * eps'))"
                                         "\n\n\ndef run(")
    assert bad != source
    run = make_run("rms_norm", bad)
    run.stage = Stage.PLAN
    with pytest.raises(Refused) as caught:
        stages.plan(run)
    (reason,) = caught.value.reasons
    assert (caught.value.outcome, reason.code, reason.stage) == (Outcome.REWARD_HACK, "ir_foreign", Stage.PLAN)
    assert reason.line == line_of(bad, "_rms_norm") == bad[: bad.index("def _rms_norm")].count("\n") + 1
