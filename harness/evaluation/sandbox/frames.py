"""Length-prefixed JSON over a unix stream socket, with file descriptors beside it.

Both ends use it; only the judge's end faces an untrusted peer, and there every length is capped before it is read.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

HEAD = struct.Struct("<I")
MAX_FDS = 250  # the kernel takes 253 in one message
MAX_FRAME = 64 << 20
MAX_DIGITS = 30
"""Longer integers are refused: no float and no document holds them, and their arithmetic fails where nobody looks."""


class FrameError(Exception):
    """The peer closed the socket, or sent something that is not a frame."""


class Closed(FrameError):
    """The peer closed the socket."""


class Late(FrameError):
    """No whole frame arrived before the deadline."""


def send(sock: socket.socket, document: Any, fds: Sequence[int] = ()) -> None:
    """Send one JSON document; ``fds`` travel with its first bytes."""
    body = json.dumps(document, separators=(",", ":")).encode()
    data = HEAD.pack(len(body)) + body
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        sent = sock.sendmsg([data], ancillary)
        if sent < len(data):
            sock.sendall(data[sent:])
    except TimeoutError as error:
        raise Late("the peer does not read") from error
    except OSError as error:
        raise Closed(str(error)) from error


def receive(sock: socket.socket, *, deadline: float | None = None, limit: int = MAX_FRAME,
            descriptors: bool = True) -> tuple[Any, list[int]]:
    """Receive one document and the descriptors that came with it.

    ``deadline`` is a ``time.monotonic()`` instant. On any error the descriptors received so far are closed. Without
    ``descriptors`` the kernel drops what is sent along: a peer that is not trusted must not fill this process's table.

    Raises:
        Closed, Late, FrameError: see the classes.
    """
    fds: list[int] = []
    try:
        head = _exactly(sock, HEAD.size, deadline, fds, descriptors)
        (length,) = HEAD.unpack(head)
        if length > limit:
            raise FrameError(f"a frame of {length} bytes is over the limit of {limit}")
        body = _exactly(sock, length, deadline, fds, descriptors)
        document = json.loads(body, parse_int=_integer)
        if b"\\u" in body or b"\xed" in body:  # else there is no surrogate in it
            document = _writable(document)
        return document, fds
    except (ValueError, RecursionError) as error:
        close_all(fds)
        raise FrameError(f"not JSON: {error}") from error
    except FrameError:
        close_all(fds)
        raise


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _writable(value: Any) -> Any:
    """``value`` with question marks for lone surrogates, which no UTF-8 document can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_writable(item) for item in value]
    if isinstance(value, dict):
        return {_writable(key): _writable(item) for key, item in value.items()}
    return value


def _exactly(sock: socket.socket, count: int, deadline: float | None, fds: list[int], descriptors: bool) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Late("no answer before the deadline")
            sock.settimeout(left)
        try:
            most = min(count - len(parts), 1 << 20)
            data, got = socket.recv_fds(sock, most, MAX_FDS)[:2] if descriptors else (sock.recv(most), [])
        except TimeoutError as error:
            raise Late("no answer before the deadline") from error
        except OSError as error:
            raise Closed(str(error)) from error
        fds += got
        if not data:
            raise Closed("the peer closed the socket")
        parts += data
    return bytes(parts)


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors, whatever state they are in."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)

