"""The launcher's own device code, as PTX that the driver compiles when it starts.

``renew_*``: new contents for a ring slot, ``target[i] = round(base[i] * factors[(start + i) % count])``, the product in
float32 and one rounding to nearest even. ``fingerprint``: a sum over 16-byte words that any changed bit changes.
``differ_*``: how many elements of two arrays are apart. ``read``: nothing
but loads, four of 16 bytes in flight per thread, for the read roof. ``stamp``: wall nanoseconds, multiprocessor cycles
and multiprocessor number. ``hold``: busy for some time, away from memory. ``health``: a pattern that a
healthy device writes right.
"""

from __future__ import annotations

import ctypes
import struct
from ctypes import c_uint, c_ulonglong, c_void_p

from harness.backends.triton.launcher.driver import Cuda

THREADS = 256
MOST_BLOCKS = 132 * 16
READ_BLOCKS = 1024
READ_UNIT = 16 * 4 * THREADS * READ_BLOCKS
"""Bytes that ``read`` takes in one step: what it reads is a multiple of them."""

_HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"

_RENEW = """
.visible .entry renew_{name}(.param .u64 target, .param .u64 base, .param .u64 factors, .param .u64 elements,
                             .param .u64 start, .param .u64 count)
{{
    .reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %d<20>;
    ld.param.u64 %d0, [target]; ld.param.u64 %d1, [base]; ld.param.u64 %d2, [factors];
    ld.param.u64 %d3, [elements]; ld.param.u64 %d4, [start]; ld.param.u64 %d5, [count];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %d6, %r0, %r1; cvt.u64.u32 %d7, %r2; add.u64 %d6, %d6, %d7;
    mul.wide.u32 %d8, %r1, %r3;
    add.u64 %d9, %d4, %d6; rem.u64 %d9, %d9, %d5; rem.u64 %d10, %d8, %d5;
LOOP:
    setp.ge.u64 %p0, %d6, %d3;
    @%p0 bra DONE;
    shl.b64 %d11, %d9, 2; add.u64 %d11, %d2, %d11; ld.global.f32 %f0, [%d11];
    shl.b64 %d12, %d6, {shift}; add.u64 %d13, %d1, %d12; add.u64 %d14, %d0, %d12;
    {load}
    mul.rn.f32 %f2, %f1, %f0;
    {store}
    add.u64 %d6, %d6, %d8; add.u64 %d9, %d9, %d10;
    setp.ge.u64 %p1, %d9, %d5;
    @%p1 sub.u64 %d9, %d9, %d5;
    bra LOOP;
DONE:
    ret;
}}
"""
_DTYPES = {
    "float32": (2, "ld.global.f32 %f1, [%d13];", "st.global.f32 [%d14], %f2;"),
    "float16": (1, "ld.global.b16 %h0, [%d13]; cvt.f32.f16 %f1, %h0;",
                "cvt.rn.f16.f32 %h1, %f2; st.global.b16 [%d14], %h1;"),
    "bfloat16": (1, "ld.global.u16 %r4, [%d13]; shl.b32 %r4, %r4, 16; mov.b32 %f1, %r4;",
                 "cvt.rn.bf16.f32 %h1, %f2; st.global.b16 [%d14], %h1;"),
}
_FOLD = """
    mov.b64 {{%r8, %r9}}, %d6;
    shfl.sync.bfly.b32 %r10, %r8, {step}, 0x1f, 0xffffffff; shfl.sync.bfly.b32 %r11, %r9, {step}, 0x1f, 0xffffffff;
    mov.b64 %d12, {{%r10, %r11}}; add.u64 %d6, %d6, %d12;"""
