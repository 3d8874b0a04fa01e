"""Whether this host has what a backend's kernels are compiled and judged with. Imports none of it."""

from __future__ import annotations

from importlib.util import find_spec

from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend

NEEDS: dict[Backend, tuple[str, ...]] = {Backend.TRITON: ("triton", "torch"), Backend.NUMBA: ("numba", "torch")}
TITLES = {"triton": "Triton", "torch": "PyTorch", "numba": "Numba"}
CODE = "backend_absent"


def absent(backend: Backend) -> str | None:
    """What is missing for ``backend`` and what works without it, as a sentence; ``None`` where everything is here."""
    missing = [name for name in NEEDS[backend] if not _here(name)]
    if not missing:
        return None
    names = " and ".join(TITLES[name] for name in missing)
    verb = "is" if len(missing) == 1 else "are"
    others = [str(other) for other in Backend if other is not backend and all(map(_here, NEEDS[other]))]
    rest = f" Kernels of the backend {others[0]} can be judged here." if others else ""
    return (f"{names} {verb} not installed on this host, so {backend} kernels can be neither compiled nor judged here."
            f"{rest} 'operators', 'tier' and 'report --show' need no compiler. Install {' '.join(missing)} to go on.")


def ensure_present(backend: Backend) -> None:
    """Raises ``UsageError`` with the sentence of ``absent`` where something is missing."""
    why = absent(backend)
    if why is not None:
        raise UsageError(why, code=CODE)


def _here(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # somebody keeps it out of this process
        return False
