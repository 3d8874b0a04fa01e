"""Where a crash happened: a native signal handler that notes the faulting address, and the guard ranges around
lent memory. The notes live in a page that the keeper shares with the candidate process; they only ever decide between
two refusals, so a forged note gains nothing.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import signal
import struct

from harness.evaluation.sandbox import linux

PAGE = 4096
GUARD = 64 << 20
"""Bytes of unreadable address space on each side of lent memory."""
MAX_RANGES = 64

_IR = """
define void @note(i32 %signal, ptr %info, ptr %context) {{
  %from = getelementptr i8, ptr %info, i64 16
  %address = load i64, ptr %from
  store i64 %address, ptr inttoptr (i64 {page} to ptr)
  %slot = load i64, ptr inttoptr (i64 {next} to ptr)
  %missing = icmp eq i64 %slot, 0
  br i1 %missing, label %done, label %chain
chain:
  %next = inttoptr i64 %slot to ptr
  call void %next(i32 %signal)
  br label %done
done:
  ret void
}}
"""


class _Action(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p)]


class Notes:
    """The shared page: faulting address, next handler, number of guard ranges, then (low, high) pairs."""

    def __init__(self) -> None:
        """Reserve the page and compile the handler; call once, in the warm server."""
        self._address = linux.mmap(0, PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
        self._engine, self._handler = _compile(self._address)

    def renew(self) -> None:
        """A fresh page at the same place, for one candidate; call in its keeper before forking it."""
        flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | linux.MAP_FIXED
        linux.mmap(self._address, PAGE, mmap.PROT_READ | mmap.PROT_WRITE, flags)

    def install(self) -> None:
        """Catch SIGSEGV and SIGBUS in this process: note the address, print the Python line, then die of it."""
        if self._handler is None:
            return
        faulthandler.enable()
        libc = ctypes.CDLL(None, use_errno=True)
        for number in (signal.SIGSEGV, signal.SIGBUS):
            previous = _Action()
            libc.sigaction(int(number), None, ctypes.byref(previous))
            self._words(8, previous.handler or 0)
            flags = 4 | 0x08000000 | 0x80000000  # SA_SIGINFO, SA_ONSTACK, SA_RESETHAND
            action = _Action(self._handler, (ctypes.c_ulong * 16)(), ctypes.c_int(flags).value, None)
            libc.sigaction(int(number), ctypes.byref(action), None)

    def guard(self, low: int, high: int) -> None:
        """Remember one more guard range."""
        (count,) = struct.unpack("<Q", ctypes.string_at(self._address + 16, 8))
        if count < MAX_RANGES:
            self._words(24 + 16 * count, low, high)
            self._words(16, count + 1)

    def clear(self) -> None:
        """Forget all guard ranges."""
        self._words(16, 0)

    def in_guard(self) -> bool:
        """Whether the noted address lies in a guard range (keeper's side)."""
        data = ctypes.string_at(self._address, PAGE)
        address, _, count = struct.unpack_from("<QQQ", data)
        ranges = [struct.unpack_from("<QQ", data, 24 + 16 * i) for i in range(min(count, MAX_RANGES))]
        return any(low <= address < high for low, high in ranges)

    def _words(self, offset: int, *values: int) -> None:
        data = struct.pack(f"<{len(values)}Q", *values)
        ctypes.memmove(self._address + offset, data, len(data))


def _compile(page: int) -> tuple[object, int | None]:
    try:
        import llvmlite.binding as llvm
    except ImportError:  # without it a crash is classified without its address
        return None, None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(_IR.format(page=page, next=page + 8))
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine, engine.get_function_address("note")
