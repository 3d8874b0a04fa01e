"""One measurement at a time on this machine, whoever starts it: a file lock that the system drops with its holder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.domain.errors import InfrastructureError
from harness.hardware import gpu

POLL_S = 0.05
FOLDER = "KERNELOPT_LOCKS"


def lock_folder() -> str:
    """Where locks lie: ``KERNELOPT_LOCKS``, which whoever gives a process a temporary folder of its own has to pass on,
    else the system's temporary folder."""
    return os.environ.get(FOLDER) or tempfile.gettempdir()


def lock_path(device: str) -> Path:
    """Where the lock of ``device`` lies: the same for every installation and user of this machine. A GPU's is of the
    card that this process may use, so that two cards of one host are measured side by side."""
    card = gpu.card() if device.startswith("nvidia-") else None
    own = f"-{card.uuid}" if card is not None and gpu.name_of(card) == device else ""
    return Path(lock_folder(), f"kernelopt-clock-{device}{own}.lock")


@contextlib.contextmanager
def device(name: str, patience_s: float, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the device ``name``; ``waiting`` is called once where somebody else has it.

    Raises:
        InfrastructureError: it was not free within ``patience_s`` seconds.
    """
    fd = _open(lock_path(name))
    try:
        _acquire(fd, name, patience_s, waiting)
        yield
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        text = f"The clock's lock {path} cannot be opened: {error}. Mend its permissions."
        raise InfrastructureError(text) from error
    with contextlib.suppress(PermissionError):
        os.fchmod(fd, 0o666)  # whatever the umask says: other users have to wait for it too
    return fd


def _acquire(fd: int, name: str, patience_s: float, waiting: Callable[[], None] | None) -> None:
    until = time.monotonic() + patience_s
    told = False
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if not told and waiting is not None:
            waiting()
        told = True
        if time.monotonic() >= until:
            raise InfrastructureError(
                f"Another measurement held {name} for {patience_s:.0f} s. Nothing was timed; evaluate again later."
            )
        time.sleep(POLL_S)