"""One step of a sum over the 32 threads of a warp: one atomic per warp, or half a million of them take longer than
the reading."""
_DIFFER = """
.visible .entry differ_{name}(.param .u64 left, .param .u64 right, .param .u64 elements, .param .u64 relative,
                              .param .u64 absolute, .param .u64 tally)
{{
    .reg .pred %p<8>; .reg .b16 %h<3>; .reg .b32 %r<8>; .reg .f32 %f<10>; .reg .b64 %d<24>;
    ld.param.u64 %d0, [left]; ld.param.u64 %d1, [right]; ld.param.u64 %d2, [elements];
    ld.param.u64 %d3, [relative]; ld.param.u64 %d4, [absolute]; ld.param.u64 %d5, [tally];
    cvt.u32.u64 %r4, %d3; mov.b32 %f8, %r4; cvt.u32.u64 %r4, %d4; mov.b32 %f9, %r4;
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %d6, %r0, %r1; cvt.u64.u32 %d7, %r2; add.u64 %d6, %d6, %d7;
    mul.wide.u32 %d8, %r1, %r3;
    mov.u64 %d9, 0; mov.u64 %d10, 0xFFFFFFFFFFFFFFFF;
LOOP:
    setp.ge.u64 %p0, %d6, %d2;
    @%p0 bra DONE;
    shl.b64 %d12, %d6, {shift}; add.u64 %d13, %d0, %d12; add.u64 %d14, %d1, %d12;
    {compare}
    @%p1 bra NEXT;
    add.u64 %d9, %d9, 1; min.u64 %d10, %d10, %d6;
NEXT:
    add.u64 %d6, %d6, %d8;
    bra LOOP;
DONE:
    setp.eq.u64 %p0, %d9, 0;
    @%p0 ret;
    atom.global.add.u64 %d15, [%d5], %d9; atom.global.min.u64 %d16, [%d5+8], %d10;
    ret;
}}
"""
_NEAR = """sub.f32 %f3, %f1, %f2; abs.f32 %f3, %f3; abs.f32 %f4, %f1; abs.f32 %f5, %f2; max.f32 %f6, %f4, %f5;
    fma.rn.f32 %f7, %f6, %f8, %f9; setp.le.f32 %p1, %f3, %f7; testp.finite.f32 %p2, %f3; and.pred %p1, %p1, %p2;
    setp.eq.f32 %p2, %f1, %f2; or.pred %p1, %p1, %p2;
    setp.nan.f32 %p3, %f1, %f1; setp.nan.f32 %p4, %f2, %f2; and.pred %p3, %p3, %p4; or.pred %p1, %p1, %p3;"""
