"""Questions about kernel sources, answered from their bytes: digest, normal form, tier, findings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from apps.bridge.api.errors import translated


@dataclass(frozen=True, slots=True)
class TierFacts:
    """A tier with its causes: ``why`` holds ``{"line": int | None, "text": str}``."""

    tier: str
    why: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the static check noticed: ``severity`` is ``block``, ``look`` or ``note``."""

    code: str
    severity: str
    text: str
    line: int | None


TIERS = ("none", "light", "medium", "heavy")
"""In rising order."""


def rank(tier: str) -> int:
    """Position of a tier in ``TIERS``."""
    return TIERS.index(tier)


def digest(data: bytes) -> str:
    """``sha256:<hex>`` of exact bytes."""
    from harness.domain.digest import digest_bytes

    return digest_bytes(data)


def digest_document(document: Any) -> str:
    """Digest of a document's canonical JSON."""
    from harness.domain.digest import digest_document as address

    return address(document)


def canonical(document: Any) -> bytes:
    """A document as its canonical JSON: the bytes that digests of samples are taken of."""
    from harness.domain.digest import canonical_json

    return canonical_json(document)


def read_source(data: bytes) -> str:
    """Bytes to text through the harness's door.

    Raises:
        BridgeError: encoding, size, hidden characters; with the line.
    """
    with translated():
        from harness.evaluation.source.intake import read_source as read

        return read(data)


@lru_cache(maxsize=512)
def normal_digest(data: bytes) -> str:
    """Address of the normalised tree (comments, positions and local names do not matter).

    Raises:
        BridgeError: the bytes do not parse.
    """
    with translated():
        from harness.evaluation.source.normal_form import normal_digest as address

        return address(read_source(data))


@lru_cache(maxsize=512)
def classify(base: bytes, new: bytes, operator: str, backend: str) -> TierFacts:
    """The tier of going from ``base`` to ``new``, from the bytes alone; kept per exact bytes, because pages and the
    loop ask every second and parsing takes milliseconds.

    Raises:
        BridgeError: one side does not parse, or the operator is unknown.
    """
    with translated():
        from harness.domain.codec import to_document
        from harness.domain.vocabulary import Backend
        from harness.evaluation.source.tier import classify as tier_of
        from harness.operators.registry import get

        result = tier_of(read_source(base), read_source(new), get(operator), Backend(backend))
        return TierFacts(str(result.tier), tuple(to_document(result.why)))


def findings(data: bytes, operator: str, backend: str, prohibited: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """What the static check says about a source, in line order.

    Raises:
        BridgeError: the source does not parse, or the operator is unknown.
    """
    with translated():
        from harness.domain.vocabulary import Backend
        from harness.evaluation.static.check import findings as found_in
        from harness.operators.registry import get

        found = found_in(read_source(data), get(operator), Backend(backend), prohibited)
        rows = [Finding(f.reason.code, str(f.severity), f.reason.text, f.reason.line) for f in found]
        return tuple(sorted(rows, key=lambda finding: finding.line or 0))
