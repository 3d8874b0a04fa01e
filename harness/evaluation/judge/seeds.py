"""The secret of an evaluation and what is derived from it."""

from __future__ import annotations

import hashlib
import secrets

import torch

SEED_BITS = 128


def draw_seed() -> int:
    """A fresh 128-bit secret; drawn after the candidate was imported, revealed with the verdict."""
    return secrets.randbits(SEED_BITS)


def derive(seed: int, *labels: object) -> int:
    """A 63-bit seed for one purpose; equal seed and labels give equal contents, which makes verdicts replayable."""
    text = "\x1f".join([f"{seed:032x}", *(str(label) for label in labels)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, *labels: object) -> torch.Generator:
    """A torch generator for one purpose."""
    return torch.Generator().manual_seed(derive(seed, *labels))
