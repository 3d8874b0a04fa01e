"""Stand-in tensors: real shapes, strides, dtypes and alignments without memory or a GPU.

A stand-in wraps a meta tensor that does all view arithmetic, and says ``cuda:0`` to whoever asks. Views,
empty allocations and fills are recorded; every other operation is refused by name.
"""

from __future__ import annotations

import struct
from typing import Any

import torch

from harness.backends.triton.recorder.session import Buffer, Session, current

_EMPTY = {
    "empty.memory_format",
    "empty_strided.default",
    "empty_like.default",
    "new_empty.default",
    "new_empty_strided.default",
}
# Where the fill value stands among the positional arguments; a constant where the name says it.
_FILLED: dict[str, Any] = {
    "zeros.default": 0,
    "zeros_like.default": 0,
    "new_zeros.default": 0,
    "ones.default": 1,
    "ones_like.default": 1,
    "new_ones.default": 1,
    "full.default": "1",
    "full_like.default": "1",
    "new_full.default": "2",
}
_FILLS = {"zero_.default", "fill_.Scalar"}
_READS = {"_local_scalar_dense", "equal", "is_nonzero", "item", "allclose"}
_COPIES = {"_to_copy", "clone", "copy_", "copy", "_unsafe_view", "cat", "stack", "contiguous"}
# What host code does to a tensor before it reads a number from it.
_SUMMARIES = {
    "max", "min", "amax", "amin", "sum", "mean", "any", "all", "argmax", "argmin", "gt", "lt", "ge", "le", "eq", "ne",
    "count_nonzero", "isnan", "isinf", "isfinite", "unique", "_unique2", "nonzero",
}  # fmt: skip
_WHERE = "Do it in a kernel function of your own."
STRUCT = {
    torch.float32: "<f",
    torch.float64: "<d",
    torch.float16: "<e",
    torch.int8: "<b",
    torch.uint8: "<B",
    torch.int16: "<h",
    torch.int32: "<i",
    torch.int64: "<q",
    torch.bool: "<?",
}


class StandIn(torch.Tensor):
    """A view of a recorded buffer. ``shadow`` is the meta tensor, ``buffer`` the allocation it lies in."""

    shadow: torch.Tensor
    buffer: Buffer
    session_number: int

    @staticmethod
    def __new__(cls, buffer: Buffer, inner: torch.Tensor, number: int) -> StandIn:
        self = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device("meta"),
            requires_grad=False,
        )
        self.shadow, self.buffer, self.session_number = inner, buffer, number
        return self

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return dispatch(current(), func, args, kwargs or {})

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device a candidate sees."""
        return torch.device("cuda", 0)

    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)
    is_cpu = property(lambda self: False)

    @property
    def byte_offset(self) -> int:
        """Bytes from the start of the buffer to the first element."""
        return int(self.shadow.storage_offset()) * self.shadow.element_size()

    def data_ptr(self) -> int:
        """The invented address; good for alignment checks only."""
        return self.buffer.base + self.byte_offset

    def get_device(self) -> int:
        """Index of the device."""
        return 0

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"tensor(shape={tuple(self.shape)}, dtype={self.dtype}, device='cuda:0', values not known here)"

    def __setitem__(self, key: Any, value: Any) -> None:
        current().refuse(
            "library_compute",
            "Assigning to elements of a tensor on the host is not part of a plan. "
            "Use zero_() or fill_() on a view, or write it in a kernel function.",
        )

    def __iter__(self) -> Any:
        return iter(self.unbind(0))


def _reader(name: str) -> Any:
    def read(self: StandIn, *args: Any, **kwargs: Any) -> Any:
        current().refuse(
            "host_read",
            f"'{name}' reads tensor values on the host. No values exist while a plan is "
            "recorded; pass the tensor to the kernel function and read it there.",
        )

    return read


for _name in (
    "item",
    "tolist",
    "numpy",
    "cpu",
    "__int__",
    "__float__",
    "__bool__",
    "__index__",
    "__array__",
    "__complex__",
    "__dlpack__",
    "__contains__",
    "nonzero",
    "untyped_storage",
    "storage",
    "share_memory_",
    "pin_memory",
):
    setattr(StandIn, _name, _reader(_name))
setattr(StandIn, "__cuda_array_interface__", property(_reader("__cuda_array_interface__")))  # noqa: B010


def _unwrap(session: Session, value: Any) -> Any:
    if isinstance(value, StandIn):
        if value.session_number != session.number:
            session.refuse(
                "kept_scratch",
                "A tensor kept from an earlier call or from import is used. run() keeps "
                "no state: allocate scratch inside each call.",
            )
        return value.shadow
    if isinstance(value, torch.Tensor):
        session.refuse(
            "host_tensor",
            "A tensor made outside run() or on the CPU is used. Allocate scratch inside run() with device=x.device.",
        )
    if isinstance(value, list | tuple):
        return type(value)(_unwrap(session, item) for item in value)
    return value


def dispatch(session: Session, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Record a view, an allocation or a fill; refuse any other operation by name."""
    session.check_thread()
    namespace, _, name = str(func).partition(".")
    short = name.partition(".")[0]
    if namespace == "aten" and name in _FILLS:
        target = args[0]
        _unwrap(session, target)
        fill(session, target, 0 if name.startswith("zero") else args[1])
        return target
    if namespace == "aten" and (name in _EMPTY or name in _FILLED):
        inner = func(*_unwrap(session, args), **{**kwargs, "device": "meta"})
        made = allocate(session, "scratch", "scratch", inner)
        if name in _FILLED:
            where = _FILLED[name]
            fill(session, made, args[int(where)] if isinstance(where, str) else where)
        return made
    schema = func._schema
    is_view = (
        bool(schema.returns)
        and all(r.alias_info is not None for r in schema.returns)
        and not any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
    )
    if not is_view:
        _refuse(session, namespace, short)
    source = next((a for a in args if isinstance(a, StandIn)), None)
    if source is None:
        session.refuse("host_tensor", f"'{short}' works on a tensor that is not one of run()'s own.")
    made = func(*_unwrap(session, args), **_unwrap_values(session, kwargs))
    return _wrap(session, source, made)


