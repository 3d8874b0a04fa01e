"""More host idioms that a plan cannot hold, each with its code and its line; and what becomes of a refusal."""

from __future__ import annotations

import pytest
from triton_candidates import candidate

from harness.backends.triton.recorder.session import MOST_STEPS
from harness.domain.vocabulary import Outcome
from harness.evaluation.ports import CandidateFault

pytestmark = pytest.mark.sandbox

LAUNCH = "_copy[(1,)](x, out, 16, BLOCK=16)"
REFUSED = {
    # reads
    "item of a maximum": ("library_compute", "n = lens.max().item()"),
    "a branch on values": ("library_compute", "n = 1 if (lens > 3).any() else 2"),
    "largest by the builtin": ("library_compute", "n = max(lens)"),
    "membership": ("host_read", "n = 3 in lens"),
    "positions": ("host_read", "n = x.nonzero()"),
    "storage": ("host_read", "n = x.untyped_storage()"),
    "array protocol": ("host_read", "import numpy; numpy.asarray(x)"),
    "deep copy": ("host_read", "import copy; copy.deepcopy(x)"),
    "pickling": ("host_read", "import pickle; pickle.dumps(x)"),
    "handing out": ("host_read", "torch.utils.dlpack.to_dlpack(x)"),
    "interface": ("host_read", "x.__cuda_array_interface__"),
    # library work
    "functional": ("library_compute", "torch.nn.functional.gelu(x)"),
    "by the namespace of operators": ("library_compute", "torch.ops.aten.relu(x)"),
    "einsum": ("library_compute", "torch.einsum('ij->i', x)"),
    "where": ("library_compute", "torch.where(x > 0, x, out)"),
    "part in place": ("library_compute", "out[0:4] += 1"),
    "in place product": ("library_compute", "out.mul_(2)"),
    "transposed in place": ("library_compute", "out.t_()"),
    "mask index": ("library_compute", "y = x[x > 0]"),
    "tensor index": ("library_compute", "y = x[lens]"),
    "identity matrix": ("library_compute", "y = torch.eye(4, device='cuda')"),
    "stack": ("library_copy", "y = torch.stack([x, x])"),
    "conversion by type": ("library_copy", "y = x.type(torch.float16)"),
    # memory
    "values of a new tensor": ("constant_upload", "y = x.new_tensor([1.0])"),
    "a scalar as tensor": ("constant_upload", "y = torch.scalar_tensor(1.0, device='cuda')"),
    "legacy constructor": ("host_tensor", "y = torch.FloatTensor(4)"),
    "another device": ("host_tensor", "y = torch.empty(4, device='cuda:1')"),
    "to the host": ("host_tensor", "y = x.to('cpu')"),
    "into an output": ("host_tensor", "torch.zeros((64, 256), out=out)"),
    "view before the start": ("view_out_of_bounds", "y = x[1:].as_strided((4,), (1,), 1 << 20)"),
    # device
    "synchronised stream": ("device_control", "torch.cuda.current_stream().synchronize()"),
    "stream of another": ("device_control", "torch.cuda.current_stream().wait_stream(None)"),
    "profiler mark": ("device_control", "torch.cuda.nvtx.range_push('mine')"),
    "memory statistics": ("device_control", "torch.cuda.memory_summary()"),
    "free memory": ("device_control", "torch.cuda.mem_get_info()"),
    "random state": ("device_control", "torch.manual_seed(0)"),
    # launches
    "debug option": ("launch_option", "_copy[(1,)](x, out, 16, BLOCK=16, debug=True)"),
    "precision option": ("launch_option", "_copy[(1,)](x, out, 16, BLOCK=16, default_dot_input_precision='ieee')"),
    "replaced code": ("compiler_option", "_copy[(1,)](x, out, 16, BLOCK=16, ir_override='/none.ttir')"),
    "negative grid": ("grid_size", "_copy[(-1,)](x, out, 16, BLOCK=16)"),
    "address in a tuple": ("raw_address", "_pair[(1,)](out, (x, x.data_ptr()))"),
    "address as constant": ("raw_address", "_constant[(1,)](out, x.data_ptr())"),
    "foreign constant": ("argument_type", "_constant[(1,)](out, (1, triton.Config({})))"),
    "compiled by hand": ("foreign_kernel", "triton.compile('kernel.ttir')"),
    "many launches": ("plan_too_large", f"for _ in range({MOST_STEPS + 1}): {LAUNCH}"),
    "many allocations": ("plan_too_large", f"for _ in range({MOST_STEPS}): torch.empty(4, device=x.device)"),
    "an output as scratch": (
        "allocator", "triton.set_allocator(lambda size, align, stream: out); _described[(1,)](x, out)"),
    "too little scratch": (
        "allocator",
        "triton.set_allocator(lambda size, align, stream: torch.empty(16, dtype=torch.int8, device='cuda')); "
        "_described[(1,)](x, out)"),
}
KERNELS = """
    @triton.jit
    def _pair(out_ptr, pair):
        tl.store(out_ptr, tl.load(pair[0]) + pair[1])


    @triton.jit
    def _constant(out_ptr, WHAT: tl.constexpr):
        tl.store(out_ptr, 1.0)


    @triton.jit
    def _described(x_ptr, out_ptr):
        tile = tl.make_tensor_descriptor(x_ptr, [64, 256], [256, 1], [16, 16]).load([0, 0])
        tl.store(out_ptr + tl.arange(0, 16)[:, None] * 256 + tl.arange(0, 16)[None, :], tile)
    """


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_code_and_line(record, name):
    code, line = REFUSED[name]
    source = candidate(f"{line}\n{LAUNCH}", KERNELS)
    first = record(source).refusals[0]
    assert (first.code, first.line) == (code, source[: source.index(line)].count("\n") + 1), first.text
    assert len(first.text) > 40


