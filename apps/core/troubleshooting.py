"""Troubleshooting entries: one Markdown file per code under ``docs/troubleshooting``.

Only the little Markdown that these files use is understood: headings, paragraphs, lists, fenced code
and code spans. Everything is escaped first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

CODE = re.compile(r"^[a-z0-9_]{1,64}$")
SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its code, the title (first heading) and the text after it."""

    code: str
    title: str
    text: str

    @property
    def html(self) -> SafeString:
        """The text as HTML."""
        return render(self.text)


def folder() -> Path:
    """Where the files lie."""
    return Path(settings.BASE_DIR) / "docs" / "troubleshooting"


@lru_cache(maxsize=1)
def entries() -> dict[str, Entry]:
    """All entries by code; read once, they ship with the program."""
    found = {}
    for path in sorted(folder().glob("*.md")):
        head, _, text = path.read_text("utf-8").partition("\n")
        found[path.stem] = Entry(path.stem, head.removeprefix("# ").strip(), text.strip())
    return found


def entry(code: str) -> Entry | None:
    """The entry of a code, ``None`` when there is none."""
    return entries().get(code) if CODE.match(code) else None


def spans(text: str) -> str:
    """Escaped text with its code spans."""
    return SPAN.sub(r"<code>\1</code>", escape(text))


def render(text: str) -> SafeString:
    """Blocks separated by blank lines."""
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.split("\n")
        if block.startswith("```"):
            parts.append(format_html('<pre class="code" tabindex="0">{}</pre>', "\n".join(lines[1:-1])))
        elif block.startswith("## "):
            parts.append(f"<h2>{spans(lines[0][3:])}</h2>")
            if len(lines) > 1:
                parts.append(f"<p>{spans(' '.join(lines[1:]))}</p>")
        elif block.startswith("- "):
            items = re.split(r"\n- ", block[2:])
            parts.append("<ul>" + "".join(f"<li>{spans(item.replace(chr(10), ' '))}</li>" for item in items) + "</ul>")
        else:
            parts.append(f"<p>{spans(' '.join(lines))}</p>")
    return mark_safe("\n".join(parts))
