"""Candidates on Triton's interpreter in the real sandbox, on lent memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.ports import CandidateFault, Lent
from harness.evaluation.sandbox import opener
from harness.operators import registry

pytestmark = pytest.mark.sandbox

HEAD = """\
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

"""
GUARD = 64


def lend(name: str, kind: str, dtype: torch.dtype, shape: tuple[int, ...]) -> tuple[Lent, torch.Tensor]:
    """A lent array and the judge's view of the same memory; the file has room on both sides."""
    count = 1
    strides: list[int] = []
    for size in reversed(shape):
        strides.insert(0, count)
        count *= size
    item = torch.empty((), dtype=dtype).element_size()
    offset = GUARD * item
    nbytes = (count + 2 * GUARD) * item
    fd = os.memfd_create(name)
    os.ftruncate(fd, nbytes)
    view = torch.frombuffer(mmap.mmap(fd, nbytes), dtype=dtype, offset=offset, count=count).view(shape)
    label = str(dtype).removeprefix("torch.")
    return Lent(name, kind, label, shape, tuple(strides), offset, nbytes, fd), view


@contextmanager
def loaded(source: str) -> Iterator:
    worker = opener("triton-interpret").open(deadline_s=60.0)
    try:
        worker.load(source)
        yield worker
    finally:
        worker.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rms_norm_baseline(dtype):
    x, x_here = lend("x", "input", dtype, (5, 1021))
    weight, weight_here = lend("weight", "input", dtype, (1021,))
    out, out_here = lend("out", "output", dtype, (5, 1021))
    generator = torch.Generator().manual_seed(3)
    x_here.copy_(torch.randn(5, 1021, generator=generator))
    weight_here.copy_(torch.randn(1021, generator=generator))
    out_here.fill_(float("nan"))
    with loaded(registry.get("rms_norm").baseline(Backend.TRITON)) as worker:
        report = worker.call([x, weight, out], {"eps": 1e-6})
    exact = x_here.double() * torch.rsqrt(x_here.double().square().mean(-1, keepdim=True) + 1e-6) * weight_here.double()
    spacing = 4 * torch.finfo(dtype).eps * exact.abs().clamp(min=1.0)
    assert ((out_here.double() - exact).abs() <= spacing).all()
    assert report.claimed_s > 0


def test_products_of_bfloat16_are_right():
    source = (
        HEAD
        + """
@triton.jit
def _dot(a, b, c, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def run(a, b, c):
    _dot[(1,)](a, b, c, N=16)
"""
    )
    (a, a_here), (b, b_here) = (lend(n, "input", torch.bfloat16, (16, 16)) for n in "ab")
    c, c_here = lend("c", "output", torch.float32, (16, 16))
    generator = torch.Generator().manual_seed(4)
    for view in (a_here, b_here):
        view.copy_(torch.randn(16, 16, generator=generator))
    with loaded(source) as worker:
        worker.call([a, b, c], {})
    torch.testing.assert_close(c_here, a_here.float() @ b_here.float(), rtol=1e-5, atol=1e-5)


COPY = (
    HEAD
    + """
@triton.jit
def _copy(x, out, shift, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at + shift, {value})


def run(x, out):
    {host}
"""
)
LAUNCH = "_copy[(1,)](x, out, 0, N=16, num_warps=1, launch_pdl=True)"


def outcome(value: str, host: str) -> tuple[str, str]:
    x, _ = lend("x", "input", torch.float32, (16,))
    out, _ = lend("out", "output", torch.float32, (16,))
    with pytest.raises(CandidateFault) as caught, loaded(COPY.format(value=value, host=host)) as worker:
        worker.call([x, out], {})
    return str(caught.value.fault.outcome), caught.value.fault.code


@pytest.mark.parametrize(
    ("value", "host", "expected"),
    [
        ("libdevice.lgamma(tl.load(x + at))", LAUNCH, ("unsupported_here", "interpreter_gap")),
        ("tl.load(x + at)", "_copy[(1,)](x, out, 1 << 22, N=16)", ("out_of_bounds", "guard_page")),
        ("tl.load(x + at) + missing", LAUNCH, ("runtime_error", "raises")),
        ("tl.load(x + at)", LAUNCH + "\n    return out", ("policy_violation", "returns_value")),
        ("tl.load(x + at)", "raise ValueError('shape not supported')", ("runtime_error", "raises")),
    ],
)
def test_failures_by_name(value, host, expected):
    assert outcome(value, host) == expected


