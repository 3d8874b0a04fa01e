"""Content addresses: SHA-256 over bytes or over canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(document: Any) -> bytes:
    """Serialise with sorted keys, no spaces, UTF-8, no NaN; equal documents give equal bytes."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def digest_bytes(data: bytes) -> str:
    """``sha256:<64 hex digits>`` of ``data``."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_source(source: str) -> str:
    """The address of a kernel: the digest of its UTF-8 bytes."""
    return digest_bytes(source.encode("utf-8"))


def digest_document(document: Any) -> str:
    """The digest of a JSON document's canonical form."""
    return digest_bytes(canonical_json(document))