@pytest.mark.parametrize("body", [
    f"{LAUNCH}\ntry:\n    n = lens.tolist()\nexcept BaseException:\n    raise SystemExit(0)",
    f"{LAUNCH}\ntry:\n    n = lens.tolist()\nfinally:\n    return",
    f"import contextlib\nwith contextlib.suppress(Exception):\n    n = lens.tolist()\n{LAUNCH}",
    "n = getattr(lens, 'tolist')\ntry:\n    n()\nexcept Exception as error:\n    raise ValueError('mine') from error\n"
    + LAUNCH,
    "def quiet():\n    try:\n        return lens.tolist()\n    except RuntimeError:\n        return [4]\nn = quiet()\n"
    + LAUNCH,
])
def test_whatever_becomes_of_the_exception_the_refusal_stays(record, body):
    source = candidate(body)
    (refusal,) = record(source).refusals
    assert refusal.code == "host_read"
    assert "tolist" in source.splitlines()[refusal.line - 1] or "n()" in source.splitlines()[refusal.line - 1]


def test_a_message_for_readers(record):
    (refusal,) = record(candidate(f"n = lens.max().item()\n{LAUNCH}")).refusals
    assert "could not be read" in refusal.text


@pytest.mark.parametrize(("body", "code"), [("return x", "returns_value"), ("y = x[0]", "nothing_launched")])
def test_what_concerns_run_as_a_whole_names_its_line(record, body, code):
    launch = f"{LAUNCH}\n" if code == "returns_value" else ""
    source = candidate(launch + body)
    (refusal,) = record(source).refusals
    assert (refusal.code, refusal.line) == (code, source[: source.index("def run(")].count("\n") + 1)


@pytest.mark.parametrize(("body", "code", "outcome"), [
    ("raise SystemExit(0)", "exits", Outcome.RUNTIME_ERROR),
    ("raise KeyboardInterrupt", "exits", Outcome.RUNTIME_ERROR),
    ("x[64]", "raises", Outcome.RUNTIME_ERROR),
    ("_copy[(1,)](x, out, 16, BLOCK=24)", "triton_compile", Outcome.COMPILE_ERROR),
    ("_copy[(1,)](x, out, 16, BLOCK=16, num_warps=64)", "out_of_resources", Outcome.RESOURCE_INFEASIBLE),
    ("_copy[(1,)](x, out, 16, BLOCK=16, nonsense=1)", "raises", Outcome.RUNTIME_ERROR),
])
def test_the_candidate_s_own_errors_are_no_refusals(record, body, code, outcome):
    source = candidate(f"{body}\n{LAUNCH}")
    with pytest.raises(CandidateFault) as caught:
        record(source)
    assert (caught.value.fault.code, caught.value.fault.outcome) == (code, outcome)
    if code != "triton_compile":  # that one names the kernel function's line
        assert caught.value.fault.line == source[: source.index(body)].count("\n") + 1
