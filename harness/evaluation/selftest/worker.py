"""A worker process of the self-test: one kernel's name a line in, one result a line out, until the input ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO

from harness.evaluation.selftest.corpus import whole_corpus
from harness.evaluation.selftest.runner import run_one


def serve(asked: IO[str], answers: IO[str]) -> None:
    """Answer until ``asked`` ends or nobody listens; the sandbox servers of this process stay warm in between."""
    kernels = {kernel.name: kernel for kernel in whole_corpus()}
    for line in asked:
        wanted = json.loads(line)
        result = run_one(kernels[wanted["name"]], hardware=wanted["hardware"])
        try:
            answers.write(json.dumps(result.document()) + "\n")
            answers.flush()
        except BrokenPipeError:
            return


def _leave(signum: int, frame: object) -> None:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _leave)  # leave through atexit, which ends the sandbox servers
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing but answers may reach the parent
    serve(sys.stdin, own)
