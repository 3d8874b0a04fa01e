"""The goal form: posted text to a goal document and back. Whether the goal is valid is the harness's to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from apps.bridge.api.catalogue import OperatorFacts
from apps.bridge.api.errors import BridgeError
from apps.bridge.api.goals import GoalFacts, goal_check, goal_default

WEIGHTS = ("latency", "throughput", "stability", "cold_start")
OPTIONAL_PROHIBITIONS = ("atomics", "inline assembly", "numeric modes", "split kernels")
ALWAYS_PROHIBITED = ("interface change", "external dependency")
LIMITS = ("scratch_ratio", "registers", "spill_bytes", "shared_bytes", "cv", "throughput_floor")
WHOLE = {"registers", "spill_bytes", "shared_bytes", "rounds", "evaluations", "tokens", "turns", "spot_check_every"}
BUDGET = ("rounds", "evaluations", "seconds", "tokens", "turns", "money")
AGENT = ("endpoint", "model", "effort", "strategy")
PRESETS: dict[str, dict[str, str]] = {
    "production": {"grant": "light", "stop.spot_check_every": "5"},
    "research": {"grant": "heavy", "stop.spot_check_every": "3", "stop.pause_after_diagnosis": "1"},
}


class Posted(Protocol):
    """The part of a query dictionary that is used: the last value of a key, and all of them."""

    def get(self, key: str, default: Any = None, /) -> Any: ...

    def getlist(self, key: str, /) -> Any: ...


@dataclass(slots=True)
class GoalForm:
    """The text of every field as typed, the document made of it, and what is wrong, by field name."""

    values: dict[str, str]
    prohibited: list[str]
    document: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    facts: GoalFacts | None = None

    @property
    def valid(self) -> bool:
        """Whether a campaign may be made of it."""
        return self.facts is not None and not self.errors


def start_values(operator: OperatorFacts, backend: str, hardware: str, workload: str) -> GoalForm:
    """A form with every default filled in."""
    return from_document(goal_default(operator.name, backend, hardware, workload), operator)


def from_document(document: Mapping[str, Any], operator: OperatorFacts) -> GoalForm:
    """The form that shows a goal document: to start from another campaign."""
    values = {key: str(document[key]) for key in ("operator", "backend", "hardware", "workload", "grant")}
    for name in WEIGHTS:
        values[f"weights.{name}"] = plain(document["objective"]["weights"][name])
    for name in LIMITS:
        values[f"limits.{name}"] = plain(document["limits"].get(name))
    tolerance = document["limits"].get("tolerance") or {}
    values["limits.tolerance.relative"] = plain(tolerance.get("relative"))
    values["limits.tolerance.reason"] = tolerance.get("reason", "")
    for name in BUDGET:
        values[f"budget.{name}"] = plain(document["budget"].get(name))
    values["budget.at_limit"] = document["budget"].get("at_limit") or "stop"
    for name, value in document["stop"].items():
        values[f"stop.{name}"] = ("1" if value else "") if isinstance(value, bool) else plain(value)
    for name in ("kind", *AGENT):
        values[f"agent.{name}"] = document["agent"].get(name) or ""
    values["agent.best_of"] = str(document["agent"].get("best_of") or 1)
    adjustable = document.get("adjustable") or {}
    for tunable in tunables_of(operator, values["backend"]):
        low, high = adjustable.get(tunable["key"], (tunable["low"], tunable["high"]))
        values[f"adjustable.{tunable['key']}.low"], values[f"adjustable.{tunable['key']}.high"] = str(low), str(high)
    return GoalForm(values, list(document.get("prohibited") or ALWAYS_PROHIBITED), dict(document))


def tunables_of(operator: OperatorFacts, backend: str) -> list[dict[str, Any]]:
    """Tunables with a range that a goal may narrow."""
    return [one for one in operator.tunables if backend in one["backends"] and not one["choices"]]


def plain(value: Any) -> str:
    """A number as typed; empty for none."""
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def read(posted: Posted, operator: OperatorFacts) -> GoalForm:
    """The form as posted, checked. Every error names its field; the first contradiction of the whole comes last."""
    values = {key: posted.get(key, "").strip() for key in field_names(operator, posted.get("backend", ""))}
    form = GoalForm(
        values, [*ALWAYS_PROHIBITED, *(p for p in OPTIONAL_PROHIBITIONS if p in posted.getlist("prohibited"))]
    )
    form.document = document_of(form, operator)
    if form.errors:
        return form
    try:
        form.facts = goal_check(form.document)
    except BridgeError as error:
        form.errors[field_of(error.key)] = error.text
    return form


def field_names(operator: OperatorFacts, backend: str) -> list[str]:
    """Names of all text fields."""
    names = ["operator", "backend", "hardware", "workload", "grant", "name"]
    names += [f"weights.{name}" for name in WEIGHTS] + [f"limits.{name}" for name in LIMITS]
    names += ["limits.tolerance.relative", "limits.tolerance.reason"] + [f"budget.{name}" for name in BUDGET]
    names += [
        f"stop.{name}"
        for name in (
            "plateau_rounds",
            "plateau_gain",
            "direction_failures",
            "roof_share",
            "spot_check_every",
            "pause_after_diagnosis",
        )
    ]
    names += [f"agent.{name}" for name in ("kind", *AGENT, "best_of")] + ["budget.at_limit"]
    for tunable in tunables_of(operator, backend):
        names += [f"adjustable.{tunable['key']}.low", f"adjustable.{tunable['key']}.high"]
    return names


def document_of(form: GoalForm, operator: OperatorFacts) -> dict[str, Any]:
    """The goal document of the typed text; what is no number is noted in ``form.errors``."""
    values = form.values
    document: dict[str, Any] = {
        "version": 1,
        **{key: values[key] for key in ("operator", "backend", "hardware", "workload")},
    }
    document["objective"] = {"weights": {name: number(form, f"weights.{name}") or 0.0 for name in WEIGHTS}}
    limits: dict[str, Any] = {name: number(form, f"limits.{name}", whole=name in WHOLE) for name in LIMITS}
    relative = number(form, "limits.tolerance.relative")
    limits["tolerance"] = (
        None if relative is None else {"relative": relative, "reason": values["limits.tolerance.reason"]}
    )
    document["limits"] = limits
    document["grant"] = values["grant"] or "medium"
    document["adjustable"] = narrowed(form, operator)
    document["prohibited"] = form.prohibited
    document["agent"] = agent_of(form)
    document["budget"] = {name: number(form, f"budget.{name}", whole=name in WHOLE) for name in BUDGET}
    document["budget"]["at_limit"] = values["budget.at_limit"] or "stop"
    document["stop"] = stop_of(form)
    return document


def agent_of(form: GoalForm) -> dict[str, Any]:
    """The agent section. Endpoint, model and effort belong to a language model; other agents leave them out."""
    kind = form.values["agent.kind"] or "playbook"
    kept = AGENT if kind == "openai" else ("strategy",)
    found: dict[str, Any] = {"kind": kind}
    found |= {name: (form.values[f"agent.{name}"] or None) if name in kept else None for name in AGENT}
    if kind == "openai":
        found["best_of"] = number(form, "agent.best_of", whole=True) or 1
    return found


def stop_of(form: GoalForm) -> dict[str, Any]:
    """The stop section; an empty field keeps the default."""
    found: dict[str, Any] = {}
    for name in ("plateau_rounds", "direction_failures", "spot_check_every"):
        value = number(form, f"stop.{name}", whole=True)
        if value is not None:
            found[name] = value
    for name in ("plateau_gain", "roof_share"):
        value = number(form, f"stop.{name}")
        if value is not None:
            found[name] = value
    found["pause_after_diagnosis"] = bool(form.values["stop.pause_after_diagnosis"])
    return found


def narrowed(form: GoalForm, operator: OperatorFacts) -> dict[str, list[int]]:
    """Ranges that differ from the declared ones."""
    found = {}
    for tunable in tunables_of(operator, form.values["backend"]):
        key = tunable["key"]
        low = number(form, f"adjustable.{key}.low", whole=True)
        high = number(form, f"adjustable.{key}.high", whole=True)
        low, high = tunable["low"] if low is None else low, tunable["high"] if high is None else high
        if (low, high) != (tunable["low"], tunable["high"]):
            found[key] = [low, high]
    return found


def number(form: GoalForm, name: str, whole: bool = False) -> Any:
    """The number in a field; ``None`` when empty. Thousands may be apart."""
    text = form.values[name].replace("\u202f", "").replace(" ", "").replace(",", ".")
    if not text:
        return None
    try:
        return int(text) if whole else float(text)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        form.errors[name] = f"'{form.values[name]}' is not {kind}. Write {'20' if whole else '0.7'}, or leave it empty."
        return None


def field_of(key: str) -> str:
    """The form field that a dotted key of the document belongs to."""
    if key.startswith("objective.weights"):
        return key.removeprefix("objective.") if key.count(".") > 1 else "weights.latency"
    if key == "budget":
        return "budget.rounds"
    if key.startswith("adjustable.") and not key.endswith((".low", ".high")):
        return f"{key}.low"
    return key or "operator"


def as_toml(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The goal as TOML lines: (dotted key, text); sections come as (name, '[name]'). What is unset is left out."""
    lines: list[tuple[str, str]] = []
    tables: list[tuple[str, Mapping[str, Any]]] = []
    for key, value in document.items():
        if isinstance(value, Mapping):
            tables.append((key, value))
        else:
            lines.append((key, f"{key} = {literal(value)}"))
    while tables:
        name, table = tables.pop(0)
        inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
        plain_items = [(key, value) for key, value in table.items() if key not in inner and value is not None]
        if plain_items:
            lines += [("", ""), (name, f"[{name}]")]
            lines += [(f"{name}.{key}", f"{key} = {literal(value)}") for key, value in plain_items]
        tables = [(f"{name}.{key}", value) for key, value in inner.items()] + tables
    return lines


def literal(value: Any) -> str:
    """A TOML literal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(one) for one in value) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{value:g}" if isinstance(value, float) else str(value)
