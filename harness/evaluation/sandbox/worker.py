"""The judge's side of one candidate process. Nothing it says is trusted; every way it can end is classified here."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from harness.domain.errors import InfrastructureError
from harness.domain.vocabulary import Outcome
from harness.evaluation.ports import CallReport, CandidateFault, Fault, Lent, LoadReport
from harness.evaluation.sandbox import frames, removal
from harness.evaluation.sandbox.client import Forked
from harness.evaluation.sandbox.verdicts_on_faults import crashed, exceeded, forged, late, said

CONTROL_S, OBITUARY_S = 10.0, 5.0
DEADLINE_S = 60.0
CGROUP = "cgroup"
MOST_CLAIMED = 1 << 53
"""A number beyond this, from a process that is not trusted, is nonsense and would not survive a document."""


class SandboxWorker:
    """One candidate in its own process; implements ``ports.Worker``.

    ``load`` and ``call`` are ``ask`` with a fixed vocabulary; a backend's stage may use ``ask`` for more.
    """

    def __init__(self, forked: Forked, *, deadline_s: float | None = None, bounds_checks: bool = False,
                 options: Mapping[str, Any] | None = None, declines: Sequence[Outcome] = ()) -> None:
        self._control, self._channel, self._tmp, self._group = forked
        self._deadline_s = deadline_s or DEADLINE_S
        self._bounds_checks = bounds_checks
        self._options = dict(options or {})
        self._declines = declines
        self._closed = False
        self._frozen = False
        self._count = 0
        self.standing: tuple[str, ...] = ()
        self.missing: dict[str, str] = {}
        self.switches = 0  # involuntary context switches so far, as the keeper last saw them
        self.cpu_s = 0.0  # spent by the process and all it started, up to the last freeze

    def wait_ready(self, patience_s: float = 20.0) -> None:
        """Wait until the process stands behind its walls.

        Raises:
            InfrastructureError: it never got there.
        """
        try:
            ready, _ = frames.receive(self._channel, deadline=time.monotonic() + patience_s, descriptors=False)
            self._channel.settimeout(None)
            self.standing = tuple(ready["ready"])
            self.missing = dict(ready["missing"])
            if self._group is not None:
                self._group.joined()
        except frames.FrameError as error:
            self.close()
            raise InfrastructureError(f"A sandbox process did not start: {error}.") from error

    def load(self, source: str) -> LoadReport:
        """Import the candidate. See ``ports.Worker.load``."""
        began = time.perf_counter()
        self.ask({"op": "load", "source": source, "bounds_checks": self._bounds_checks, "options": self._options})
        return LoadReport(seconds=time.perf_counter() - began)

    def call(self, lent: Sequence[Lent], attributes: Mapping[str, float]) -> CallReport:
        """Run the candidate once on ``lent``. See ``ports.Worker.call``."""
        fds = list(dict.fromkeys(item.fd for item in lent))
        arrays = [describe(item, fds.index(item.fd)) for item in lent]
        began = time.perf_counter()
        answer = self.ask({"op": "call", "arrays": arrays, "attributes": dict(attributes)}, fds)
        seconds = time.perf_counter() - began
        return CallReport(seconds=seconds, claimed_s=claimed_seconds(answer),
                          scratch_bytes=_whole(answer.get("scratch_bytes")))

    def ask(
        self, document: dict[str, Any], fds: Sequence[int] = (), *, deadline_s: float | None = None
    ) -> dict[str, Any]:
        """Send one request, wait for its answer, freeze the process and its tree, return the answer.

        Raises:
            CandidateFault: the candidate failed, crashed, was late, ended early or forged an answer.
        """
        if self._closed:
            raise InfrastructureError("This sandbox process was closed already; open another one.")
        self.resume()
        answer = self.exchange(document, fds, deadline_s=deadline_s)
        self.freeze()
        self.check_quiet()
        return answer

    def exchange(
        self, document: dict[str, Any], fds: Sequence[int] = (), *, deadline_s: float | None = None
    ) -> dict[str, Any]:
        """``ask`` without freezing and resuming, for the clock: the process must be running."""
        allowed = deadline_s or self._deadline_s
        self._count += 1
        try:
            self._channel.settimeout(allowed)
            frames.send(self._channel, {**document, "id": self._count}, fds)
            answer, _ = frames.receive(self._channel, deadline=time.monotonic() + allowed, descriptors=False)
        except frames.Late as error:
            self.close()
            raise CandidateFault(late(allowed)) from error
        except frames.Closed as error:
            raise CandidateFault(self._obituary()) from error
        except frames.FrameError as error:
            self.close()
            raise CandidateFault(forged(str(error))) from error
        finally:
            with contextlib.suppress(OSError):
                self._channel.settimeout(None)
        if not isinstance(answer, dict) or answer.get("id") != self._count:
            self.close()
            raise CandidateFault(forged("the answer does not belong to the question"))
        if "fault" in answer:
            self.freeze()
            raise CandidateFault(said(answer["fault"], self._declines))
        return answer

    def check_quiet(self) -> None:
        """Refuse a process that sent more than its answer; call while it is frozen.

        Raises:
            CandidateFault: with outcome ``reward_hack``.
        """
        if select.select([self._channel], [], [], 0)[0]:
            with contextlib.suppress(OSError):
                if not self._channel.recv(1, socket.MSG_PEEK):
                    raise CandidateFault(self._obituary())
            self.close()
            raise CandidateFault(forged("bytes followed the answer"))

    def freeze(self) -> None:
        """Stop the process and everything it started.

        Raises:
            CandidateFault: it cannot be stopped, or has ended.
        """
        if not self._frozen:
            answer = self._command({"op": "stop"})
            if not answer.get("done"):
                self.close()
                text = "The candidate's processes could not be stopped while its output was read. Start no processes."
                raise CandidateFault(Fault(Outcome.RUNTIME_ERROR, "not_stoppable", text))
            self._frozen = True
            self.switches = int(answer.get("switches", 0))
            counted = self._group.cpu_seconds() if CGROUP in self.standing and self._group is not None else None
            self.cpu_s = float(answer.get("cpu_s", 0.0)) if counted is None else counted

    def resume(self) -> None:
        """Let the process run again."""
        if self._frozen:
            self._command({"op": "continue"})
            self._frozen = False

    def pin(self, cores: Sequence[int], rest: Sequence[int]) -> None:
        """Keep every thread of the process on ``cores`` from now on, and its keeper on ``rest``."""
        self._command({"op": "pin", "cores": list(cores), "keeper": list(rest)})

    def close(self) -> None:
        """Kill the process and everything it started; idempotent."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        self._await_end()
        self._control.close()
        self._channel.close()
        removal.remove(self._tmp)
        if self._group is not None:
            self._group.remove()

    def _await_end(self) -> None:
        """The keeper closes its socket as its last act: by then the whole tree is dead."""
        deadline = time.monotonic() + CONTROL_S
        with contextlib.suppress(frames.FrameError, OSError):
            while True:
                frames.receive(self._control, deadline=deadline)

    def _command(self, document: dict[str, Any]) -> dict[str, Any]:
        try:
            frames.send(self._control, document)
            answer, _ = frames.receive(self._control, deadline=time.monotonic() + CONTROL_S)
        except frames.Late as error:
            self.close()
            raise InfrastructureError("A sandbox keeper did not answer; the process was killed.") from error
        except frames.FrameError as error:
            if self._closed:
                raise InfrastructureError("This sandbox process was closed already.") from error
            raise CandidateFault(self._obituary()) from error
        if answer.get("event") == "ended":
            raise CandidateFault(self._bury(answer))
        return answer

    def _obituary(self) -> Fault:
        """Ask the keeper how the candidate ended.

        Raises:
            InfrastructureError: the keeper, which no candidate can reach, has ended itself.
        """
        try:
            ended, _ = frames.receive(self._control, deadline=time.monotonic() + OBITUARY_S)
        except frames.Late:
            ended = {}
        except frames.FrameError as error:
            self.close()
            raise InfrastructureError("The keeper of a candidate's process was ended from outside. Nothing is held "
                                      "against the candidate; evaluate it again.") from error
        return self._bury(ended)

    def _bury(self, ended: dict[str, Any]) -> Fault:
        self.close()
        if "status" not in ended:
            return forged("it closed its channel and kept running")
        if ended.get("excess"):
            return exceeded(ended["excess"])
        return crashed(ended["status"], ended.get("output", ""), in_guard=bool(ended.get("in_guard")))


def describe(item: Lent, index: int) -> dict[str, Any]:
    """One lent array as the candidate's process is told of it; ``fd`` is an index into the descriptors sent."""
    return {"name": item.name, "kind": item.kind, "dtype": item.dtype, "shape": list(item.shape),
            "strides": list(item.strides), "offset": item.offset, "nbytes": item.nbytes, "fd": index}


def claimed_seconds(answer: Mapping[str, Any]) -> float | None:
    """The worker's own time, ``None`` where it is no finite number: JSON carries integers that no float holds."""
    value = answer.get("claimed_s")
    if not isinstance(value, int | float) or isinstance(value, bool) or not -MOST_CLAIMED < value < MOST_CLAIMED:
        return None
    return float(value)


def _whole(value: object) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_CLAIMED
    return value if fits else None  # type: ignore[return-value]
