"""A request in a thread of its own, so that whoever asks can look at the world meanwhile and hang up at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable

from harness.agents.llm.endpoints import Endpoint
from harness.agents.llm.ports import Delta
from harness.agents.llm.wire.exchange import exchange
from harness.agents.llm.wire.faults import Fault
from harness.agents.llm.wire.retry import LOOK_S, Stopped
from harness.agents.llm.wire.sending import Pieces, Sending

HANG_UP_S = 2.0


class Line:
    """One request. ``told`` and ``cancelled`` are called in the thread that asks, never within an event loop: they may
    use a database."""

    def __init__(self, endpoint: Endpoint, key: str | None, sending: Sending, pieces: Pieces) -> None:
        self._request = (endpoint, key, sending, pieces)
        self._queue: queue.SimpleQueue[Delta | Fault | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Fault | None] | None = None
        self._hung_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ask {endpoint.name}", daemon=True)

    def talk(self, told: Callable[[Delta], None], cancelled: Callable[[], bool]) -> Fault | None:
        """Ask and pass on what comes; ``None`` when the answer is whole.

        Raises:
            Stopped: ``cancelled`` said so; the connection is closed by then.
        """
        self._thread.start()
        looked = 0.0
        try:
            while True:
                try:
                    item = self._queue.get(timeout=LOOK_S)
                except queue.Empty:
                    item = Delta("text", "")
                if not isinstance(item, Delta):
                    return item
                if item.text:
                    told(item)
                if time.monotonic() - looked >= LOOK_S:
                    looked = time.monotonic()
                    if cancelled():
                        raise Stopped
        finally:
            self._hang_up()

    def _hang_up(self) -> None:
        """Close the connection if it is still open: the endpoint stops, and stops counting."""
        self._hung_up.set()
        if self._loop is not None and self._task is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop may end in this very moment
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(HANG_UP_S)

    def _run(self) -> None:
        end: Fault | None = Fault("cut", "the request ended without a word")
        try:
            end = asyncio.run(self._exchange())
        except asyncio.CancelledError:
            end = None
        finally:
            self._queue.put(end)  # whatever happens here, somebody waits for it

    async def _exchange(self) -> Fault | None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._hung_up.is_set():
            return None
        endpoint, key, sending, pieces = self._request
        return await exchange(endpoint, key, sending, pieces, self._queue.put)
