"""Keeps keys out of everything that is stored or shown, also where an endpoint sends a key back."""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Iterable
from urllib.parse import quote

HIDDEN = "[redacted]"
SHORTEST = 8
"""Shorter values (``none``, ``EMPTY``) are placeholders that servers without keys want, and also ordinary words."""
HEADER = re.compile(r"""(?ix) \b ((?:proxy-)?authorization|x-api-key|api-key) (["']?\s*[:=,]\s*(?:b(?=["']))?["']?)
                        (?: (?:bearer|basic|token) \s+ )? [^\s"',;)}\]]+""")
BEARER = re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}")
SHAPED = re.compile(r"\bsk-[A-Za-z0-9_-]{16,}")


def forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """The secrets as they may turn up in texts: as they are, in an address, in base64; longest first."""
    return _forms(tuple(secrets))


@functools.lru_cache(maxsize=32)
def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    found = set()
    for secret in secrets:
        if len(secret) >= SHORTEST:
            found |= {secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(),
                      secret.encode("unicode_escape").decode()}
    return tuple(sorted(found, key=len, reverse=True))


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the secrets, without ``Authorization`` values and without what has the shape of a key."""
    for secret in forms(secrets):
        text = text.replace(secret, HIDDEN)
    text = HEADER.sub(lambda found: found[1] + found[2] + HIDDEN, text)
    return SHAPED.sub(HIDDEN, BEARER.sub(f"Bearer {HIDDEN}", text))


def without(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets' values and nothing else: a model's own words and code stay as they are."""
    found = forms(secrets)
    for secret in found:
        text = text.replace(secret, HIDDEN)
    if found and "\\" in text:  # the text of a call's arguments is JSON: a secret may be spelt with escapes in it
        text = _escaped(found).sub(HIDDEN, text)
    return text


@functools.lru_cache(maxsize=32)
def _escaped(found: tuple[str, ...]) -> re.Pattern[str]:
    """The secrets with any of their characters written as JSON may write it."""
    return re.compile("|".join("".join(map(_spellings, secret)) for secret in found))


def _spellings(character: str) -> str:
    # So many backslashes as an escape takes that was escaped once more; without a bound a text of them takes for ever.
    return rf"(?:\\{{0,4}}{re.escape(character)}|\\{{1,4}}u(?i:{ord(character):04x}))"


class PieceFilter:
    """Redacts a text that comes in pieces: what may be the beginning of a secret waits for the next piece."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = forms(secrets)
        self._held = ""

    def feed(self, piece: str) -> str:
        """What of the text so far can be shown."""
        text = without(self._held + piece, self._forms)
        keep = max((length for form in self._forms for length in range(1, len(form)) if text.endswith(form[:length])),
                   default=0)
        self._held = text[len(text) - keep:]
        return text[:len(text) - keep]

    def rest(self) -> str:
        """What was held back, once nothing more comes."""
        text, self._held = self._held, ""
        return text
