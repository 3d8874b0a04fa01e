"""Text that a model or a stranger's server wrote, made safe to read: nothing in it can hide, reorder or rewrite.

Templates escape it as everything else; this deals with what escaping leaves: control characters and terminal escapes,
marks that reverse or hide text, and what looks like a key. Each such character stays visible as a name of its own.
"""

from __future__ import annotations

import re
import unicodedata

NOT_ASCII = re.compile(r"[^\x20-\x7e\n\t]")
HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # letters that show nothing
SECRET = re.compile(
    r"(?i)(?<=authorization:)(\s*)(?:bearer\s+|basic\s+)?[^\s\"',]+|\bbearer\s+[a-z0-9._~+/=-]{12,}|\bsk-[a-z0-9_-]{12,}"
)
REDACTED = "[redacted]"


def visible(text: object) -> str:
    """``text`` with every hidden character named: NUL is ``␀``, an override ``⟨U+202E⟩``; tabs and line ends stay."""
    return NOT_ASCII.sub(_name, str(text).replace("\r\n", "\n"))


def _name(found: re.Match[str]) -> str:
    character = found[0]
    selector = "\ufe00" <= character <= "\ufe0f" or character >= "\U000e0000"
    if unicodedata.category(character) not in HIDDEN and character not in FILLERS and not selector:
        return character
    place = ord(character)
    if place < 0x20:
        return chr(0x2400 + place)
    return "␡" if place == 0x7F else f"⟨U+{place:04X}⟩"


def shown(text: object) -> str:
    """``visible``, with what looks like a key or an Authorization header taken out.

    Keys never get this far: the process that asks takes its own out of everything it stores. This is for one that
    came by another way, in a server's error or in what a model repeats.
    """
    return SECRET.sub(lambda found: (found[1] or "") + REDACTED, visible(text))
