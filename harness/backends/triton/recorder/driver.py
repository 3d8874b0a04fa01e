"""The driver that Triton launches through while recording: it answers for the target and writes plan steps."""

from __future__ import annotations

import functools
import json
import operator
from typing import Any

import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler.compiler import make_backend
from triton.runtime import _allocation

from harness.backends.triton.properties import driver_properties
from harness.backends.triton.recorder import arguments, constants
from harness.backends.triton.recorder.ircapture import OPTIONS
from harness.backends.triton.recorder.session import CANDIDATE_FILE, Session, current
from harness.backends.triton.recorder.standin import StandIn
from harness.backends.triton.targets import Target
from harness.domain.digest import digest_bytes

_CHECKED_OPTIONS = {"extern_libs", "ir_override", "ptx_options"}


class _Unknown:
    """A figure that only the compile process knows: using it in arithmetic is refused."""

    def _refuse(self, *_: Any) -> Any:
        current().refuse(
            "occupancy_query",
            "Register counts and occupancy are not known on the host. Derive the grid from "
            "shapes and the multiprocessor count.",
        )

    __int__ = __index__ = __float__ = __bool__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = (
        __ge__
    ) = _refuse
    __eq__ = _refuse  # type: ignore[assignment]
    __hash__ = object.__hash__


class _Utilities:
    """What Triton asks its driver's native module for."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def get_device_properties(self, device: int) -> dict[str, int]:
        """The native driver's dictionary, from the target's digest."""
        return driver_properties(self._target)

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Nothing is loaded: registers are found out by the compile process."""
        return object(), 0, _Unknown(), _Unknown(), self._target.threads_per_block


class Launcher:
    """Triton makes one per compiled kernel and calls it per launch."""

    def __init__(self, src: Any, metadata: Any) -> None:
        self._src, self._metadata = src, metadata

    def __call__(
        self,
        x: Any,
        y: Any,
        z: Any,
        stream: Any,
        function: Any,
        packed: Any,
        launch_metadata: Any,
        enter: Any,
        leave: Any,
        *values: Any,
    ) -> None:
        session = current()
        session.check_thread()
        _check(session, self._src, self._metadata, (enter, leave))
        try:
            grid = [operator.index(x), operator.index(y), operator.index(z)]
        except TypeError:
            session.refuse("grid_type", f"The grid ({x}, {y}, {z}) is not made of integers. Use // and triton.cdiv.")
        if min(grid) < 0 or grid[0] > 2**31 - 1 or max(grid[1:]) > 65_535:
            session.refuse(
                "grid_size",
                f"The grid {tuple(grid)} is outside the device's limits "
                "(2147483647, 65535, 65535). Put the large axis first.",
            )
        if 0 in grid:
            return  # the native launcher launches nothing either
        session.add({"launch": _launch(session, self._src, self._metadata, grid, values)})


def _check(session: Session, src: Any, metadata: Any, hooks: tuple[Any, ...]) -> None:
    fn = getattr(src, "fn", None)
    if fn is None:
        session.refuse(
            "foreign_kernel", "A kernel compiled from IR is launched. Launch @triton.jit functions of this file."
        )
    if fn.fn.__code__.co_filename != CANDIDATE_FILE:
        session.refuse("foreign_kernel", f"'{fn.fn.__name__}' is not a kernel function of this file. Copy it here.")
    chains = [*hooks, knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook]
    if any(getattr(hook, "calls", hook is not None) for hook in chains) or fn.pre_run_hooks:
        session.refuse("launch_hook", "A launch hook is installed. Hooks are outside a plan; remove it.")
    runtime = knobs.runtime
    if any(
        getattr(runtime, name, None) is not None
        for name in ("add_stages_inspection_hook", "jit_cache_hook", "jit_post_compile_hook")
    ):
        session.refuse("compiler_hook", "A hook of Triton's compiler is installed. Remove it.")
    if getattr(metadata, "ir_override", None) or getattr(metadata, "ptx_options", None):
        session.refuse("compiler_option", "ir_override and ptx_options replace what the compiler makes. Remove them.")
    libraries = [name for name, _ in metadata.extern_libs]
    if libraries != ["libdevice"]:
        session.refuse("foreign_library", f"extern_libs names {', '.join(libraries)}. Only libdevice is linked.")
    if metadata.profile_scratch_size:
        session.refuse("compiler_option", "Instrumented kernels are not recorded. Remove the instrumentation mode.")
    _check_options(session, metadata)


