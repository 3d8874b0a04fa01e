"""Measure one operator's libraries beside kernels of ours on this machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from harness.domain.digest import digest_source
from harness.domain.errors import UsageError
from harness.domain.peers import ClockAgreement, Protocol, Row
from harness.domain.report import BestPair
from harness.domain.vocabulary import Backend
from harness.hardware import gpu
from harness.operators.base import OperatorSpec
from harness.peers import figures
from harness.peers.registry import here, peers_of, versions
from harness.peers.session import Asked, PeerSession

BASELINE = "baseline"
ROUNDS, PAIRS = {Backend.TRITON: 5, Backend.NUMBA: 5}, {Backend.TRITON: 20, Backend.NUMBA: 8}
UNKNOWN_CACHE, CPU_BYTES = 32 << 20, 2 << 30
"""A CPU whose caches nobody names, and the memory of which a ring may take its share there."""
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One session: rows, agreement of the clocks, best pairs, raw samples, seconds that the device was held. ``failed``
    says on which shapes our kernels could not be timed; ``rates`` are the device's measured roofs."""

    rows: tuple[Row, ...]
    clocks: tuple[ClockAgreement, ...]
    best: tuple[BestPair, ...]
    samples: dict[str, Any]
    versions: dict[str, str]
    notes: tuple[str, ...]
    held_s: float
    failed: tuple[str, ...] = ()
    rates: dict[str, float] = field(default_factory=dict)


def measure(spec: OperatorSpec, backend: Backend, workload: str, hardware: str, sources: Mapping[str, str], *,
            rounds: int | None = None, pairs: int | None = None, told: Told = lambda text: None) -> Measured:
    """Libraries and the kernels in ``sources`` (``baseline`` among them) on every shape of a workload.

    The shipped baseline, which people wrote, is the control: it is also called natively beside the libraries. No other
    kernel is, because that process has no walls.

    Raises:
        UsageError: a Triton workload on a host without that GPU.
        InfrastructureError: our kernels cannot be timed here.
    """
    points = spec.workloads[workload].shapes[backend]
    peers = peers_of(spec.name)
    control = (BASELINE, spec.baseline(backend)) if sources.get(BASELINE) == spec.baseline(backend) else None
    tried = tuple(peer.name for peer in peers if here(peer, backend) is None)
    asked = Asked(spec.name, backend, workload, hardware, tuple(point.label for point in points), tried, control,
                  _device(backend, hardware))
    with ThreadPoolExecutor(1) as pool:  # our plans and contents are made while libraries are compiled
        making = pool.submit(_ours, spec, backend, workload, hardware, sources)
        session = PeerSession(asked, making.result, told=told)
        try:
            taken = session.run(rounds or ROUNDS[backend], pairs or PAIRS[backend])
        finally:
            session.close()
            if making.exception() is None:
                making.result().close()
    kernels = {name: digest_source(text) for name, text in sources.items()}
    found = versions() | {name: str(taken.facts[name]) for name in ("cudnn", "cuda") if taken.facts.get(name)}
    dtype = spec.workloads[workload].dtypes[backend]
    rows = figures.rows_of(taken, spec, points, dtype, peers, kernels, control and control[0], found)
    clocks = figures.clocks_of(taken, spec, control[0], kernels[control[0]]) if control else ()
    return Measured(rows, clocks, figures.best_of(taken, rows), figures.raw(taken), found, tuple(taken.notes),
                    taken.held_s, tuple(f"{label}: {text}" for label, text in taken.failed.items()), taken.rates)


def protocol(backend: Backend, rounds: int | None = None, pairs: int | None = None) -> Protocol:
    """How ``measure`` takes its figures, in words."""
    n, m = rounds or ROUNDS[backend], pairs or PAIRS[backend]
    if backend is Backend.TRITON:
        text = (f"{n} rounds with fresh buffers, {m} samples a round and side in random order, launcher rounds of our "
                "kernels and rounds of the libraries in turn; every sample on contents never seen before, a ring of at "
                "least three times the L2 cache and four slots, caches flushed, calls captured in a CUDA graph (where "
                "a row says otherwise, called from the host) in batches of about 100 us between device events.")
    else:
        text = (f"{n} rounds, {m} samples a round and side in random order, fresh processes of our kernels and rounds "
                "of the libraries in turn on the same pinned cores; new contents in every sample, a ring larger than "
                "the caches, batches of about 5 ms by the wall clock.")
    return Protocol(n, m, text)


def _device(backend: Backend, hardware: str) -> dict[str, Any]:
    if backend is Backend.TRITON:
        if not gpu.present(hardware):
            raise UsageError(f"The GPU '{hardware}' is not in this host, so no library can be measured on it. Run the "
                             "report where it is, or with --backend numba.", code="unknown_hardware")
        return {}
    from harness.hardware.cores import reserve
    from harness.hardware.detect import detect_cpu

    return {"cores": list(reserve().timing), "cache_bytes": detect_cpu().last_level_bytes or UNKNOWN_CACHE,
            "memory_bytes": CPU_BYTES}


def _ours(spec: OperatorSpec, backend: Backend, workload: str, hardware: str, sources: Mapping[str, str]) -> Any:
    from harness.peers import ours

    points = spec.workloads[workload].shapes[backend]
    if backend is Backend.NUMBA:
        return ours.CpuClock(spec, workload, points, sources)
    from harness.backends.triton.launcher.process import open_device

    return ours.PlanClock(spec, workload, points, sources, hardware, open_device)


def documented(measured: Measured) -> Mapping[str, Any]:
    """The session as JSON values, raw samples included."""
    from harness.domain.codec import to_document

    return {field.name: to_document(getattr(measured, field.name)) for field in dataclasses.fields(measured)}
