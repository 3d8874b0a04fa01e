"""Fields of the goal form and the TOML preview."""

from __future__ import annotations

import re

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from apps.campaigns.goal_form import GoalForm
from apps.core.templatetags.marks import icon

register = template.Library()

STRING = re.compile(r'^"(?:[^"\\]|\\.)*"$')


@register.filter
def field_id(name: str) -> str:
    """The element id of a field."""
    return "f-" + name.replace(".", "-").replace("_", "-")


@register.simple_tag
def field_note(form: GoalForm, name: str) -> SafeString:
    """What is wrong with a field, beside it."""
    text = form.errors.get(name)
    if text is None:
        return mark_safe("")
    return format_html('<p class="err" id="{}-error">{}<span>{}</span></p>', field_id(name), icon("alert"), text)


def describing(form: GoalForm, name: str) -> SafeString:
    """The attributes that tie a field to its error or hint."""
    identity = field_id(name)
    if name in form.errors:
        return format_html(' aria-invalid="true" aria-describedby="{}-error"', identity)
    return format_html(' aria-describedby="{}-hint"', identity)


@register.simple_tag
def number_field(form: GoalForm, name: str, label: str, unit: str, hint: str) -> SafeString:
    """A labelled number with its unit, hint and error."""
    identity = field_id(name)
    return format_html(
        '<div class="field"><label for="{0}">{1}</label><div class="unit">'
        '<input type="text" inputmode="decimal" id="{0}" name="{2}" value="{3}"{4}><span>{5}</span></div>'
        '{6}<p class="hint" id="{0}-hint">{7}</p></div>',
        identity,
        label,
        name,
        form.values.get(name, ""),
        describing(form, name),
        unit,
        field_note(form, name),
        hint,
    )


@register.simple_tag
def text_field(form: GoalForm, name: str, label: str, hint: str) -> SafeString:
    """A labelled text with its hint and error."""
    identity = field_id(name)
    return format_html(
        '<div class="field"><label for="{0}">{1}</label><input type="text" id="{0}" name="{2}" value="{3}"{4}>{5}'
        '<p class="hint" id="{0}-hint">{6}</p></div>',
        identity,
        label,
        name,
        form.values.get(name, ""),
        describing(form, name),
        field_note(form, name),
        hint,
    )


@register.simple_tag
def toml_lines(lines: list[tuple[str, str]], bad: set[str]) -> SafeString:
    """TOML with its token classes; a line whose key is wrong is underlined."""
    keys = {key.removeprefix("weights.") if key.startswith("weights.") else key for key in bad}

    def wrong(key: str) -> bool:
        return bool(key) and any(key in (one, f"objective.weights.{one}") or one.startswith(f"{key}.") for one in keys)

    return format_html_join(
        "\n",
        "{}",
        (
            (format_html('<span class="oops">{}</span>', toml_line(text)) if wrong(key) else toml_line(text),)
            for key, text in lines
        ),
    )


def toml_line(text: str) -> SafeString:
    """One line: sections and values in their classes."""
    if text.startswith("["):
        return format_html('<span class="k">{}</span>', text)
    name, equals, value = text.partition(" = ")
    if not equals:
        return format_html("{}", text)
    css = "s" if STRING.match(value) else ("k" if value in ("true", "false") else ("s" if '"' in value else "m"))
    return format_html('{} = <span class="{}">{}</span>', name, css, value)