def test_usual_functions_of_libdevice_are_interpreted():
    x, x_here = lend("x", "input", torch.float32, (16,))
    out, out_here = lend("out", "output", torch.float32, (16,))
    x_here.copy_(torch.linspace(-3, 3, 16))
    value = "libdevice.tanh(tl.load(x + at)) + libdevice.erf(tl.load(x + at)) + libdevice.pow(2.0, tl.load(x + at))"
    with loaded(COPY.format(value=value, host=LAUNCH)) as worker:
        worker.call([x, out], {})
    torch.testing.assert_close(out_here, torch.tanh(x_here) + torch.erf(x_here) + torch.exp2(x_here))


def test_host_idioms_of_a_gpu_work_on_the_cpu():
    host = (
        "assert x.is_cuda and x.device.type == 'cuda'\n    tmp = torch.empty(16, device=x.device)\n"
        "    other = torch.zeros((16,), device='cuda')\n    with torch.cuda.device(x.device):\n"
        "        sms = torch.cuda.get_device_properties(0).multi_processor_count\n"
        "        assert sms == 132\n        _copy[(1,)](x, tmp, 0, N=16)\n"
        "        _copy[lambda m: (1,)](tmp, out, 0, N=16)"
    )
    x, x_here = lend("x", "input", torch.float32, (16,))
    out, out_here = lend("out", "output", torch.float32, (16,))
    x_here.copy_(torch.arange(16.0))
    with loaded(COPY.format(value="tl.load(x + at)", host=host)) as worker:
        worker.call([x, out], {})
    assert torch.equal(out_here, x_here)


def test_a_file_without_run_is_named():
    with pytest.raises(CandidateFault) as caught, loaded("x = 1\n"):
        pass
    assert caught.value.fault.code == "run_missing"


@pytest.mark.parametrize("loop", ["range", "tl.range", "tl.static_range"])
def test_a_loop_index_has_the_methods_of_a_compiled_one(loop: str) -> None:
    source = (
        HEAD
        + f"""
@triton.jit
def _count(out, N: tl.constexpr):
    for index in {loop}(0, N):
        wide = index.to(tl.int64) * 2
        tl.store(out + wide, (wide + index % 2).to(tl.float32))

def run(x, out):
    assert len(range(3)) == 3 and list(range(4))[::2] == [0, 2] and range(5)[-1] == 4
    _count[(1,)](out, N=x.shape[0])
"""
    )
    x, _ = lend("x", "input", torch.float32, (4,))
    out, out_here = lend("out", "output", torch.float32, (8,))
    out_here.zero_()
    with loaded(source) as worker:
        worker.call([x, out], {})
    assert out_here.tolist() == [0.0, 0.0, 3.0, 0.0, 4.0, 0.0, 7.0, 0.0]


def test_bfloat16_is_rounded_to_nearest_ties_to_even_as_a_device_does():
    source = (
        HEAD
        + """
@triton.jit
def _round(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at))

def run(x, out):
    _round[(1,)](x, out, N=x.shape[0])
"""
    )
    x, x_here = lend("x", "input", torch.float32, (4096,))
    out, out_here = lend("out", "output", torch.bfloat16, (4096,))
    x_here.copy_(torch.randn(4096, generator=torch.Generator().manual_seed(5)) * 100.0)
    edges = [1.00390625, 1.01171875, -1.00390625, 3.3961776e38, 3.4e38, 1e-40, 0.0, -0.0, float("inf"), float("-inf")]
    x_here[: len(edges)] = torch.tensor(edges)
    x_here[len(edges)] = float("nan")
    with loaded(source) as worker:
        worker.call([x, out], {})
    numbers = ~torch.isnan(x_here)
    wanted = x_here.to(torch.bfloat16)
    assert torch.equal(out_here[numbers].view(torch.int16), wanted[numbers].view(torch.int16))
    assert torch.isnan(out_here).sum() == 1
    assert torch.isnan(out_here[len(edges)])
