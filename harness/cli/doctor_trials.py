"""What the doctor tries, one function each: it returns what it found, or raises what went wrong."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from harness.backends.present import absent
from harness.cli.doctor_check import ASK, Check, lacking
from harness.domain.vocabulary import Backend

if TYPE_CHECKING:
    from harness.domain.request import EvaluationRequest

TRIAL = """
import numba

@numba.njit
def _double(x, out):
    for i in range(x.shape[0]):
        out[i] = 2 * x[i]

def run(x, out):
    _double(x, out)
"""
STEADY_CV = 0.05

def python_and_packages() -> Check:
    """Versions that the pins ask for."""
    from harness.hardware.detect import version

    found = {name: version(name) for name in ("numba", "numpy", "torch", "triton")}
    text = f"Python {sys.version.split()[0]}, " + ", ".join(f"{name} {value}" for name, value in found.items())
    missing = [name for name, value in found.items() if value == "absent"]
    if missing == ["triton"]:
        return lacking("packages", f"{text}. {absent(Backend.TRITON)}")
    if missing:
        return Check("packages", False, text, f"{', '.join(missing)} missing: those kernels cannot be judged.", ASK)
    return Check("packages", True, text)


def numba_kernel() -> Check:
    """Compile and run a kernel in the sandbox."""
    import numpy as np

    from harness.evaluation import sandbox
    from harness.evaluation.ports import Lent

    size = 1000
    arrays, lent = [], []
    kinds: tuple[tuple[str, Literal["input", "output"]], ...] = (("x", "input"), ("out", "output"))
    for name, kind in kinds:
        fd = os.memfd_create(name)
        os.ftruncate(fd, 4 * size)
        arrays.append(np.memmap(f"/proc/self/fd/{fd}", np.float32, "r+", shape=(size,)))
        lent.append(Lent(name, kind, "float32", (size,), (1,), 0, 4 * size, fd))
    arrays[0][:] = np.arange(size)
    worker = sandbox.opener("numba").open(deadline_s=60.0)
    try:
        worker.load(TRIAL)
        seconds = worker.call(lent, {}).seconds
    finally:
        worker.close()
        for item in lent:
            os.close(item.fd)
    if not np.array_equal(arrays[1], 2 * arrays[0]):
        return Check("numba kernel", False, "it ran but the result is wrong", "Verdicts here are worthless.", ASK)
    return Check("numba kernel", True, f"compiled and ran in the sandbox in {seconds:.2f} s, result right")


def triton_compile() -> Check:
    """Record a baseline and read its resources, without a GPU."""
    from harness.domain.vocabulary import Stage
    from harness.evaluation.pipeline import evaluate

    why = absent(Backend.TRITON)
    if why is not None:
        return lacking("triton compile", why)
    verdict = evaluate(_baseline_request(), until=Stage.RESOURCES)
    launches = verdict.resources.launches
    if not launches:
        said = verdict.reasons[0].text if verdict.reasons else f"outcome {verdict.outcome}"
        return Check("triton compile", False, said, "Triton campaigns cannot be planned here.", ASK)
    first = launches[0]
    text = f"rms_norm for {verdict.target}: {first.registers} registers, {first.shared_bytes} bytes of shared memory"
    return Check("triton compile", True, text)


def _baseline_request() -> EvaluationRequest:
    """The shipped Triton baseline of rms_norm, to be planned."""
    from harness.domain.digest import digest_source
    from harness.domain.goal import Goal
    from harness.domain.request import EvaluationRequest, OperatorRef, Required, SourceRef
    from harness.domain.vocabulary import Backend, Purpose
    from harness.operators import registry

    spec = registry.get("rms_norm")
    source = spec.baseline(Backend.TRITON)
    return EvaluationRequest(
        job="doctor", nonce="doctor", purpose=Purpose.PROBE, operator=OperatorRef(spec.name, spec.version),
        backend=Backend.TRITON, hardware="interpreter", workload="llm",
        goal=Goal(operator=spec.name, backend=Backend.TRITON, hardware="interpreter", workload="llm"),
        candidate=SourceRef(digest_source(source), source), required=Required(isolation=0),
    )


def cores_and_clock() -> Check:
    """Reserved cores, resolution of the clock, steadiness of a fixed piece of work."""
    from harness.evaluation.timing.statistics import robust_cv
    from harness.hardware.cores import reserve
    from harness.hardware.detect import hardware_name

    cores = reserve()
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores.timing)
    try:
        times = [_fixed_work() for _ in range(60)][10:]
    finally:
        os.sched_setaffinity(0, before)
    spread = robust_cv(times)
    text = (f"{hardware_name()}: core(s) {_list(cores.timing)} for the clock, {_list(cores.rest)} for the rest; a "
            f"fixed piece of work varies by {spread:.1%}")
    if set(cores.timing) & set(cores.rest):
        return Check("cores", False, text, "Everything shares one core: times vary and rounds are repeated.",
                     "Give the machine two cores.", optional=True)
    if spread > STEADY_CV:
        return Check("cores", False, text, "Comparisons need larger effects: more of them end as 'cannot tell'.",
                     "Stop other work on this machine while it measures.", optional=True)
    return Check("cores", True, text)


def _fixed_work() -> float:
    began = time.perf_counter()
    sum(range(20_000))
    return time.perf_counter() - began


def _list(cores: tuple[int, ...]) -> str:
    return ", ".join(map(str, cores))


def priority_of_the_clock() -> Check:
    """Whether timed processes may run ahead of others."""
    from harness.evaluation.sandbox import tree

    allowed = tree.ahead(0, tree.TIMED)
    tree.ordinary(0)
    if allowed:
        return Check("priority", True, "timed processes run ahead of other work on their core")
    return Check("priority", False, "timed processes share their core with other work",
                 "Rounds that were interrupted are measured again, which takes longer.",
                 "Grant CAP_SYS_NICE, or raise 'rtprio' for this user in /etc/security/limits.conf.", optional=True)


def memory_roof() -> Check:
    """The measured roofs."""
    from harness.hardware.roofs import roofs

    found = roofs()
    last = found.levels[-1]
    return Check("memory roof", True, f"{last.read / 1e9:.1f} GB/s read, {last.copy / 1e9:.1f} GB/s copy beyond the "
                 f"caches; {found.flops / 1e9:.0f} GFLOP/s in float32 products")


TRIALS: tuple[Callable[[], Check], ...] = (
    python_and_packages, cores_and_clock, priority_of_the_clock, numba_kernel, memory_roof, triton_compile,
)
