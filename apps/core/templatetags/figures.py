"""Template filters over ``apps.core.figures``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from apps.core import figures
from apps.core.troubleshooting import spans
from apps.core.untrusted import shown

register = template.Library()

FILTERS: dict[str, Callable[..., str]] = {
    "us": figures.microseconds,
    "ratio": figures.ratio,
    "change": figures.change,
    "pct": figures.percent,
    "signed_pct": figures.signed_percent,
    "gbps": figures.gigabytes_per_second,
    "tflops": figures.teraflops,
    "size": figures.size,
    "money": figures.money,
    "duration": figures.duration,
    "bound": figures.bound_share,
    "sci": figures.scientific,
    "short": figures.short_digest,
    "count": figures.count,
    "decimal": figures.decimal,
}
for _name, _function in FILTERS.items():
    register.filter(_name, _function)


@register.filter
def bare_us(value: float | None) -> str:
    """Microseconds without the unit, for columns whose head names it."""
    return figures.microseconds(value, unit=False)


def bounds(value: Any) -> tuple[float | None, float | None]:
    """Low and high of a ratio given as an object, a mapping, a pair or nothing."""
    if value is None:
        return None, None
    if isinstance(value, dict):
        return value.get("low"), value.get("high")
    if isinstance(value, (tuple, list)):
        return value[0], value[1]
    return value.low, value.high


@register.filter
def interval(value: Any) -> str:
    """``[1.041, 1.051]`` of a ratio object, mapping or pair."""
    return figures.interval(*bounds(value))


@register.filter
def change_interval(value: Any) -> str:
    """``[3.3, 4.1]`` in per cent of a ratio object, mapping or pair."""
    return figures.change_interval(*bounds(value))


@register.filter
def item(mapping: Any, key: Any) -> Any:
    """``mapping[key]``, or ``None``: templates cannot index by a variable."""
    if mapping is None:
        return None
    return mapping.get(key)


@register.filter
def when(at: datetime | str | None) -> SafeString | str:
    """A ``<time>`` with the full ISO instant in its title."""
    if at is None:
        return "never"
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    iso = moment.isoformat(timespec="seconds")
    shown = figures.clock(moment, timezone.localtime())
    return format_html('<time datetime="{}" title="{}">{}</time>', iso, iso, shown)


@register.filter
def age(at: datetime | None) -> str:
    """How long ago."""
    seconds = figures.age_seconds(at)
    return "never" if seconds is None else figures.duration(seconds)


@register.filter
def digest(value: str | None) -> SafeString | str:
    """Eight digits in monospace; the whole digest on hover."""
    if not value:
        return "none"
    return format_html('<code title="{}">{}</code>', value, figures.short_digest(value))


@register.filter
def sentence(text: object) -> SafeString:
    """A sentence of the program: escaped, with what stands in backticks as code. It may quote what others wrote."""
    return mark_safe(spans(figures.glued(shown(text or ""))))


@register.filter
def spaced(value: object) -> str:
    """An identifier as words: underscores become spaces."""
    return str(value).replace("_", " ")


@register.filter
def measured(name: object, value: object) -> str:
    """A named fact with its value and unit."""
    return figures.measured(str(name), value)


@register.filter
def origin(source: object) -> str:
    """Where a kernel came from: ``campaign:3`` is C-3."""
    return str(source).replace("campaign:", "C-").replace("_", " ")
