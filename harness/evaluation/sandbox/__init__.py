"""Candidate processes: warm fork servers, walls that are proved, and the judge's side of each process.

A mode (``modes.py``) names a module with two functions. ``preload()`` runs once in the warm server and only imports.
``serve(channel)`` runs in every candidate process: it takes requests with ``channel.receive() -> (document, fds)``,
maps lent memory with ``channel.lend(fd, nbytes)`` and ``channel.release()``, and answers with
``channel.send(document)``, repeating the request's ``id``. Requests are ``{"op": "load", "source", "bounds_checks", "options"}`` and
``{"op": "call", "arrays", "attributes"}``; a backend adds its own through ``SandboxWorker.ask``. A failure is answered
with ``{"fault": {"outcome", "code", "text", "line"}}``.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.evaluation.sandbox.opener import SandboxOpener

_openers: dict[tuple[int, str], SandboxOpener] = {}
_lock = threading.Lock()


def opener(mode: str) -> SandboxOpener:
    """The opener of ``mode`` within this process; its server starts, and its walls are probed, on first use.

    Raises:
        UsageError: there is no such mode.
        InfrastructureError: its server does not start.
    """
    from harness.evaluation.sandbox.opener import SandboxOpener

    key = (os.getpid(), mode)  # a forked copy must not share its parent's server
    with _lock:
        if key not in _openers:
            _openers[key] = SandboxOpener(mode)
        return _openers[key]


__all__ = ["opener"]
