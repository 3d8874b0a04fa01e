"""The reader of cubins: hand-made files, damaged files."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backends.triton.compiler.elf import NotACubin, Parameter, code_digest, parameters, section


def cubin(sections: dict[str, bytes], machine: int = 190) -> bytes:
    """A minimal 64-bit ELF file with these sections."""
    names = b"\0"
    rows = [(0, 0, 0, 0)]
    body = b""
    for name, data in {**sections, ".shstrtab": b""}.items():
        at = len(names)
        names += name.encode() + b"\0"
        rows.append((at, 1, 64 + len(body), len(data)))
        body += data
    rows[-1] = (rows[-1][0], 3, 64 + len(body), len(names))
    body += names
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(rows),
        len(rows) - 1)
    table = b"".join(struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, start, size, 0, 0, 1, 0)
                     for name, kind, start, size in rows)
    return header + body + table


def entry(ordinal: int, offset: int, size: int) -> bytes:
    return struct.pack("<BBHIHHI", 4, 0x17, 12, 0, ordinal, offset, size << 18 | 0x1F000)


# An attribute without a body, one with another body, then parameters in the compiler's order: last first.
INFO = struct.pack("<BBHBBH4s", 3, 0x50, 255, 4, 0x37, 4, b"\x80\0\0\0") + entry(1, 8, 4) + entry(0, 0, 8)


def test_code_is_the_text_section_alone():
    one = cubin({".text.k": b"code", ".debug_line": b"/a/path", ".nv.info.k": INFO})
    two = cubin({".debug_line": b"/another/longer/path", ".nv.info.k": INFO, ".text.k": b"code"})
    assert one != two
    assert code_digest(one, "k") == code_digest(two, "k") == "sha256:" + hashlib.sha256(b"code").hexdigest()
    assert code_digest(cubin({".text.k": b"c0de"}), "k") != code_digest(one, "k")


def test_parameters_in_order():
    assert parameters(cubin({".nv.info.k": INFO}), "k") == (Parameter(0, 8), Parameter(8, 4))
    assert parameters(cubin({".nv.info.k": b""}), "k") == ()


@pytest.mark.parametrize("data", [
    b"", b"\x7fELF", b"MZ" * 100, cubin({".text.k": b"code"}, machine=62), cubin({".text.other": b"code"}),
    cubin({".text.k": b"code"})[:-1],
])
def test_what_is_no_cubin_of_this_kernel(data):
    with pytest.raises(NotACubin):
        code_digest(data, "k")


@pytest.mark.parametrize("table", [entry(1, 8, 4), entry(0, 0, 8)[:-2]])
def test_a_table_that_contradicts_itself(table):
    with pytest.raises(NotACubin):
        parameters(cubin({".nv.info.k": table}), "k")


@settings(max_examples=300)
@given(st.data())
def test_damaged_files_never_raise_anything_else(data):
    whole = bytearray(cubin({".text.k": b"code" * 8, ".nv.info.k": INFO}))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    for read in (lambda: section(damaged, ".text.k"), lambda: parameters(damaged, "k")):
        try:
            read()
        except NotACubin:
            pass
