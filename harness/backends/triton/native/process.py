"""The judge's side of a native process: start it, bound it, read what it says. Nothing it says is trusted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.domain.errors import InfrastructureError

CHILD = Path(__file__).with_name("child.py")
ROOT = CHILD.parents[4]
MOST_BYTES = 4 << 20
PASSED_ON = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CC")
"""What of this process's environment says how CUDA and the C compiler are found."""


class NativeFailed(Exception):
    """The candidate did not get through a native call: it raised, crashed, hung or garbled the answer."""


def ask_native(request: Mapping[str, Any], fds: Sequence[int], *, deadline_s: float) -> dict[str, Any]:
    """The answer of one disposable native process; ``fds`` are the memory files that the request names.

    Raises:
        NativeFailed: in the candidate's hands, see there.
        InfrastructureError: the host has no GPU that starts behind walls, no C compiler or no Triton.
    """
    code, out, log = _run(json.dumps({**request, "seconds": max(1, int(deadline_s))}).encode(), fds, deadline_s)
    if code is None:
        raise NativeFailed(f"The native call did not end within {deadline_s:g} s.")
    last = log.strip().rpartition("\n")[2][:500]
    if code < 0:
        raise NativeFailed(f"The native process was ended by {signal.Signals(-code).name}. {last}".strip())
    document: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(out)
    if not isinstance(document, dict):
        raise NativeFailed(f"The native process left no answer (exit code {code}). {last}".strip())
    if "host" in document:
        raise InfrastructureError(
            f"This host cannot do a parity run: {document['host']}. Nothing was compared. Run 'python -m harness "
            "doctor' where the GPU is.")
    if "fault" in document:
        fault = document["fault"]
        raise NativeFailed(str(fault.get("text") if isinstance(fault, dict) else fault)[:1500])
    return document


def _run(request: bytes, fds: Sequence[int], deadline_s: float) -> tuple[int | None, bytes, str]:
    """Exit code (``None`` when it was late), what it answered and the end of what it printed."""
    with tempfile.TemporaryDirectory(prefix="kernelopt-native-") as folder:
        environment = {"PATH": "/usr/local/cuda/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": folder,
                       "TMPDIR": folder, "PYTHONHASHSEED": "0"}
        environment |= {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        # Files instead of pipes: a flood of output is bounded by the process's own limit, and nobody has to drain it.
        with contextlib.ExitStack() as files:
            given, said, log = (files.enter_context(Path(folder, name).open("w+b")) for name in ("in", "out", "log"))
            given.write(request)
            given.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-I", "-B", str(CHILD), str(ROOT)], stdin=given, stdout=said, stderr=log,
                env=environment, cwd=folder, pass_fds=tuple(fds), start_new_session=True)
            code: int | None = None
            try:
                code = process.wait(timeout=deadline_s)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            said.seek(0)
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - 4096))
            return code, said.read(MOST_BYTES), log.read().decode("utf-8", "replace")
