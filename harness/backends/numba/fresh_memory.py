"""Fresh memory that is never zero by luck: what `np.empty` returns, in host code and in kernels, is filled with a byte
that changes with every call. For processes that judge; the timed ones allocate as always.

A kernel that reads scratch before it wrote it gives wrong or changing results so, wherever the system would have handed
out zeros. ``install`` acts on this process alone: NumPy allocates through a handler of ours (NEP 49), and numba's
lowering of allocations appends a fill.
"""

from __future__ import annotations

import ctypes
from typing import Any

FILLS = (0xFF, 0x7F, 0xFE)
"""NaN and -1; huge and positive; huge and negative: whatever a kernel does with a stale value, one of them shows."""
_SET_HANDLER = 304
"""Place of ``PyDataMem_SetHandler`` in NumPy's table of functions, fixed since NumPy 1.22."""
_HANDLER_VERSION = 1
_byte = ctypes.c_uint8(FILLS[0])
_kept: list[Any] = []  # what NumPy calls must outlive every array


def turn(call: int) -> None:
    """Choose the fill of call number ``call``."""
    _byte.value = FILLS[call % len(FILLS)]


def install() -> None:
    """Fill fresh memory from now on. Must run before the candidate is imported, on the thread that will call it."""
    if not _kept:
        _through_numpy()
        _through_numba()


class _Allocator(ctypes.Structure):
    _fields_ = (("ctx", ctypes.c_void_p), ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p),
                ("realloc", ctypes.c_void_p), ("free", ctypes.c_void_p))


class _Handler(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _Allocator))


def _through_numpy() -> None:
    """Set the handler that NumPy allocates arrays with. ``np.zeros`` still gets zeros."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    libc = ctypes.CDLL(None)
    for name, takes in (("malloc", 1), ("calloc", 2)):
        function = getattr(libc, name)
        function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * takes
    libc.realloc.restype, libc.realloc.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    pointer, size = ctypes.c_void_p, ctypes.c_size_t

    @ctypes.CFUNCTYPE(pointer, pointer, size)
    def malloc(_: int, asked: int) -> Any:
        address = libc.malloc(asked)
        if address:
            ctypes.memset(address, _byte.value, asked)
        return address

    @ctypes.CFUNCTYPE(pointer, pointer, size, size)
    def calloc(_: int, count: int, each: int) -> Any:
        return libc.calloc(count, each)

    @ctypes.CFUNCTYPE(pointer, pointer, pointer, size)
    def realloc(_: int, address: int, asked: int) -> Any:
        return libc.realloc(address, asked)

    @ctypes.CFUNCTYPE(None, pointer, pointer, size)
    def free(_: int, address: int, __: int) -> None:
        libc.free(address)

    functions = (malloc, calloc, realloc, free)
    addresses = [ctypes.cast(function, pointer).value for function in functions]
    handler = _Handler(b"filled", _HANDLER_VERSION, _Allocator(None, *addresses))
    python = ctypes.pythonapi
    python.PyCapsule_New.restype, python.PyCapsule_New.argtypes = ctypes.py_object, [pointer, ctypes.c_char_p, pointer]
    python.PyCapsule_GetPointer.restype = pointer
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    label = b"mem_handler"
    capsule = python.PyCapsule_New(ctypes.addressof(handler), label, None)
    table = python.PyCapsule_GetPointer(_multiarray_umath._ARRAY_API, None)
    entry = ctypes.cast(table, ctypes.POINTER(pointer))[_SET_HANDLER]
    _kept.extend([*functions, handler, label, capsule, ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entry)(
        capsule)])


def _through_numba() -> None:
    """Append a fill to the code that allocates an array in a kernel. The byte is read when the kernel runs."""
    from llvmlite import ir
    from numba.core import cgutils
    from numba.np import arrayobj

    allocate = arrayobj._empty_nd_impl
    place = ctypes.addressof(_byte)

    def filled(context: Any, builder: Any, arrtype: Any, shapes: Any) -> Any:
        array = allocate(context, builder, arrtype, shapes)
        byte = ir.IntType(8)
        fill = builder.load(builder.inttoptr(ir.Constant(ir.IntType(64), place), byte.as_pointer()))
        cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), fill)
        return array

    arrayobj._empty_nd_impl = filled
