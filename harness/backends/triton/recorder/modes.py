"""The two torch modes a recorded call runs under: factories and device arguments."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from harness.backends.triton.recorder.session import Session
from harness.backends.triton.recorder.standin import dispatch

_FACTORIES = {"empty", "zeros", "ones", "full", "empty_strided"}
_UPLOADS = {"tensor", "as_tensor", "from_numpy", "frombuffer", "asarray", "sparse_coo_tensor", "from_file"}
_UPLOADS |= {"new_tensor", "scalar_tensor", "from_dlpack"}


class AllocationMode(TorchDispatchMode):
    """Sends every torch operation of the thread to the session."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would wrap the method below in code that imports its compiler (seconds) on first use. Nothing is
        # compiled here, so the wrapper has no use.
        return False

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(self._session, func, args, kwargs or {})


class DeviceMode(TorchFunctionMode):
    """Rewrites ``cuda`` devices to ``meta`` before torch parses them (a CPU build of torch would raise), and
    refuses what would make values or host memory."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in _UPLOADS and getattr(func, "__module__", "") != "torch._tensor":
            self._session.refuse(
                "constant_upload",
                f"torch.{name} makes a tensor from host values. Pass numbers as kernel arguments instead.",
            )
        if kwargs.get("device") is not None:
            kwargs["device"] = self._device(kwargs["device"])
        elif name in _FACTORIES:
            self._session.refuse(
                "host_tensor", f"torch.{name} without a device makes a CPU tensor. Add device=x.device."
            )
        if name in ("to", "cuda") and len(args) > 1:
            args = (args[0], *(self._device(a) if _is_device(a) else a for a in args[1:]))
        if name == "cuda":
            return args[0]
        return func(*args, **kwargs)

    def _device(self, device: Any) -> torch.device:
        if isinstance(device, int) or str(device) in ("cuda", "cuda:0"):
            return torch.device("meta")
        return self._session.refuse("host_tensor", f"Memory on '{device}' is outside a plan. Use device=x.device.")


def _is_device(value: Any) -> bool:
    return isinstance(value, torch.device) or (
        isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu", "meta")
    )
