"""Template filters for text that the program did not write."""

from __future__ import annotations

from django import template

from apps.core import untrusted

register = template.Library()

register.filter("said", untrusted.shown)
