"""Host idioms one by one: what a plan can hold, and what is refused with code, reason and line."""

from __future__ import annotations

import pytest
from triton_candidates import candidate

pytestmark = pytest.mark.sandbox

LAUNCH = "_copy[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)"

ACCEPTED = {
    "grid tuple": LAUNCH,
    "grid function": "_copy[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, out, x.numel(), BLOCK=512)",
    "params": "_copy[(64,)](x, out, x.numel(), **{'BLOCK': 256, 'num_warps': 2, 'num_stages': 2})",
    "views": "flat = x.view(-1)\n_copy[(1,)](flat[256:512], out.reshape(-1)[256:], 256, BLOCK=256)",
    "row by row": "for row in range(2):\n    _copy[(1,)](x[row], out[row], x.shape[1], BLOCK=256)",
    "transpose and unsqueeze": "_copy[(1,)](x.t().unsqueeze(0), out.transpose(0, 1), 16, BLOCK=16)",
    "contiguous of contiguous": "_copy[(1,)](x.contiguous(), out, 16, BLOCK=16)",
    "same dtype to": "_copy[(1,)](x.to(torch.float32), out, 16, BLOCK=16)",
    "same device to": "_copy[(1,)](x.to(x.device), out, 16, BLOCK=16)",
    "split and unbind": "a, b = x.split(32)\n_copy[(1,)](a, out, 16, BLOCK=16)\n"
    "_copy[(1,)](b.unbind(0)[0], out[1], 16, BLOCK=16)",
    "iteration over rows": "for row, target in zip(x[:2], out[:2]):\n    _copy[(1,)](row, target, 16, BLOCK=16)",
    "expand": "_copy[(1,)](x[:1].expand(64, 256), out, 16, BLOCK=16)",
    "reinterpretation of bits": "_copy[(1,)](x.view(torch.int32), out.view(torch.int32), 16, BLOCK=16)",
    "scratch empty": "tmp = torch.empty(x.shape, dtype=torch.float32, device=x.device)\n"
    "_copy[(64,)](x, tmp, x.numel(), BLOCK=256)\n_copy[(64,)](tmp, out, x.numel(), BLOCK=256)",
    "scratch on a named device": "tmp = torch.empty(8, 256, device='cuda')\n_copy[(1,)](x, tmp, 16, BLOCK=16)",
    "scratch on cuda:0": "tmp = torch.empty((8,), device='cuda:0')\n_copy[(1,)](x, tmp, 8, BLOCK=8)",
    "scratch empty_like": "tmp = torch.empty_like(x)\n_copy[(1,)](x, tmp, 16, BLOCK=16)",
    "scratch new_empty": "tmp = x.new_empty(16)\n_copy[(1,)](x, tmp, 16, BLOCK=16)",
    "zeros": "tmp = torch.zeros(16, device=x.device)\n_copy[(1,)](tmp, out, 16, BLOCK=16)",
    "full": "tmp = torch.full((16,), -math.inf, device=x.device)\n_copy[(1,)](tmp, out, 16, BLOCK=16)",
    "zero_ on an output": "out.zero_()\n_copy[(1,)](x, out, 16, BLOCK=16)",
    "fill_ on a view": "out[0].fill_(1.0)\n_copy[(1,)](x, out[1], 16, BLOCK=16)",
    "branch on shape and dtype": "assert x.is_cuda and x.device.type == 'cuda'\n"
    "block = 256 if x.shape[1] > 128 and x.dtype == torch.float32 else 64\n"
    "_copy[(64,)](x, out, x.numel(), BLOCK=block)",
    "alignment check": "assert x.data_ptr() % 16 == 0\n_copy[(1,)](x, out, 16, BLOCK=16)",
    "multiprocessor count": "sms = torch.cuda.get_device_properties(x.device).multi_processor_count\n"
    "_copy[(sms,)](x, out, x.numel(), BLOCK=128)",
    "driver's multiprocessor count": "p = triton.runtime.driver.active.utils.get_device_properties(0)\n"
    "_copy[(p['multiprocessor_count'],)](x, out, x.numel(), BLOCK=128)",
    "device guard": "with torch.cuda.device(x.device):\n    _copy[(1,)](x, out, 16, BLOCK=16)",
    "two launches": "_copy[(1,)](x, out, 16, BLOCK=16)\n_scale[(1,)](out, out, 2.0, 16, BLOCK=16)",
    "launch options": "_copy[(4,)](x, out, 16, BLOCK=16, num_ctas=1, maxnreg=64, launch_pdl=True)",
    "early launch": "_early[(4,)](x, out, BLOCK=16)\n_late[(4,)](x, out, BLOCK=16, launch_pdl=True)",
    "host descriptor": "d = TensorDescriptor.from_tensor(x, [16, 16])\n_tma[(1,)](d, out, BLOCK=16)",
    "printing a tensor's description": "repr(x)\n_copy[(1,)](x, out, 16, BLOCK=16)",
}
BEFORE = {
    "early launch": """
        from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


        @triton.jit
        def _early(x_ptr, out_ptr, BLOCK: tl.constexpr):
            gdc_launch_dependents()
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + at, tl.load(x_ptr + at))


        @triton.jit
        def _late(x_ptr, out_ptr, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.extra.cuda.gdc_wait()
            tl.store(out_ptr + at, tl.load(out_ptr + at) + tl.load(x_ptr + at))
        """,
    "host descriptor": """
        @triton.jit
        def _tma(desc, out_ptr, BLOCK: tl.constexpr):
            tile = desc.load([0, 0])
            at = tl.arange(0, BLOCK)
            tl.store(out_ptr + at[:, None] * 256 + at[None, :], tile)
        """,
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_idiom(record, name):
    plan = record(candidate(ACCEPTED[name], BEFORE.get(name, "")))
    assert plan.refusals == ()
    assert plan.second_call == "same"
    assert any("launch" in step for step in plan.steps)


REFUSED = {
    "int of an element": ("host_read", "n = int(lens[0])"),
    "item": ("host_read", "n = lens[0].item()"),
    "tolist": ("host_read", "n = lens.tolist()"),
    "cpu": ("host_read", "n = lens.cpu()"),
    "numpy": ("host_read", "n = lens.numpy()"),
    "equal": ("host_read", "n = torch.equal(x, out)"),
    "truth of an element": ("host_read", "n = 1 if lens[0] else 2"),
    "max of lengths": ("library_compute", "n = lens.max().item()"),
    "any over lengths": ("library_compute", "n = (lens > 3).any()"),
    "softmax": ("library_compute", "torch.softmax(x, -1)"),
    "mm into out": ("library_compute", "torch.mm(x, x.t(), out=out)"),
    "operator at": ("library_compute", "y = x @ x.t()"),
    "addition": ("library_compute", "y = x + 1"),
    "in place addition": ("library_compute", "out += x"),
    "element assignment": ("library_compute", "out[0] = 0"),
    "copy_": ("library_copy", "out.copy_(x)"),
    "clone": ("library_copy", "y = x.clone()"),
    "converting float": ("library_copy", "y = x.half()"),
    "converting to": ("library_copy", "y = x.to(torch.bfloat16)"),
    "copying reshape": ("library_copy", "y = x.t().reshape(-1)"),
    "copying contiguous": ("library_copy", "y = x.t().contiguous()"),
    "concatenation": ("library_copy", "y = torch.cat([x, x])"),
    "arange": ("library_compute", "y = torch.arange(4, device=x.device)"),
    "random": ("library_compute", "y = torch.rand(4, device=x.device)"),
    "index by a list": ("library_compute", "y = x[[0, 1]]"),
    "uploaded constants": ("constant_upload", "y = torch.tensor([1.0], device='cuda')"),
    "host memory": ("host_tensor", "y = torch.empty(4)"),
    "named host memory": ("host_tensor", "y = torch.empty(4, device='cpu')"),
    "stream": ("device_control", "s = torch.cuda.Stream()"),
    "event": ("device_control", "s = torch.cuda.Event()"),
    "graph": ("device_control", "s = torch.cuda.CUDAGraph()"),
    "synchronize": ("device_control", "torch.cuda.synchronize()"),
    "benchmark": ("timing", "triton.testing.do_bench(lambda: None)"),
    "address as an integer": ("raw_address", "_copy[(1,)](x, out, x.data_ptr(), BLOCK=16)"),
    "compile": ("library_compute", "torch.compile(lambda a: a)"),
    "thread": ("thread", "threading.Thread(target=lambda: None).start()"),
    "grid of floats": ("grid_type", "_copy[(x.numel() / 16,)](x, out, 16, BLOCK=16)"),
    "huge grid": ("grid_size", "_copy[(1, 70000)](x, out, 16, BLOCK=16)"),
    "input filled": ("input_written", "x.zero_()"),
    "strided fill": ("strided_fill", "out[:, 0].fill_(1)"),
    "view past the end": ("view_out_of_bounds", "y = x.as_strided((65, 256), (256, 1))"),
    "eight byte pattern": ("fill_pattern", "y = torch.full((4,), 1 << 33, dtype=torch.int64, device=x.device)"),
    "hook on a kernel": (
        "launch_hook",
        "_copy.add_pre_run_hook(lambda *a, **k: None); _copy[(1,)](x, out, 16, BLOCK=16)",
    ),
    "hook on all launches": (
        "launch_hook",
        "triton.knobs.runtime.launch_enter_hook.add(print); _copy[(1,)](x, out, 16, BLOCK=16)",
    ),
    "compiler hook": (
        "compiler_hook",
        "triton.knobs.runtime.jit_post_compile_hook = lambda **k: None; _copy[(1,)](x, out, 16, BLOCK=16)",
    ),
    "foreign library": (
        "foreign_library",
        "path = triton.__path__[0] + '/backends/nvidia/lib/libdevice.10.bc'; "
        "_copy[(1,)](x, out, 16, BLOCK=16, extern_libs={'mine': path})",
    ),
    "occupancy query": (
        "occupancy_query",
        "k = _copy.warmup(x, out, 16, BLOCK=16, grid=(1,)); k._init_handles(); k.n_regs * 2",
    ),
    "host tensor as argument": ("constant_upload", "_copy[(1,)](torch.as_tensor([1.0]), out, 1, BLOCK=16)"),
    "custom operator": ("library_compute", "y = _double(x)"),
    "replaced assembly options": ("compiler_option", "_copy[(1,)](x, out, 16, BLOCK=16, ptx_options='-O0')"),
    "returned value": ("returns_value", "return out"),
}


CUSTOM = """
    @torch.library.custom_op("mine::double", mutates_args=())
    def _double(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    """


@pytest.mark.parametrize("name", REFUSED)
def test_refused_idiom(record, name):
    code, line = REFUSED[name]
    body = line + "\n" + LAUNCH if name != "returned value" else LAUNCH + "\n" + line
    source = candidate(body, CUSTOM if name == "custom operator" else "")
    plan = record(source)
    assert [refusal.code for refusal in plan.refusals][:1] == [code], plan.refusals
    assert len(plan.refusals[0].text) > 40
    if name != "returned value":
        assert plan.refusals[0].line == source[: source.index(line)].count("\n") + 1


@pytest.mark.parametrize("handler", ["except Exception", "except BaseException", "except RuntimeError"])
def test_a_swallowed_refusal_stays(record, handler):
    plan = record(candidate(f"try:\n    n = int(lens[0])\n{handler}:\n    n = 4\n{LAUNCH}"))
    assert [refusal.code for refusal in plan.refusals] == ["host_read"]


def test_a_kept_tensor_is_refused(record):
    keep = "tmp = STATE.setdefault('tmp', torch.empty(16, device=x.device))\n_copy[(1,)](x, tmp, 16, BLOCK=16)"
    plan = record(candidate(f"{keep}\n{LAUNCH}"))
    assert [refusal.code for refusal in plan.refusals] == ["kept_scratch"]


def test_a_counter_between_calls_is_seen(record):
    count = f"STATE['n'] = STATE.get('n', 0) + 1\nif STATE['n'] == 1:\n    {LAUNCH}"
    plan = record(candidate(f"{count}\n_scale[(1,)](x, out, 2.0, 1, BLOCK=16)"))
    assert plan.second_call == "differs"
    assert [refusal.code for refusal in plan.refusals] == ["second_call"]


def test_a_launch_from_a_thread_is_refused(record):
    plan = record(
        candidate(
            "import _thread\nlock = _thread.allocate_lock()\nlock.acquire()\n"
            "def go():\n    try:\n        _copy[(1,)](x, out, 16, BLOCK=16)\n    finally:\n        lock.release()\n"
            f"_thread.start_new_thread(go, ())\nlock.acquire()\n{LAUNCH}"
        )
    )
    assert [refusal.code for refusal in plan.refusals] == ["thread"]


def test_autotune_is_refused_even_with_one_configuration(record):
    before = """
        @triton.autotune(configs=[triton.Config({"BLOCK": 256})], key=["n"])
        @triton.jit
        def _tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            tl.store(out_ptr + at, tl.load(x_ptr + at))
        """
    plan = record(candidate("_tuned[(1,)](x, out, x.numel())", before))
    assert [refusal.code for refusal in plan.refusals] == ["autotune"]


def test_nothing_launched(record):
    assert [refusal.code for refusal in record(candidate("y = x.view(-1)")).refusals] == ["nothing_launched"]
