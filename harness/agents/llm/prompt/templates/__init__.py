"""The templates as files, one folder for each version. A turn names the version and the digest of its files, so that
what a model was told can be told apart even where somebody edited a file."""

from __future__ import annotations

import functools
from pathlib import Path
from string import Template

from harness.domain.digest import digest_bytes

VERSION = "1"
FOLDER = Path(__file__).parent / VERSION


@functools.cache
def template(name: str) -> Template:
    """The template of this name."""
    return Template((FOLDER / f"{name}.md").read_text("utf-8"))


def filled(name: str, **values: str) -> str:
    """A template with its places filled; what is filled in is never read as a template itself."""
    return template(name).substitute(values).strip()


def _digest() -> str:
    files = sorted(FOLDER.glob("*.md"))
    return digest_bytes(b"".join(file.name.encode() + b"\0" + file.read_bytes() for file in files))


TEMPLATE = f"{VERSION}:{_digest().removeprefix('sha256:')[:12]}"
"""The version of the prompt that turns are stored with."""
