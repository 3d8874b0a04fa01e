"""Runs the compile process: one disposable, limited child per request that sees IR texts and nothing else."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.backends.triton.targets import Target
from harness.domain.digest import digest_document
from harness.domain.errors import InfrastructureError

CHILD = Path(__file__).with_name("child.py")
MEMORY_BYTES = 8 << 30
REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class KernelSource:
    """One kernel as the plan carries it: IR text, its kind (``ttir``, ``ttgir``) and the compiler's options."""

    ir: str
    kind: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the compiler made of a kernel. ``problem`` is empty, or says why there is no binary:
    ``refused`` (the IR holds what plans may not), ``infeasible`` (more than the device has), ``error`` (it does
    not compile), ``crash``, ``timeout``."""

    problem: str = ""
    text: str = ""
    registers: int = 0
    stack_bytes: int = 0
    spill_bytes: int = 0
    shared_bytes: int = 0
    num_warps: int = 0
    num_ctas: int = 1
    global_scratch_bytes: int = 0
    binary: str = ""
    symbol: str = ""
    cubin: bytes = field(default=b"", repr=False)


@dataclass
class CompilerProcess:
    """Compiles kernels for one target; remembers what it compiled, because an unchanged kernel is common."""

    target: Target
    compiler: str = ""
    _known: OrderedDict[str, KernelFacts] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def compile(self, kernels: Sequence[KernelSource], *, deadline_s: float = 60.0) -> list[KernelFacts]:
        """Facts of each kernel, in order.

        Raises:
            InfrastructureError: the compile process does not start at all.
        """
        keys = [digest_document([kernel.ir, kernel.kind, kernel.options]) for kernel in kernels]
        with self._lock:
            missing = {key: kernel for key, kernel in zip(keys, kernels, strict=True) if key not in self._known}
            if missing:
                for key, facts in zip(missing, self._run(list(missing.values()), deadline_s), strict=True):
                    self._known[key] = facts
            result = [self._known[key] for key in keys]
            for key in missing:
                if self._known[key].problem in ("crash", "timeout"):
                    del self._known[key]  # may be the machine's fault: try again next time
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return result

    def _run(self, kernels: list[KernelSource], deadline_s: float) -> list[KernelFacts]:
        code, out, log = _child(self.target, kernels, deadline_s)
        if code == 0:
            document = json.loads(out)
            self.compiler = document["compiler"]
            return [_facts(answer) for answer in document["kernels"]]
        if len(kernels) > 1:  # find the one that ended the process
            return [self._run([kernel], deadline_s)[0] for kernel in kernels]
        if code is None or code == -signal.SIGXCPU:
            return [KernelFacts("timeout", f"The compiler did not finish within {deadline_s:g} s.")]
        if code < 0:
            return [KernelFacts("crash", f"The compiler crashed with {signal.Signals(-code).name}.")]
        last = log.strip().rpartition("\n")[2]
        if "MemoryError" in last or "bad_alloc" in log:
            return [KernelFacts("crash", f"The compiler ran out of its {MEMORY_BYTES >> 30} GiB of memory.")]
        raise InfrastructureError(f"The Triton compile process failed: {last or f'exit code {code}'}. "
                                  "Run 'python -m harness doctor'.")


def _child(target: Target, kernels: list[KernelSource], deadline_s: float) -> tuple[int | None, str, str]:
    """Exit code (``None`` when it was late), answer and log of one compile process."""
    request = {"capability": target.capability, "seconds": max(1, int(deadline_s)), "memory_bytes": MEMORY_BYTES,
               "kernels": [{"ir": k.ir, "kind": k.kind, "options": k.options} for k in kernels]}
    with tempfile.TemporaryDirectory(prefix="kernelopt-compile-") as folder:
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder,
                       "TRITON_DISABLE_LINE_INFO": "1"}
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment, cwd=folder, start_new_session=True)
        try:
            out, log = process.communicate(json.dumps(request).encode(), timeout=deadline_s)
            return process.returncode, out.decode("utf-8", "replace"), log.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            return None, "", ""
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _facts(answer: dict[str, Any]) -> KernelFacts:
    for problem in ("refused", "infeasible", "error"):
        if problem in answer:
            return KernelFacts(problem, str(answer[problem]))
    return KernelFacts(**{**answer, "cubin": base64.b64decode(answer["cubin"])})


_processes: dict[str, CompilerProcess] = {}


def compiler_for(target: Target) -> CompilerProcess:
    """This process's compiler for ``target``."""
    return _processes.setdefault(target.name, CompilerProcess(target))
