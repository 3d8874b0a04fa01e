"""Data inside a prompt: quoted between marks that it cannot contain, so that nobody takes it for instructions."""

from __future__ import annotations

import math
import re

from harness.domain.words import one_line, plain

CHARACTERS_PER_TOKEN = 3.5
"""A low estimate for English and code, so that a budget is rather kept than broken."""
KEPT = 16_000
_MARK = re.compile(r"<(?=/?data)", re.IGNORECASE)
"""What a reader could take for one of the marks, in whatever letters. Taken apart by a blank: that changes no code."""


def tokens_of(text: str) -> int:
    """About how many tokens ``text`` takes."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def quote(origin: str, text: str, kept: int = KEPT) -> str:
    """``text`` between ``<data>`` marks that name its origin. A mark inside it is taken apart; what no reader can see
    is left out, and what is longer than ``kept`` characters is cut."""
    body = _apart(plain(text, kept))
    name = one_line(origin, 120).replace('"', "'").replace("<", "(").replace(">", ")")
    return f'<data from="{name}">\n{body}\n</data>'


def source_block(title: str, source: str) -> str:
    """A kernel's source under its title, between marks as well: its comments are data like everything else."""
    body = _apart(source)
    return f'<data from="{one_line(title, 120)}">\n{body.rstrip()}\n</data>'


def _apart(text: str) -> str:
    return _MARK.sub("< ", text)
