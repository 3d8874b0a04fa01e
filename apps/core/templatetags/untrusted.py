"""Template filters for text that the program did not write."""

from __future__ import annotations

import re

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from apps.core import untrusted

register = template.Library()

register.filter("said", untrusted.shown)


@register.filter
def broken(text: object) -> SafeString:
    """An identifier of anybody, escaped, that may break after its colons, slashes, dots and underscores and nowhere
    else."""
    parts = re.split(r"(?<=[:/._])", untrusted.shown(text or ""))
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in parts))
