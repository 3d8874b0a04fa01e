"""Sees what Triton launches natively: wraps the active driver's launcher and loader, which then do their work."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any

from harness.backends.triton.compiler.elf import code_digest
from harness.backends.triton.recorder import packing


class Memory:
    """Names native pointers: arguments by their number, scratch by order of first use in a call.

    Everything launched is kept alive until the call is over, so that no two allocations of it share an address.
    """

    def __init__(self, arguments: Sequence[Any]) -> None:
        """``arguments`` are the whole allocations, in signature order."""
        spans = sorted((whole.data_ptr(), whole.data_ptr() + whole.nbytes, number)
                       for number, whole in enumerate(arguments))
        self._starts = [start for start, _, _ in spans]
        self._spans = spans
        self.forget()

    def forget(self) -> None:
        """A new call begins."""
        self._scratch: dict[int, int] = {}
        self._kept: list[Any] = []

    def pointer(self, path: str, value: Any) -> dict[str, Any]:
        """A tensor, or what Triton takes for one, as argument or scratch and byte offset."""
        if value is None:
            return {"null": True}
        address = int(value.data_ptr()) if hasattr(value, "data_ptr") else int(value)
        at = bisect.bisect_right(self._starts, address) - 1
        if at >= 0 and address < self._spans[at][1]:
            return {"argument": self._spans[at][2], "offset": address - self._spans[at][0]}
        base = value if hasattr(value, "untyped_storage") else getattr(value, "base", None)
        if base is None:
            return {"address": "raw"}
        self._kept.append(base)
        start = int(base.untyped_storage().data_ptr())
        number = self._scratch.setdefault(start, len(self._scratch))
        return {"scratch": number, "offset": address - start}

    def integer(self, path: str, number: int) -> None:
        """Every number is compared by its bytes."""


class Capture:
    """Replaces ``driver.launcher_cls`` and ``driver.utils.load_binary``; ``launches`` holds what one call launched."""

    def __init__(self, driver: Any, memory: Memory) -> None:
        self.launches: list[dict[str, Any]] = []
        self._memory = memory
        self._codes: dict[Any, str] = {}
        load, real, capture = driver.utils.load_binary, driver.launcher_cls, self

        def load_binary(name: str, binary: bytes, *rest: Any) -> Any:
            loaded = load(name, binary, *rest)
            capture._codes[loaded[1]] = code_digest(binary, name)
            return loaded

        class Watched(real):  # type: ignore[misc, valid-type]
            """The native launcher, watched."""

            def __init__(self, src: Any, metadata: Any) -> None:
                super().__init__(src, metadata)
                self.watched = (src, metadata)

            def __call__(self, x: Any, y: Any, z: Any, stream: Any, function: Any, *rest: Any) -> Any:
                if x * y * z > 0:
                    capture.launches.append(capture.describe(*self.watched, (x, y, z), function, rest[4:]))
                return super().__call__(x, y, z, stream, function, *rest)

        self._watched, self._real, self._driver = Watched, real, driver
        driver.utils.load_binary = load_binary
        driver.launcher_cls = Watched

    def begin(self) -> None:
        """A new call begins."""
        self.launches = []
        self._memory.forget()

    def stop(self) -> None:
        """Launch without looking from now on: the watched launchers become the native ones, at no cost per launch."""
        self._driver.launcher_cls = self._real
        del self._watched.__call__
        self._memory.forget()

    def describe(
        self, src: Any, metadata: Any, grid: tuple[Any, ...], function: Any, values: Sequence[Any]
    ) -> dict[str, Any]:
        """One launch as a document."""
        signature: Mapping[str, Any] = src.signature
        return {
            "function": str(src.fn.fn.__name__),
            "grid": [int(n) for n in grid],
            "num_warps": int(metadata.num_warps),
            "num_ctas": int(metadata.num_ctas),
            "shared_bytes": int(metadata.shared),
            "cooperative": bool(metadata.launch_cooperative_grid),
            "pdl": bool(metadata.launch_pdl),
            "global_scratch": bool(metadata.global_scratch_size),
            "code": self._codes.get(function, "unknown"),
            "args": packing.flatten(signature, values, getattr(metadata, "tensordesc_meta", None), self._memory),
        }