def _check_options(session: Session, metadata: Any) -> None:
    """Only what a plan carries may decide what is compiled."""
    for name, usual in _defaults(metadata.target).items():
        if name in OPTIONS or name in _CHECKED_OPTIONS:
            continue
        given = getattr(metadata, name, usual)
        if json.dumps(given, default=str) != json.dumps(usual, default=str):
            session.refuse(
                "launch_option",
                f"The kernel is compiled with {name}={given!r}, which a plan does not carry. Remove that option.",
            )


@functools.cache
def _defaults(target: GPUTarget) -> dict[str, Any]:
    return dict(vars(make_backend(target).parse_options({})))


def _launch(session: Session, src: Any, metadata: Any, grid: list[int], values: tuple[Any, ...]) -> dict[str, Any]:
    args = arguments.flatten(session, src.signature, values, getattr(metadata, "tensordesc_meta", None))
    scratch = _global_scratch(session, metadata, grid)
    digest = digest_bytes(metadata.recorded_ir.encode())
    session.add_ir(digest, metadata.recorded_ir)
    names = list(src.fn.arg_names)
    divisible = {path: arguments.divisibility(value) for path, value in arguments.paths(src.attrs, names).items()}
    return {
        "function": src.fn.fn.__name__,
        "ir": digest,
        "kind": metadata.recorded_kind,
        "options": {key: metadata.recorded_options[key] for key in OPTIONS if key in metadata.recorded_options},
        "signature": dict(src.signature),
        "constants": _constants(session, arguments.paths(src.constants, names)),
        "divisible": {path: value for path, value in divisible.items() if value is not None},
        "grid": grid,
        "num_ctas": int(metadata.num_ctas),
        "cooperative": bool(metadata.launch_cooperative_grid),
        "pdl": bool(metadata.launch_pdl),
        "args": [*args, scratch, {"null": True}],
    }


def _constants(session: Session, values: dict[str, Any]) -> dict[str, Any]:
    for path, value in values.items():
        if isinstance(value, int) and session.holds_address(value):
            session.refuse("raw_address", f"The constant '{path}' is an address. Pass the tensor as an argument.")
    try:
        return {path: constants.encode(value) for path, value in values.items()}
    except constants.NotAConstant as error:
        session.refuse(
            "argument_type",
            f"A kernel argument is {error}, which a plan cannot hold. Pass numbers, text, dtypes or kernel functions.",
        )


def _global_scratch(session: Session, metadata: Any, grid: list[int]) -> dict[str, Any]:
    """The implicit pointer before the last: memory from the candidate's allocator, asked for as natively."""
    if not metadata.global_scratch_size:
        return {"null": True}
    size = grid[0] * grid[1] * grid[2] * int(metadata.num_ctas) * int(metadata.global_scratch_size)
    memory = _allocation._allocator.get()(size, int(metadata.global_scratch_align), 0)
    ours = isinstance(memory, StandIn) and memory.session_number == session.number
    if not ours or memory.buffer.bytes < memory.byte_offset + size or "scratch" not in memory.buffer.kind:
        session.refuse(
            "allocator", f"The allocator set with triton.set_allocator must return torch.empty of {size} bytes."
        )
    memory.buffer.kind = "global_scratch"
    return arguments.Recorded(session).pointer("global scratch", memory)


class RecorderDriver(DriverBase):
    """Set with ``triton.runtime.driver.set_active``; one process serves one target."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.utils = _Utilities(target)
        self.launcher_cls = Launcher

    @classmethod
    def is_active(cls) -> bool:
        """Always."""
        return True

    def get_current_target(self) -> GPUTarget:
        """The target as the compiler names it."""
        return GPUTarget("cuda", self.target.capability, self.target.warp)

    def get_current_device(self) -> int:
        """Index of the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int = 0) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Compute capability."""
        return divmod(self.target.capability, 10)

    def get_active_torch_device(self) -> torch.device:
        """The device candidates see."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """torch's module of the device."""
        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Not needed: no launcher is generated."""
        return ty

    def get_benchmarker(self) -> Any:
        """Timing inside run() is refused."""
        return current().refuse(
            "timing",
            "run() times or tunes kernels. Put the winning values in PARAMS, or let the autotune agent search.",
        )

    def get_empty_cache_for_benchmark(self) -> Any:
        """As ``get_benchmarker``."""
        return self.get_benchmarker()

    def clear_cache(self, cache: Any) -> None:
        """As ``get_benchmarker``."""
        self.get_benchmarker()

