"""A native driver without a GPU: Triton compiles for real, with the real assembler; a launch does nothing."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import _allocation


class Utilities:
    """The native driver's module."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 232_448, "multiprocessor_count": 132, "warpSize": 32}

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        return object(), next(self._numbers), 0, 0, 1024


class Launcher:
    """The native launcher: asks for scratch, launches nothing."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self.metadata = metadata
        self.launched = 0

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
        size = self.metadata.global_scratch_size
        if size:
            _allocation._allocator.get()(x * y * z * self.metadata.num_ctas * size, 128, stream)


class CpuDriver(DriverBase):
    """Says it is an H200 whose memory is the host's."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = Utilities()
        self.launcher_cls = Launcher

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_benchmarker(self) -> Any:
        raise AssertionError("a native call neither times nor tunes")

    def get_empty_cache_for_benchmark(self) -> Any:
        raise AssertionError("a native call neither times nor tunes")

    def clear_cache(self, cache: Any) -> None:
        raise AssertionError("a native call neither times nor tunes")
