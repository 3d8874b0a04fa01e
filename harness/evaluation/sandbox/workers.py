"""Opens candidate processes of one mode, each behind walls that were proved when the mode's server started."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from harness.domain.errors import InfrastructureError
from harness.evaluation.sandbox.client import ServerClient
from harness.evaluation.sandbox.modes import mode
from harness.evaluation.sandbox.proof import Proof, prove
from harness.evaluation.sandbox.worker import SandboxWorker


class SandboxOpener:
    """Implements ``ports.WorkerOpener``; starts the server anew when it has died."""

    def __init__(self, name: str, *, namespaces: bool = True, without: Sequence[str] = ()) -> None:
        """Start the server of mode ``name`` and probe its walls (about a second).

        ``namespaces`` false does without them, ``without`` names further walls to leave out (``walls.OPTIONAL``): to
        see what the others hold. The level proved falls accordingly.
        """
        self._namespaces = namespaces
        self._without = tuple(without)
        self._mode = mode(name)
        self._lock = threading.Lock()
        self._server, self.proof = self._start()

    @property
    def isolation(self) -> int:
        """The proved level, 0 to 3."""
        return self.proof.level

    @property
    def proved(self) -> tuple[str, ...]:
        """The walls that stood and held."""
        return self.proof.proved

    @property
    def server_pid(self) -> int:
        """Process id of the warm server."""
        return self._server.process.pid

    def open(self, *, bounds_checks: bool = False, deadline_s: float | None = None,
             options: Mapping[str, Any] | None = None) -> SandboxWorker:
        """A fresh candidate process. ``options``: ``cores`` (list of CPU numbers it is pinned to from the start),
        ``data_bytes`` (its private memory); the rest is passed on with ``load``.

        Raises:
            InfrastructureError: the server cannot be started again or the process does not start.
        """
        given = dict(options or {})
        asked: dict[str, object] = {"uid": self.proof.own_uid, "without": list(self._without)}
        for name in ("cores", "data_bytes"):
            if name in given:
                asked[name] = given.pop(name)
        forked = self._living().fork(asked)
        worker = SandboxWorker(forked, deadline_s=deadline_s, bounds_checks=bounds_checks, options=given,
                               declines=self._mode.declines)
        worker.wait_ready()
        return worker

    def close(self) -> None:
        """End the server."""
        self._server.close()

    def _living(self) -> ServerClient:
        with self._lock:
            if not self._server.alive:
                self._server.close()
                self._server, self.proof = self._start()
            return self._server

    def _start(self) -> tuple[ServerClient, Proof]:
        """The strongest server that candidates survive in: some containers grant namespaces but no use of them."""
        server = ServerClient(self._mode, namespaces=self._namespaces)
        if server.jail or not self._namespaces:
            try:
                return server, prove(server, self._without)
            except InfrastructureError as error:
                server.close()
                if not self._namespaces:
                    raise
                trouble = f"candidates do not survive in namespaces here: {error.text}"
        else:  # it may be half inside some: a fresh one is in none
            trouble = server.trouble
            server.close()
        server = ServerClient(self._mode, namespaces=False)
        server.trouble = trouble
        try:
            return server, prove(server, self._without)
        except InfrastructureError:
            server.close()
            raise
