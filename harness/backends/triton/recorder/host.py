"""What the host side of a candidate finds in ``torch.cuda`` and around it while a call is recorded."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import torch
import triton
import triton.testing
from triton.runtime import autotuner

from harness.backends.triton.properties import device_properties
from harness.backends.triton.recorder.session import ACTIVE, RecordingRefused
from harness.backends.triton.targets import Target

_CONTROL = (
    "Stream",
    "Event",
    "CUDAGraph",
    "ExternalStream",
    "MemPool",
    "graph",
    "synchronize",
    "stream",
    "set_stream",
    "make_graphed_callables",
    "set_device",
    "empty_cache",
    "mem_get_info",
    "memory_allocated",
    "_sleep",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "manual_seed",
    "manual_seed_all",
    "ipc_collect",
    "memory_reserved",
    "max_memory_allocated",
    "current_blas_handle",
    "cudart",
    "default_stream",
)

_CONTROL_BEGINS = (
    "memory_", "max_memory_", "reset_", "host_memory_", "get_rng_", "set_rng_", "seed", "set_per_process_",
)  # fmt: skip


def install(target: Target) -> None:
    """Patch this process for ``target``; done once, before the candidate is imported."""
    cuda = torch.cuda
    properties = device_properties(target)
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: divmod(target.capability, 10),
        "get_device_name": lambda device=None: target.title,
        "is_current_stream_capturing": lambda: False,
        "current_stream": lambda device=None: _Stream(),
        "device": lambda device=None: contextlib.nullcontext(),
        "device_of": lambda tensor=None: contextlib.nullcontext(),
        "is_bf16_supported": lambda including_emulation=True: True,
    }
    for name, answer in answers.items():
        setattr(cuda, name, answer)
    for name in {*_CONTROL, *(name for name in dir(cuda) if name.startswith(_CONTROL_BEGINS))}:
        if callable(getattr(cuda, name, None)):
            setattr(
                cuda,
                name,
                _refusing(
                    "device_control",
                    f"torch.cuda.{name} controls the device or its memory. A plan "
                    "runs in order on one stream; remove it.",
                ),
            )
    for name in ("mark", "range", "range_push", "range_pop", "range_start", "range_end"):
        if hasattr(cuda.nvtx, name):
            setattr(
                cuda.nvtx,
                name,
                _refusing("device_control", f"torch.cuda.nvtx.{name} marks a profile. A plan has no host; remove it."),
            )
    timing = (
        "timing",
        "run() times or tunes kernels. Put the winning values in PARAMS, or let the autotune agent search.",
    )
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, _refusing(*timing))
    autotuner.Autotuner.run = _refusing(
        "autotune",
        "@triton.autotune keeps state and hides the choice. Put the winning values in PARAMS, or let the "
        "autotune agent search.",
    )
    torch.compile = _refusing(
        "library_compute", "torch.compile makes kernels that nobody reviewed. Write the kernel function."
    )
    torch.utils.dlpack.to_dlpack = torch.to_dlpack = _refusing(
        "host_read", "A tensor's memory is handed out of run(). Pass the tensor to the kernel function."
    )
    torch.set_default_device = _refusing(
        "device_control", "torch.set_default_device is process state. Use device=x.device."
    )
    triton.compile = _refusing(
        "foreign_kernel", "triton.compile builds a kernel outside a launch. Launch the jit function."
    )
    start = _refusing("thread", "run() starts a thread. Launch from run() itself.")
    threading.Thread.start = start  # type: ignore[method-assign]


class _Stream:
    """The current stream: to be passed on, not to be controlled."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0

    @property
    def device(self) -> torch.device:
        """The only device."""
        return torch.device("cuda", 0)

    def __getattr__(self, name: str) -> Any:
        return _refusing(
            "device_control",
            f"'{name}' of the current stream controls the device. A plan runs in order on one stream; remove it.",
        )()


def _refusing(code: str, text: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if ACTIVE.session is None:
            raise RecordingRefused(text)
        return ACTIVE.session.refuse(code, text)

    return refuse
