"""Threads that meet: now and then a store of a kernel is followed by a short sleep, so that other threads run their
iterations in the middle of this one's.

Threads race only where they overlap, and calls of a fraction of a millisecond rarely do on a machine with two cores.
With this what iterations share is overwritten while one of them still needs it. For processes that look for races; it
acts on this process alone and before the candidate is compiled.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

EVERY = 509
"""Stores between two sleeps: a prime, so that no loop's length keeps it on the same store."""
SLEEPS = 200
"""Sleeps of one call at most, on all threads together: a few milliseconds."""
MICROSECONDS = 30
_stores = ctypes.c_uint32(0)
_left = ctypes.c_int32(0)
_installed: list[Any] = []


def turn() -> None:
    """Grant the next call its sleeps."""
    _left.value = SLEEPS


def install(threads: int) -> None:
    """Give kernels ``threads``, and append the sleeps to the code that stores an element of an array. The counters are
    shared by all threads and not exact, which matters to nobody."""
    if _installed:
        return
    from llvmlite import ir
    from numba.core import config
    from numba.np import arrayobj
    from numba.np.ufunc import parallel

    os.environ["NUMBA_NUM_THREADS"] = str(threads)
    config.reload_config()
    parallel.NUM_THREADS = threads  # read once, when numba was imported; no thread runs yet
    store = arrayobj.store_item
    sleep = ctypes.CDLL(None).usleep
    word, wide = ir.IntType(32), ir.IntType(64)
    called = ir.FunctionType(word, [word]).as_pointer()
    address = ctypes.cast(sleep, ctypes.c_void_p).value

    def stored(context: Any, builder: Any, arrayty: Any, val: Any, ptr: Any) -> Any:
        done = store(context, builder, arrayty, val, ptr)
        stores, left = (builder.inttoptr(ir.Constant(wide, ctypes.addressof(counter)), word.as_pointer())
                        for counter in (_stores, _left))
        count = builder.add(builder.load(stores), ir.Constant(word, 1))
        builder.store(count, stores)
        remainder = builder.urem(count, ir.Constant(word, EVERY))
        with builder.if_then(builder.icmp_unsigned("==", remainder, ir.Constant(word, 0)), likely=False):
            more = builder.load(left)
            with builder.if_then(builder.icmp_signed(">", more, ir.Constant(word, 0))):
                builder.store(builder.sub(more, ir.Constant(word, 1)), left)
                builder.call(builder.inttoptr(ir.Constant(wide, address), called), [ir.Constant(word, MICROSECONDS)])
        return done

    arrayobj.store_item = stored
    _installed.append(sleep)
