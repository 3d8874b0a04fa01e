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
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.backends.triton.compiler.elf import NotACubin, code_digest, parameters
from harness.backends.triton.targets import Target
from harness.domain.digest import digest_document
from harness.domain.errors import InfrastructureError

CHILD = Path(__file__).with_name("child.py")
ROOT = CHILD.parents[4]
MEMORY_BYTES = 8 << 30
REMEMBERED = 256
KERNELS_PER_PROCESS = 2
"""A further process pays for its import of Triton, about as much as a small kernel takes, only for so many."""


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
    not compile), ``crash``, ``timeout``. ``binary`` is the digest of the whole file, ``code`` of the machine code
    alone, which is what equal kernels share; ``parameters`` are the bytes of each in the binary's own table.
    ``triggers`` and ``waits``: see ``lint.Looked``; ``unwaited`` are the numbers of the parameters that it reads or
    writes through before it waits."""

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
    code: str = ""
    parameters: tuple[int, ...] = ()
    triggers: bool = False
    waits: bool = False
    unwaited: tuple[int, ...] = ()
    cubin: bytes = field(default=b"", repr=False)


@dataclass
class CompilerProcess:
    """Compiles kernels for one target; remembers what it compiled, because an unchanged kernel is common."""

    target: Target
    compiler: str = ""
    walls: tuple[str, ...] = ()  # that stood around the last compile process
    processes: int | None = None  # at a time; by default as many as the cores carry
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
        """Facts of each kernel in order, from as many processes as the cores carry."""
        until = time.monotonic() + deadline_s
        shares = min(-(-len(kernels) // KERNELS_PER_PROCESS), self.processes or parallel())
        if shares == 1:
            return self._one_process(kernels, until)
        parts = [list(range(start, len(kernels), shares)) for start in range(shares)]
        found: dict[int, KernelFacts] = {}
        with ThreadPoolExecutor(shares) as pool:
            work = [pool.submit(self._one_process, [kernels[i] for i in part], until) for part in parts]
            for part, share in zip(parts, work, strict=True):
                found.update(zip(part, share.result(), strict=True))
        return [found[number] for number in range(len(kernels))]

    def _one_process(self, kernels: list[KernelSource], until: float) -> list[KernelFacts]:
        began = time.monotonic()
        code, out, log = _child(self.target, kernels, max(1.0, until - began))
        if code == 0:
            document = json.loads(out)
            self.compiler, self.walls = document["compiler"], tuple(document["walls"])
            return [_facts(answer) for answer in document["kernels"]]
        if len(kernels) > 1:  # find the one that ended the process
            return [self._one_process([kernel], until)[0] for kernel in kernels]
        if code is None or code == -signal.SIGXCPU:
            return [KernelFacts("timeout", f"The compiler did not finish within {time.monotonic() - began:.0f} s.")]
        if code < 0:
            return [KernelFacts("crash", f"The compiler crashed with {signal.Signals(-code).name}.")]
        last = log.strip().rpartition("\n")[2]
        if "MemoryError" in last or "bad_alloc" in log:
            return [KernelFacts("crash", f"The compiler ran out of its {MEMORY_BYTES >> 30} GiB of memory.")]
        raise InfrastructureError(f"The Triton compile process failed: {last or f'exit code {code}'}. "
                                  "Run 'python -m harness doctor'.")


def parallel() -> int:
    """Compile processes at a time: one per core this process may use, but one alone where there are two or fewer, which
    the rest of the evaluation needs."""
    cores = len(os.sched_getaffinity(0))
    return cores if cores > 2 else 1


def _child(target: Target, kernels: list[KernelSource], deadline_s: float) -> tuple[int | None, str, str]:
    """Exit code (``None`` when it was late), answer and log of one compile process."""
    request = {"capability": target.capability, "seconds": max(1, int(deadline_s)), "memory_bytes": MEMORY_BYTES,
               "kernels": [{"ir": k.ir, "kind": k.kind, "options": k.options} for k in kernels]}
    with tempfile.TemporaryDirectory(prefix="kernelopt-compile-") as folder:
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder,
                       "TRITON_DISABLE_LINE_INFO": "1"}
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(CHILD), str(ROOT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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
    cubin = base64.b64decode(answer["cubin"])
    try:
        code, sizes = code_digest(cubin, answer["symbol"]), tuple(p.size for p in parameters(cubin, answer["symbol"]))
    except NotACubin as error:
        return KernelFacts("error", f"The compiler's binary cannot be read: {error}.")
    return KernelFacts(**{**answer, "cubin": cubin, "code": code, "parameters": sizes,
                          "unwaited": tuple(answer["unwaited"])})


_processes: dict[str, CompilerProcess] = {}


def compiler_for(target: Target) -> CompilerProcess:
    """This process's compiler for ``target``."""
    return _processes.setdefault(target.name, CompilerProcess(target))