_COMPARISONS = {
    "float32": (2, "ld.global.f32 %f1, [%d13]; ld.global.f32 %f2, [%d14]; " + _NEAR),
    "float16": (1, "ld.global.b16 %h0, [%d13]; cvt.f32.f16 %f1, %h0; ld.global.b16 %h1, [%d14]; cvt.f32.f16 %f2, %h1; "
                + _NEAR),
    "bfloat16": (1, "ld.global.u16 %r5, [%d13]; shl.b32 %r5, %r5, 16; mov.b32 %f1, %r5; ld.global.u16 %r6, [%d14]; "
                    "shl.b32 %r6, %r6, 16; mov.b32 %f2, %r6; " + _NEAR),
    "int32": (2, "ld.global.u32 %r5, [%d13]; ld.global.u32 %r6, [%d14]; setp.eq.u32 %p1, %r5, %r6;"),
    "int64": (3, "ld.global.u64 %d17, [%d13]; ld.global.u64 %d18, [%d14]; setp.eq.u64 %p1, %d17, %d18;"),
}
_OTHERS = """
.visible .entry fingerprint(.param .u64 data, .param .u64 words, .param .u64 sum)
{
    .reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %d<20>;
    ld.param.u64 %d0, [data]; ld.param.u64 %d1, [words]; ld.param.u64 %d2, [sum];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %d3, %r0, %r1; cvt.u64.u32 %d4, %r2; add.u64 %d3, %d3, %d4;
    mul.wide.u32 %d5, %r1, %r3;
    mov.u64 %d6, 0;
LOOP:
    setp.ge.u64 %p0, %d3, %d1;
    @%p0 bra DONE;
    shl.b64 %d7, %d3, 4; add.u64 %d7, %d0, %d7;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d7];
    mov.b64 %d8, {%r4, %r5}; mov.b64 %d9, {%r6, %r7};
    mul.lo.u64 %d9, %d9, 0x9E3779B97F4A7C15; xor.b64 %d8, %d8, %d9;
    add.u64 %d10, %d3, 0x632BE59BD9B4E019; mul.lo.u64 %d10, %d10, 0xD6E8FEB86659FD93;
    xor.b64 %d8, %d8, %d10; mul.lo.u64 %d8, %d8, 0xFF51AFD7ED558CCD;
    shr.u64 %d11, %d8, 33; xor.b64 %d8, %d8, %d11;
    add.u64 %d6, %d6, %d8; add.u64 %d3, %d3, %d5;
    bra LOOP;
DONE:
@FOLD
    and.b32 %r2, %r2, 31; setp.ne.u32 %p1, %r2, 0;
    @%p1 ret;
    atom.global.add.u64 %d12, [%d2], %d6;
    ret;
}

.visible .entry read(.param .u64 data, .param .u64 words, .param .u64 sum)
{
    .reg .pred %p<2>; .reg .b32 %r<24>; .reg .b64 %d<14>;
    ld.param.u64 %d0, [data]; ld.param.u64 %d1, [words]; ld.param.u64 %d2, [sum];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %d3, %r0, %r1; cvt.u64.u32 %d4, %r2; add.u64 %d3, %d3, %d4;
    mul.wide.u32 %d5, %r1, %r3; shl.b64 %d6, %d5, 4; shl.b64 %d5, %d5, 2;
    shl.b64 %d7, %d3, 4; add.u64 %d7, %d0, %d7;
    mov.u32 %r20, 0;
LOOP_read:
    setp.ge.u64 %p0, %d3, %d1;
    @%p0 bra DONE_read;
    add.u64 %d8, %d7, %d6; add.u64 %d9, %d8, %d6; add.u64 %d10, %d9, %d6;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d7];
    ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%d8];
    ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%d9];
    ld.global.v4.u32 {%r16, %r17, %r18, %r19}, [%d10];
    xor.b32 %r20, %r20, %r4; xor.b32 %r20, %r20, %r5; xor.b32 %r20, %r20, %r6; xor.b32 %r20, %r20, %r7;
    xor.b32 %r20, %r20, %r8; xor.b32 %r20, %r20, %r9; xor.b32 %r20, %r20, %r10; xor.b32 %r20, %r20, %r11;
    xor.b32 %r20, %r20, %r12; xor.b32 %r20, %r20, %r13; xor.b32 %r20, %r20, %r14; xor.b32 %r20, %r20, %r15;
    xor.b32 %r20, %r20, %r16; xor.b32 %r20, %r20, %r17; xor.b32 %r20, %r20, %r18; xor.b32 %r20, %r20, %r19;
    add.u64 %d3, %d3, %d5; add.u64 %d7, %d10, %d6;
    bra LOOP_read;
DONE_read:
    setp.ne.u32 %p1, %r20, 0x9E3779B9;
    @%p1 ret;
    cvt.u64.u32 %d11, %r20; atom.global.add.u64 %d12, [%d2], %d11;
    ret;
}

.visible .entry stamp(.param .u64 where)
{
    .reg .b32 %r<2>; .reg .b64 %d<5>;
    ld.param.u64 %d0, [where];
    mov.u64 %d1, %globaltimer; mov.u64 %d2, %clock64; mov.u32 %r0, %smid; cvt.u64.u32 %d3, %r0;
    st.global.u64 [%d0], %d1; st.global.u64 [%d0+8], %d2; st.global.u64 [%d0+16], %d3;
    ret;
}

.visible .entry hold(.param .u64 nanoseconds)
{
    .reg .pred %p<2>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [nanoseconds];
    mov.u64 %d1, %globaltimer; add.u64 %d1, %d1, %d0;
LOOP_hold:
    mov.u64 %d2, %globaltimer; setp.lt.u64 %p0, %d2, %d1;
    @%p0 bra LOOP_hold;
    ret;
}

.visible .entry health(.param .u64 where, .param .u64 key)
{
    .reg .b32 %r<4>; .reg .b64 %d<6>;
    ld.param.u64 %d0, [where]; ld.param.u64 %d1, [key];
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
    mul.wide.u32 %d2, %r0, %r1; cvt.u64.u32 %d3, %r2; add.u64 %d2, %d2, %d3;
    mad.lo.u64 %d4, %d2, 0x9E3779B97F4A7C15, %d1;
    shl.b64 %d2, %d2, 3; add.u64 %d2, %d0, %d2; st.global.u64 [%d2], %d4;
    ret;
}
"""


