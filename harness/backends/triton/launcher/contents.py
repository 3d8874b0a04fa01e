"""First contents that stay on the device from round to round: large caches take longer to upload than to time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection

from harness.backends.triton.launcher.arena import Arena, Block
from harness.backends.triton.launcher.driver import Cuda
from harness.backends.triton.launcher.memory import mapped

Key = tuple[int, int, int, int, int]


class Contents:
    """Device copies of memory files that nobody can write to any more (sealed), by the file they came from.

    They lie in an arena of their own, which a round does not clear, and are hidden from kernels as all of a round's
    secrets are. What does not fit in ``most_bytes`` is not kept.
    """

    def __init__(self, cuda: Cuda, *, plain: bool, most_bytes: int) -> None:
        self._cuda, self._most = cuda, most_bytes
        self._arena = Arena(cuda, plain=plain)
        self._kept: dict[Key, Block] = {}

    def keep(self, fd: int, offset: int, count: int) -> Block | None:
        """The block that holds ``count`` bytes of ``fd`` from ``offset``; closes ``fd`` where it gives one.

        ``None`` where the file could still change or there is no room: then the caller uploads it.
        """
        if not fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE:
            return None
        facts = os.fstat(fd)
        key = (facts.st_dev, facts.st_ino, facts.st_ctime_ns, offset, count)
        if key in self._kept:
            os.close(fd)
            return self._kept[key]
        if count + sum(block.nbytes for block in self._kept.values()) > self._most:
            return None
        block = self._arena.allocate(count)
        with mapped(fd, offset + count) as view:
            self._cuda.upload(block.address, view + offset, count)
        self._kept[key] = block
        return block

    def hide_all_but(self, used: Collection[Block]) -> None:
        """No kernel of this round has any business with other shapes' contents. The device must be idle."""
        self._arena.hide(block for block in self._kept.values() if block not in used)

    def clear(self) -> None:
        """Give everything back; the device must be idle."""
        self._arena.clear()
        self._kept.clear()
