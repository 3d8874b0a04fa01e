"""Template tags for icons, badges, tiers, bars and sparklines: the small marks of every page."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from apps.core import words

register = template.Library()

TIER_BARS = {"none": 0, "light": 1, "medium": 2, "heavy": 3}


@register.simple_tag
def icon(name: str, label: str = "", tone: str = "") -> SafeString:
    """A symbol of the sprite; with a label it is an image of its own, otherwise decoration."""
    css = f"i {tone}".strip()
    if label:
        return format_html(
            '<svg class="{}" viewBox="0 0 16 16" role="img" aria-label="{}"><use href="#i-{}"/></svg>', css, label, name
        )
    return format_html('<svg class="{}" viewBox="0 0 16 16" aria-hidden="true"><use href="#i-{}"/></svg>', css, name)


@register.simple_tag
def badge(kind: str, value: object, text: str = "") -> SafeString:
    """The badge of a state: icon, word, tone. ``text`` replaces the word, the tone stays."""
    found = words.mark(kind, value)
    return format_html('<span class="badge {}">{}{}</span>', found.tone, icon(found.icon), text or found.word)


@register.simple_tag
def plain_badge(icon_name: str, text: str, tone: str = "") -> SafeString:
    """A badge outside the vocabulary, with a given icon, text and tone."""
    return format_html('<span class="badge {}">{}{}</span>', tone, icon(icon_name), text)


@register.simple_tag
def state_icon(kind: str, value: object) -> SafeString:
    """The icon of a state alone, named for those who cannot see it."""
    found = words.mark(kind, value)
    return icon(found.icon, found.word, f"t-{found.tone}" if found.tone in ("ok", "warn", "bad") else "muted")


@register.simple_tag
def event_icon(kind: str) -> SafeString:
    """The icon of an event kind."""
    name, tone = words.EVENT_ICONS.get(kind, ("dot", ""))
    return icon(name, "", tone)


@register.simple_tag
def tier(value: object) -> SafeString:
    """One, two or three filled bars and the word; never a state colour."""
    text = str(value) if value else "none"
    filled = TIER_BARS.get(text, 0)
    shapes = ((0, 9, 6), (6.3, 5, 10), (12.6, 1, 14))
    bars = format_html_join(
        "",
        '<rect x="{}" y="{}" width="4.4" height="{}" rx="1"{}/>',
        (
            (x, y, height, mark_safe("" if place < filled else ' class="off"'))
            for place, (x, y, height) in enumerate(shapes)
        ),
    )
    return format_html(
        '<span class="tier"><svg viewBox="0 0 17 16" aria-hidden="true">{}</svg>{}</span>',
        bars,
        "no change" if text == "none" else text,
    )


@register.simple_tag
def bar(share: float | None, label: str, tone: str = "", tick: float | None = None) -> SafeString:
    """A share from 0 to 1 as a bar; ``tick`` marks another share on it. Nothing is drawn for ``None``."""
    if share is None:
        return mark_safe("")
    width = f"{max(0.0, min(1.0, share)) * 100:.1f}%"
    line = mark_safe("")
    if tick is not None:
        at = f"{max(0.0, min(1.0, tick)) * 100:.1f}%"
        line = format_html('<line class="tick" x1="{}" x2="{}" y1="0" y2="100%"/>', at, at)
    return format_html(
        '<svg class="bar" role="img" aria-label="{}"><rect class="track" width="100%" height="100%"/>'
        '<rect class="fill {}" width="{}" height="100%"/>{}</svg>',
        label,
        tone,
        width,
        line,
    )


@register.simple_tag
def spark(values: Sequence[float], label: str) -> SafeString:
    """A sparkline of at least two values with a dot on the last; a word says why there is none."""
    if len(values) < 2:
        return mark_safe('<span class="muted small">one value</span>' if values else "")
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = 84 / (len(values) - 1)
    points = [
        (2 + step * place, 17 - 14 * (value - low) / span if high > low else 10) for place, value in enumerate(values)
    ]
    path = "M" + " ".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return format_html(
        '<svg class="spark" viewBox="0 0 88 20" role="img" aria-label="{}"><path d="{}"/>'
        '<circle cx="{}" cy="{}" r="2.4"/></svg>',
        label,
        path,
        f"{points[-1][0]:.1f}",
        f"{points[-1][1]:.1f}",
    )
