"""The sandbox modes: which module a warm server imports and what its environment holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend, Outcome

DECLINES = (Outcome.UNSUPPORTED_HERE, Outcome.RESOURCE_INFEASIBLE)
SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Mode:
    """One kind of warm server. ``module`` offers ``preload()``, called once in the server (imports only, no threads),
    and ``serve(channel)``, called in every candidate process. ``data_bytes`` bounds a candidate's private memory.
    ``declines``: outcomes beyond the candidate's own faults that its processes may report."""

    name: str
    module: str
    environment: Mapping[str, str] = field(default_factory=dict)
    data_bytes: int = 4 << 30
    declines: tuple[Outcome, ...] = ()


MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("numba", "harness.backends.numba.child"),
        Mode("triton-plan", "harness.backends.triton.plan_child", declines=DECLINES),
        Mode("triton-derive", "harness.backends.triton.derive.child", declines=DECLINES),
        Mode("triton-interpret", "harness.backends.triton.interpret_child", {"TRITON_INTERPRET": "1"},
             declines=DECLINES),
    )
}


def backend_of(name: str) -> Backend:
    """The backend whose kernels run in the mode called ``name``."""
    return Backend.NUMBA if name == Backend.NUMBA else Backend.TRITON


def mode(name: str) -> Mode:
    """The mode called ``name``.

    Raises:
        UsageError: naming the known modes.
    """
    if name not in MODES:
        raise UsageError(f"There is no sandbox mode '{name}'. Known: {', '.join(MODES)}.")
    return MODES[name]
