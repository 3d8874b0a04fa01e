"""The trusted process between judge and candidate: init of its namespace, holder of its output, freezer, undertaker."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from harness.evaluation.sandbox import frames, tree, watch
from harness.evaluation.sandbox.faults import Notes

OUTPUT_KEPT = 8 << 10
OUTPUT_MOST = 64 << 20
"""A candidate that prints more keeps the machine from its work, and is ended."""


class Keeper:
    """Serves the judge's control socket until the candidate has ended or the judge hangs up; then nothing is left."""

    def __init__(self, control: socket.socket, own_namespace: bool, notes: Notes, allowance: watch.Allowance) -> None:
        self._control = control
        self._own = own_namespace
        self._notes = notes
        self._allowance = allowance
        self._output = bytearray()
        self._printed = 0
        self._candidate = 0
        self._status: int | None = None
        self._excess: str | None = None
        self._frozen = False
        self._due = time.monotonic() + watch.EVERY_MS / 1000

    def keep(self, become: Callable[[int], None], channel: socket.socket) -> None:
        """Fork the candidate, which runs ``become(output pipe)``, and look after it to the end.

        ``channel`` belongs to the candidate alone; it is closed here after the fork.
        """
        tree.ahead(0, tree.KEEPER)  # it works a millisecond at a time, while the judge waits for it
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        read, write = os.pipe()
        self._candidate = os.fork()
        if self._candidate == 0:
            become(write)
        os.close(write)
        channel.close()
        os.set_blocking(read, False)
        poll = select.poll()
        for fd in (self._control.fileno(), wake_read, read):
            poll.register(fd, select.POLLIN)
        while self._status is None and self._excess is None:
            ready = poll.poll(None if self._frozen else watch.EVERY_MS)
            self._look()
            for fd, _ in ready:
                if fd == read:
                    if not self._drain(read):
                        poll.unregister(read)
                elif fd == wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_read, 512)
                    self._reap()
                elif not self._serve():
                    tree.kill(own_namespace=self._own)
                    return
        tree.kill(own_namespace=self._own)
        self._drain(read)
        self._say_ended()

    def _look(self) -> None:
        """Look at what the candidate uses, when it is time; by the clock, because it can keep this process busy."""
        if not self._frozen and self._excess is None and time.monotonic() >= self._due:
            self._excess = watch.excess(self._allowance)
            self._due = time.monotonic() + watch.EVERY_MS / 1000

    def _serve(self) -> bool:
        """Answer one request of the judge; false when it hung up."""
        try:
            asked, _ = frames.receive(self._control)
        except frames.FrameError:
            return False
        answer: dict[str, Any] = {"op": asked["op"]}
        if asked["op"] == "stop":
            answer["done"] = self._frozen = tree.stop(own_namespace=self._own)
            answer["switches"] = tree.involuntary_switches(self._candidate)
            living = tree.members()
            answer["cpu_s"] = tree.cpu_seconds(living) + tree.ended_seconds(living)
        elif asked["op"] == "continue":
            self._frozen = False
            tree.resume()
        elif asked["op"] == "pin":
            for pid in tree.members():  # helpers it forked before would otherwise work on another core
                tree.pin(pid, set(asked["cores"]))
            os.sched_setaffinity(0, set(asked["keeper"]))
        with contextlib.suppress(frames.FrameError):
            frames.send(self._control, answer)
        return True

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._candidate:
                    self._status = status

    def _drain(self, pipe: int) -> bool:
        """Take what the candidate printed, keep the last part; false at the end."""
        for _ in range(64):  # a flood must not keep the keeper from its other work
            try:
                data = os.read(pipe, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._output = (self._output + data)[-OUTPUT_KEPT:]
            self._printed += len(data)
            if self._printed > OUTPUT_MOST:
                self._excess = watch.OUTPUT
                return False
        return True

    def _say_ended(self) -> None:
        code = -signal.SIGKILL if self._status is None else os.waitstatus_to_exitcode(self._status)
        ended = {"event": "ended", "status": code, "output": self._output.decode("utf-8", "replace"),
                 "in_guard": self._notes.in_guard(), "excess": self._excess}
        with contextlib.suppress(frames.FrameError):
            frames.send(self._control, ended)
