"""Reads a cubin: the code of one kernel and its parameters' sizes. Standard library only; the bytes are not trusted."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_PARAMETER = struct.Struct("<IHHI")
_MACHINE = 190  # EM_CUDA
_EMPTY_SECTION = 8  # SHT_NOBITS takes no bytes of the file
# .nv.info: format (1 byte), attribute (1), size or value (2); only this format is followed by as many bytes.
_SIZED, _KPARAM_INFO = 0x04, 0x17


class NotACubin(ValueError):
    """The bytes are no cubin, or hold no such kernel."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter: bytes from the start of the parameter area, bytes it takes."""

    offset: int
    size: int


def code_digest(cubin: bytes, symbol: str) -> str:
    """SHA-256 of the machine code of ``symbol`` (its ``.text`` section), as ``sha256:...``.

    Line tables, names and build paths lie outside: equal code has equal digests wherever it was compiled.

    Raises:
        NotACubin: not a CUDA ELF file, or without that kernel.
    """
    return "sha256:" + hashlib.sha256(section(cubin, f".text.{symbol}")).hexdigest()


def parameters(cubin: bytes, symbol: str) -> tuple[Parameter, ...]:
    """The parameters of ``symbol`` in order, from ``.nv.info`` (EIATTR_KPARAM_INFO).

    Raises:
        NotACubin: not a CUDA ELF file, without that kernel, or with a table that contradicts itself.
    """
    data = section(cubin, f".nv.info.{symbol}")
    found: dict[int, Parameter] = {}
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _SIZED:
            continue
        if at + size > len(data):
            raise NotACubin("the parameter table ends in the middle of an entry")
        if attribute == _KPARAM_INFO and size == _PARAMETER.size:
            _, ordinal, offset, flags = _PARAMETER.unpack_from(data, at)
            found[ordinal] = Parameter(offset, flags >> 18 & 0x3FFF)
        at += size
    if sorted(found) != list(range(len(found))):
        raise NotACubin("parameters are missing from the table")
    return tuple(found[ordinal] for ordinal in range(len(found)))


def section(cubin: bytes, name: str) -> bytes:
    """The bytes of section ``name``.

    Raises:
        NotACubin: not a CUDA ELF file, or without that section.
    """
    if len(cubin) < _HEADER.size or not cubin.startswith(b"\x7fELF\x02\x01"):
        raise NotACubin("no 64-bit ELF header")
    header = _HEADER.unpack_from(cubin)
    machine, table, entry, count, names_at = header[2], header[6], header[11], header[12], header[13]
    if machine != _MACHINE or entry != _SECTION.size or names_at >= count or table + entry * count > len(cubin):
        raise NotACubin("no CUDA section table")
    rows = [_SECTION.unpack_from(cubin, table + entry * number) for number in range(count)]
    names = _bytes_of(cubin, rows[names_at])
    wanted = name.encode()
    for row in rows:
        if names[row[0]:].partition(b"\0")[0] == wanted:
            return _bytes_of(cubin, row)
    raise NotACubin(f"no section {name}")


def _bytes_of(cubin: bytes, row: tuple[int, ...]) -> bytes:
    if row[1] == _EMPTY_SECTION:
        return b""
    start, size = row[4], row[5]
    if start + size > len(cubin):
        raise NotACubin("a section lies outside the file")
    return cubin[start : start + size]
