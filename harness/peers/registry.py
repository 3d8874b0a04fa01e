"""Which libraries an operator is held against, in the order in which tables list them. Loads no torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

from harness.domain.vocabulary import Backend
from harness.peers import attention, products, rope, rows, vocabulary
from harness.peers.base import Peer

PEERS: dict[str, tuple[Peer, ...]] = {
    **rows.PEERS, **attention.PEERS, **rope.PEERS, **vocabulary.PEERS, **products.PEERS,
}
CLEAN: dict[str, Callable[[Any], Any]] = {"decode_attention": attention.clean}
"""By operator: makes contents that libraries can be measured on."""
PACKAGES = ("torch", "triton", "liger-kernel", "numba", "numpy")


def peers_of(operator: str) -> tuple[Peer, ...]:
    """The peers of ``operator``; none where nobody registered any."""
    return PEERS.get(operator, ())


def here(peer: Peer, backend: Backend) -> str | None:
    """Why ``peer`` cannot be measured on ``backend``'s device, ``None`` where it can be tried."""
    if backend in peer.backends:
        return None
    return "it runs on NVIDIA GPUs only."


def versions() -> dict[str, str]:
    """Installed versions of what peers come from, ``absent`` where a package is not installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found