def _unwrap_values(session: Session, kwargs: dict[str, Any]) -> dict[str, Any]:
    return {key: _unwrap(session, value) for key, value in kwargs.items()}


def _wrap(session: Session, source: StandIn, made: Any) -> Any:
    if isinstance(made, torch.Tensor):
        first, last = _extent(made)
        if first < 0 or last > source.buffer.bytes:
            session.refuse(
                "view_out_of_bounds",
                f"A view reaches byte {last} of '{source.buffer.name}', which has "
                f"{source.buffer.bytes} bytes. Correct its shape, strides or offset.",
            )
        return StandIn(source.buffer, made, session.number)
    if isinstance(made, list | tuple):
        return type(made)(_wrap(session, source, item) for item in made)
    return made


def _extent(inner: torch.Tensor) -> tuple[int, int]:
    """First and one-past-last byte a view touches."""
    first = int(inner.storage_offset())
    last = first + 1 if inner.numel() else first
    for size, stride in zip(inner.shape, inner.stride(), strict=True):
        if inner.numel():
            last += (size - 1) * stride
    return first * inner.element_size(), last * inner.element_size()


def allocate(session: Session, kind: str, name: str, inner: torch.Tensor) -> StandIn:
    """A new buffer that holds exactly what ``inner`` spans."""
    session.check_thread()
    buffer = session.allocate(
        kind,
        name,
        _extent(inner)[1],
        tuple(inner.shape),
        tuple(inner.stride()),
        str(inner.dtype).removeprefix("torch."),
    )
    return StandIn(buffer, inner, session.number)


def fill(session: Session, view: StandIn, value: Any) -> None:
    """Record filling a dense view with a number, rounded to the view's dtype."""
    inner = view.shadow
    if isinstance(value, torch.Tensor) or not isinstance(value, int | float | bool):
        session.refuse("fill_pattern", "A fill takes a number known on the host, not a tensor.")
    first, last = _extent(inner)
    if last - first != inner.numel() * inner.element_size():
        session.refuse(
            "strided_fill",
            "A fill of a strided view cannot be recorded. Fill the whole buffer, or write a kernel function for it.",
        )
    session.fill(view.buffer, first, last - first, pattern_of(inner.dtype, value))


def pattern_of(dtype: torch.dtype, value: float) -> bytes:
    """The little-endian bytes of ``value`` in ``dtype``; every dtype of one to eight bytes has one."""
    if dtype in STRUCT:
        number = bool(value) if dtype is torch.bool else value
        if not dtype.is_floating_point and dtype is not torch.bool:
            number = int(value)
        return struct.pack(STRUCT[dtype], number)
    with torch.utils._python_dispatch._disable_current_modes(), torch._C.DisableTorchFunction():
        cell = torch.full((1,), value, dtype=dtype, device="cpu")
        return bytes(cell.view(torch.uint8).tolist())


def _refuse(session: Session, namespace: str, short: str) -> None:
    if short in _READS:
        session.refuse(
            "host_read",
            f"'{short}' reads tensor values on the host. No values exist while a plan is recorded; "
            "pass the tensor to the kernel function and read it there.",
        )
    if short in _COPIES:
        session.refuse(
            "library_copy",
            f"'{short}' copies a tensor with torch (a converting .to(), .float(), a copying "
            f"reshape or contiguous() do too). {_WHERE}",
        )
    name = short if namespace == "aten" else f"{namespace}::{short}"
    if short in _SUMMARIES:
        session.refuse(
            "library_compute",
            f"'{name}' computes with torch, and its result could not be read: no tensor values exist while a plan is "
            "recorded. Pass the tensor to the kernel function and look at its values there.",
        )
    session.refuse(
        "library_compute",
        f"'{name}' computes or makes values with torch. A plan holds views, empty and filled "
        f"allocations and launches of your own kernel functions only. {_WHERE}",
    )
