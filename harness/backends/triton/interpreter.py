"""Triton's interpreter on CPU memory that says it is a GPU, with its bfloat16 products put right.

Loaded in the sandbox mode ``triton-interpret`` only, where ``TRITON_INTERPRET=1``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
import triton.language.extra.cuda as cuda_language
from torch.overrides import TorchFunctionMode
from triton.runtime import interpreter as triton_interpreter

from harness.backends.triton import interpreted_casts, interpreted_libdevice, interpreted_loops
from harness.backends.triton.properties import device_properties, driver_properties
from harness.backends.triton.targets import Target


class NotHere(Exception):
    """Something only a GPU can do, or only the interpreter cannot."""


class ReturnsValue(Exception):
    """``run`` returned something."""


def install(target: Target) -> None:
    """Patch this process before the candidate is imported."""
    builder = triton_interpreter.InterpreterBuilder
    native = builder.create_dot

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        # The interpreter keeps bfloat16 as bit patterns and multiplies those.
        return native(self, _as_float(a), _as_float(b), d, *rest)

    builder.create_dot = create_dot
    interpreted_libdevice.install()
    # One launch ends here before the next begins. Triton loads this module twice: ``tl.extra.cuda`` and an import of it
    # are two objects.
    twins: tuple[Any, ...] = (cuda_language, sys.modules[cuda_language.__name__])
    for module in twins:
        module.gdc_wait = module.gdc_launch_dependents = _nothing
    interpreted_loops.install()
    interpreted_casts.install()
    properties = device_properties(target)
    cuda = torch.cuda
    for name, answer in {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: divmod(target.capability, 10),
        "get_device_name": lambda device=None: target.title,
        "device": lambda device=None: contextlib.nullcontext(),
    }.items():
        setattr(cuda, name, answer)
    shown: dict[str, Any] = {"device": torch.device("cuda", 0), "is_cuda": True}
    for name, value in shown.items():
        setattr(torch.Tensor, name, _constant(value))
    triton.runtime.driver.set_active(_Driver(target))


def _constant(value: Any) -> property:
    return property(lambda self: value)


def _as_float(handle: Any) -> Any:
    if handle.dtype.scalar != tl.bfloat16:
        return handle
    bits = handle.data.astype(np.uint32) << 16
    return triton_interpreter.TensorHandle(bits.view(np.float32), tl.float32)


def _nothing(_semantic: Any = None) -> None:
    """What waiting for a launch that is over comes to."""


class _Driver:
    """Answers the host's questions about the device; nothing is launched through it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.utils = self

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """As the native driver's dictionary."""
        return driver_properties(self._target)

    def get_current_device(self) -> int:
        """Index of the only device."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """The device candidates see."""
        return torch.device("cuda", 0)

    def get_current_target(self) -> Any:
        """The target as the compiler names it."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self._target.capability, self._target.warp)


class _OnCpu(TorchFunctionMode):
    """Memory asked for on ``cuda`` comes from the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is not None:
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "int32": torch.int32,
           "int64": torch.int64}


def tensor(memory: Any, array: Mapping[str, Any]) -> torch.Tensor:
    """The view ``array`` describes of lent ``memory`` (offset in bytes, strides in elements); nothing is copied.

    Its ``storage_offset`` counts from the memory's own, aligned base: host code may ask it whether a base is aligned.
    """
    dtype = _DTYPES[array["dtype"]]
    whole = torch.frombuffer(memory, dtype=dtype, count=memoryview(memory).nbytes // dtype.itemsize)
    return whole.as_strided(array["shape"], array["strides"], array["offset"] // dtype.itemsize)


def call(run: Callable[..., Any], tensors: Sequence[torch.Tensor], attributes: Mapping[str, float]) -> None:
    """Call ``run`` once.

    Raises:
        NotHere: the kernel needs what the interpreter lacks.
        ReturnsValue: ``run`` returned something.
    """
    try:
        with _OnCpu():
            result = run(*tensors, **attributes)
    except triton_interpreter.InterpreterError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, NotImplementedError):
                raise NotHere(str(cause)) from error
            cause = cause.__cause__
        raise
    if result is not None:
        raise ReturnsValue("run() returns something. It fills its outputs and returns None.")
