"""Candidate processes: warm fork servers, walls that are proved, and the judge's side of each process.

A mode (``modes.py``) names a module with two functions. ``preload()`` runs once in the warm server and only imports.
``serve(channel)`` runs in every candidate process: it takes requests with ``channel.receive() -> (document, fds)``,
maps lent memory with ``channel.lend(fd, nbytes)`` and ``channel.release()``, and answers with
``channel.send(document)``, repeating the request's ``id``. Requests are
``{"op": "load", "source", "bounds_checks", "options"}`` and
``{"op": "call", "arrays", "attributes"}``; a backend adds its own through ``SandboxWorker.ask``. A failure is answered
with ``{"fault": {"outcome", "code", "text", "line"}}``.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from harness.domain.verdict import Isolation

if TYPE_CHECKING:
    from harness.evaluation.sandbox.workers import SandboxOpener

_openers: dict[tuple[int, str], SandboxOpener] = {}
_lock = threading.Lock()


def opener(mode: str) -> SandboxOpener:
    """The opener of ``mode`` within this process; its server starts, and its walls are probed, on first use.

    Raises:
        UsageError: there is no such mode, or this host lacks the compiler that it is for.
        InfrastructureError: its server does not start.
    """
    from harness.backends.present import ensure_present
    from harness.evaluation.sandbox.modes import backend_of
    from harness.evaluation.sandbox.workers import SandboxOpener

    ensure_present(backend_of(mode))
    key = (os.getpid(), mode)  # a forked copy must not share its parent's server
    with _lock:
        if key not in _openers:
            _openers[key] = SandboxOpener(mode)
        return _openers[key]


def proved_isolation(mode: str) -> Isolation:
    """What was proved for ``mode`` in this process; level 0 where no server of it was needed, as for a candidate
    that was refused before anything ran. Starts nothing."""
    with _lock:
        known = _openers.get((os.getpid(), mode))
    return Isolation(0) if known is None else Isolation(known.isolation, known.proved)


def close_all() -> None:
    """End every server of this process; the next use starts them again."""
    with _lock:
        for key in [key for key in _openers if key[0] == os.getpid()]:
            _openers.pop(key).close()


__all__ = ["close_all", "opener", "proved_isolation"]