def ptx() -> str:
    """The whole module."""
    renewals = [
        _labelled(_RENEW.format(name=name, shift=shift, load=load, store=store), f"renew_{name}")
        for name, (shift, load, store) in _DTYPES.items()
    ]
    renewals += [
        _labelled(_DIFFER.format(name=name, shift=shift, compare=compare), f"differ_{name}")
        for name, (shift, compare) in _COMPARISONS.items()
    ]
    fold = "".join(_FOLD.format(step=step) for step in (16, 8, 4, 2, 1))
    return _HEAD + "".join(renewals) + _OTHERS.replace("@FOLD", fold)


def _labelled(text: str, name: str) -> str:
    """Labels of a module are shared by its functions' templates: give each its own."""
    for label in ("LOOP", "NEXT", "DONE"):
        text = text.replace(label, f"{label}_{name}")
    return text


class OwnKernels:
    """The loaded module."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        module = c_void_p()
        cuda("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx().encode()))
        self._functions: dict[str, c_void_p] = {}
        names = (*(f"renew_{dtype}" for dtype in _DTYPES), *(f"differ_{dtype}" for dtype in _COMPARISONS))
        for name in (*names, "fingerprint", "read", "stamp", "hold", "health"):
            function = c_void_p()
            cuda("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            self._functions[name] = function

    def renew(self, stream: c_void_p, dtype: str, target: int, base: int, factors: int, elements: int, start: int,
              count: int) -> None:
        """New contents of ``elements`` values at ``target``; see the module's docstring."""
        self._launch(stream, f"renew_{dtype}", elements, target, base, factors, elements, start, count)

    def differ(self, stream: c_void_p, dtype: str, left: int, right: int, elements: int, near: tuple[float, float],
               tally: int) -> None:
        """Count the elements that are apart (``RoundRequest.near``) at ``tally``; the least index goes behind it."""
        relative, absolute = (int.from_bytes(struct.pack("<f", value), "little") for value in near)
        self._launch(stream, f"differ_{dtype}", elements, left, right, elements, relative, absolute, tally)

    def fingerprint(self, stream: c_void_p, data: int, nbytes: int, total: int) -> None:
        """Add the fingerprint of the whole 16-byte words at ``data`` to the 64-bit sum at ``total``."""
        self._launch(stream, "fingerprint", nbytes // 16, data, nbytes // 16, total)

    def read(self, stream: c_void_p, data: int, nbytes: int, total: int) -> None:
        """Read ``nbytes`` at ``data``, a multiple of ``READ_UNIT``."""
        self._launch(stream, "read", READ_BLOCKS * THREADS, data, nbytes // 16, total)

    def stamp(self, stream: c_void_p, where: int) -> None:
        """Three 64-bit words: nanoseconds, cycles, multiprocessor."""
        self._launch(stream, "stamp", 1, where, threads=1)

    def hold(self, stream: c_void_p, nanoseconds: int) -> None:
        """Keep the device busy for so long, touching no memory."""
        self._launch(stream, "hold", 1, nanoseconds, threads=1)

    def health(self, stream: c_void_p, where: int, key: int, blocks: int) -> None:
        """``blocks * THREADS`` words of ``index * 0x9E3779B97F4A7C15 + key``."""
        self._launch(stream, "health", blocks * THREADS, where, key)

    def _launch(self, stream: c_void_p, name: str, items: int, *arguments: int, threads: int = THREADS) -> None:
        values = [c_ulonglong(argument) for argument in arguments]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        blocks = max(1, min(MOST_BLOCKS, -(-items // threads)))
        self._cuda("cuLaunchKernel", self._functions[name], c_uint(blocks), c_uint(1), c_uint(1), c_uint(threads),
                   c_uint(1), c_uint(1), c_uint(0), stream, pointers, c_void_p(0))
