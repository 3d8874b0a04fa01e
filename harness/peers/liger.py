"""Liger's kernels, as its own modules call them without gradients. Liger is optional; without it every row says so."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from harness.peers.base import LIGER, Absent, Function, Peer, Problem

PACKAGE = "liger-kernel"


def lacking(what: str) -> Peer:
    """Liger's row on an operator that it does not have."""
    def build(problem: Problem) -> Function:
        raise Absent(f"Liger has no {what}.")

    return Peer(LIGER, PACKAGE, build)


def liger(module: str, name: str) -> Any:
    """An attribute of one of ``liger_kernel.ops``' modules.

    Raises:
        Absent: Liger is not installed, does not import here, or has no such operator.
    """
    try:
        metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        raise Absent(f"{PACKAGE} is not installed here (pip install {PACKAGE}, a pure Python package).") from None
    try:
        return getattr(import_module(f"liger_kernel.ops.{module}"), name)
    except Exception as error:
        raise Absent(f"{PACKAGE} does not offer {module}.{name} here: {type(error).__name__}: {error}"[:300]) from error
