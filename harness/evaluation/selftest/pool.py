"""The corpus over several worker processes that share nothing: each has its own judge, sandbox and launcher."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO

from harness.domain.vocabulary import Outcome, Stage
from harness.evaluation.selftest.corpus import CorpusKernel
from harness.evaluation.selftest.results import CorpusResult, result_of
from harness.evaluation.selftest.runner import place_of, run_corpus

WORKER = (sys.executable, "-m", "harness.evaluation.selftest.worker")
ROOT = Path(__file__).parents[3]
END_S = 20.0
"""How long a worker may take to end its sandbox servers before it is killed."""


def run_pooled(kernels: Sequence[CorpusKernel], *, jobs: int, hardware: str | None = None,
               command: Sequence[str] = WORKER) -> Generator[CorpusResult, None, None]:
    """Evaluate the kernels in ``jobs`` processes and yield results as they come, in no particular order.

    Closing the iterator early ends the workers with everything they started; kernels that were not finished are
    simply not reported. A worker that dies makes its kernel ``infra_error`` and is replaced.
    """
    if jobs <= 1:
        yield from run_corpus(kernels, hardware)
        return
    waiting: queue.SimpleQueue[CorpusKernel] = queue.SimpleQueue()
    finished: queue.SimpleQueue[CorpusResult | BaseException] = queue.SimpleQueue()
    for kernel in kernels:
        waiting.put(kernel)
    lanes = [_Lane(waiting, finished, hardware, command) for _ in range(min(jobs, len(kernels)))]
    try:
        for lane in lanes:
            lane.start()
        for _ in kernels:
            result = finished.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        for lane in lanes:
            lane.end()
        for lane in lanes:
            if lane.ident is not None:
                lane.join(timeout=END_S)


class _Lane(threading.Thread):
    """One worker process and the thread that hands it one kernel after the other."""

    def __init__(self, waiting: queue.SimpleQueue[CorpusKernel],
                 finished: queue.SimpleQueue[CorpusResult | BaseException], hardware: str | None,
                 command: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._waiting, self._finished, self._hardware, self._command = waiting, finished, hardware, command
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._over = False

    def run(self) -> None:
        """Until no kernel waits or the lane is ended."""
        while not self._over:
            try:
                kernel = self._waiting.get_nowait()
            except queue.Empty:
                break
            try:
                self._finished.put(self._one(kernel))
            except BaseException as error:  # noqa: BLE001 - the caller waits for exactly one answer per kernel
                self._finished.put(error)
        self._close()

    def _one(self, kernel: CorpusKernel) -> CorpusResult:
        process = self._worker()
        stdin, stdout = _pipes(process)
        try:
            stdin.write(json.dumps({"name": kernel.name, "hardware": self._hardware}) + "\n")
            stdin.flush()
            line = stdout.readline()
        except OSError:
            line = ""
        if line:
            return result_of(json.loads(line), kernel)
        code = process.wait()
        self._close()
        return CorpusResult(kernel, Outcome.INFRA_ERROR, Stage.ADMIT, "infra_error",
                            f"The worker process of the self-test ended with status {code}. The kernel was not judged; "
                            "run the self-test again.", None, 0.0, place=place_of(kernel.backend, self._hardware))

    def _worker(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._over:
                raise InterruptedError("the self-test was stopped")
            if self._process is None:
                # Its own session: a Ctrl-C reaches the parent alone, which ends the workers in order.
                self._process = subprocess.Popen(self._command, cwd=ROOT, stdin=subprocess.PIPE, text=True,
                                                 stdout=subprocess.PIPE, start_new_session=True)
            return self._process

    def end(self) -> None:
        """End the worker, whatever it is doing; its sandbox servers end with it."""
        self._over = True
        self._close(patiently=False)

    def _close(self, *, patiently: bool = True) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        stdin, stdout = _pipes(process)
        with contextlib.suppress(OSError):
            stdin.close()
        if not patiently:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        stdout.close()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a worker of the self-test has no pipes")
    return process.stdin, process.stdout
