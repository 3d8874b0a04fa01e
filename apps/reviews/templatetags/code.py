"""Lines of source as HTML. Everything a model wrote is escaped here, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from apps.reviews.diffing import Piece, highlight
from apps.reviews.diffing.rows import split_lines

register = template.Library()


def one(piece: Piece, tag: str) -> SafeString:
    """A piece in its token class, inside ``ins`` or ``del`` where the change touches it."""
    text = (
        format_html('<span class="{}">{}</span>', piece.css, piece.text) if piece.css else format_html("{}", piece.text)
    )
    if piece.marked and tag == "ins":
        return format_html("<ins>{}</ins>", text)
    return format_html("<del>{}</del>", text) if piece.marked and tag == "del" else text


@register.simple_tag
def pieces(line: Iterable[Piece], tag: str = "") -> SafeString:
    """One line."""
    return format_html_join("", "{}", ((one(piece, tag),) for piece in line))


@register.simple_tag
def source(text: str, flagged: Iterable[int] = ()) -> SafeString:
    """A whole source as a table with line numbers that can be linked (``#L12``)."""
    marked = set(flagged)
    lines = highlight(text)[: len(split_lines(text))]
    rows = format_html_join(
        "",
        '<tr id="L{}"{}><td class="n"><a href="#L{}">{}</a></td><td>{}</td></tr>',
        (
            (number, mark_safe(' class="flagged"' if number in marked else ""), number, number, pieces(line))
            for number, line in enumerate(lines, 1)
        ),
    )
    return format_html(
        '<div class="code source" tabindex="0" role="group" aria-label="Source, {} lines">'
        '<table role="presentation">{}</table></div>',
        len(lines),
        rows,
    )
