"""Library figures kept per environment class, for whoever judges a kernel later in the same class. No torch."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path

from harness.domain.codec import check_schema, from_document, to_document
from harness.domain.errors import DocumentError
from harness.domain.peers import Peers
from harness.evaluation import library


def merged(known: Peers | None, new: Peers) -> Peers:
    """``new`` with the rows of ``known`` for operators that it does not hold."""
    if known is None:
        return new
    fresh = {row.operator for row in new.rows}
    return replace(new, rows=tuple(row for row in known.rows if row.operator not in fresh) + new.rows,
                   clocks=tuple(one for one in known.clocks if one.operator not in fresh) + new.clocks,
                   seconds=known.seconds + new.seconds, began=known.began, versions=known.versions | new.versions)


def keep(document: Peers) -> Path | None:
    """Add ``document`` to what is kept for its class; where that lies, ``None`` where nothing can be written."""
    path = library.path_of(document.environment.class_)
    whole = merged(kept(path), document)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(to_document(whole)), "utf-8")
        partial.replace(path)
        return path
    return None


def kept(path: Path) -> Peers | None:
    """The document at ``path``; ``None`` where there is none that can be read."""
    with contextlib.suppress(OSError, ValueError, DocumentError):
        document = json.loads(path.read_text("utf-8"))
        check_schema(document, "peers")
        return from_document(document, Peers)
    return None
