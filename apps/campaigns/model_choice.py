"""Which language model a campaign asks: only what the server has, with its price and what that means for the budget."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from apps.bridge import api
from apps.campaigns.goal_form import GoalForm
from apps.core import figures

NONE_CONFIGURED = (
    "No endpoint of a language model is configured on this server, so this agent cannot be chosen. Whoever runs the "
    "server names one in its settings; the system page says how."
)


def endpoints() -> api.EndpointsHere:
    """What the server's settings name, read anew: a change needs no restart of the pages."""
    return api.endpoints_of(settings.ENDPOINTS_PATH)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What the form offers: endpoints, models and efforts of the chosen ones, the price in words, and what it means."""

    here: api.EndpointsHere
    endpoint: api.EndpointOf | None
    model: api.ModelOf | None
    models: tuple[str, ...]
    any_model: bool
    price: str
    sentences: tuple[str, ...]

    @property
    def why_none(self) -> str:
        """Why no model can be chosen; empty when one can."""
        if self.here.endpoints:
            return ""
        return f"{self.here.error} Until then this agent cannot be chosen." if self.here.error else NONE_CONFIGURED

    @property
    def efforts(self) -> tuple[str, ...]:
        """Words that the model's effort may take."""
        return self.model.efforts if self.model else ()

    @property
    def currency(self) -> str:
        """Of the model's price; empty without one."""
        return self.model.price.currency if self.model and self.model.price else ""


def preselect(form: GoalForm, here: api.EndpointsHere) -> None:
    """Where a fresh form names no endpoint, model or effort that the server has: its first ones."""
    if not here.endpoints:
        return
    endpoint = here.named(form.values["agent.endpoint"]) or here.endpoints[0]
    model = endpoint.model(form.values["agent.model"])
    if model is None:
        model = next((one for one in endpoint.models if not one.listed), None)
        form.values["agent.model"] = model.name if model else ""
    form.values["agent.endpoint"] = endpoint.name
    if form.values["agent.effort"] and (model is None or form.values["agent.effort"] not in model.efforts):
        form.values["agent.effort"] = ""


def check(form: GoalForm, here: api.EndpointsHere) -> None:
    """Note in the form what the server does not have. Only for a language model."""
    if form.values["agent.kind"] != "openai":
        return
    name, model_name = form.values["agent.endpoint"], form.values["agent.model"]
    endpoint = here.named(name)
    if not here.endpoints:
        form.errors["agent.kind"] = ModelChoice(here, None, None, (), False, "", ()).why_none
    elif endpoint is None:
        known = ", ".join(one.name for one in here.endpoints)
        form.errors["agent.endpoint"] = (
            f"The server has no endpoint '{name}'. It has: {known}." if name else f"Choose an endpoint: {known}.")
    elif (model := endpoint.model(model_name)) is None:
        known = ", ".join(one.name for one in endpoint.models if not one.listed) or "what it lists itself"
        form.errors["agent.model"] = (
            f"{name} offers no model '{model_name}'. It offers: {known}." if model_name else f"Name a model: {known}.")
    else:
        _check_limits(form, model)


def _check_limits(form: GoalForm, model: api.ModelOf) -> None:
    effort = form.values["agent.effort"]
    if effort and effort not in model.efforts:
        known = ", ".join(model.efforts)
        form.errors["agent.effort"] = (
            f"This model has no effort '{effort}'. It has: {known}." if known
            else "This model takes no effort. Leave it empty.")
    if form.values["budget.money"] and model.price is None:
        form.errors["budget.money"] = (
            "The server knows no price of this model, so a limit of money would never be reached. Leave it empty and "
            "limit tokens or turns, or have its price set.")


def choice_of(form: GoalForm, here: api.EndpointsHere) -> ModelChoice:
    """What the form shows for the values it has."""
    endpoint = here.named(form.values["agent.endpoint"])
    model = endpoint.model(form.values["agent.model"]) if endpoint else None
    named = tuple(one.name for one in endpoint.models if not one.listed) if endpoint else ()
    listed = any(one.listed for one in endpoint.models) if endpoint else False
    return ModelChoice(here, endpoint, model, named, listed, price_text(model), _sentences(form, endpoint, model))


def price_text(model: api.ModelOf | None) -> str:
    """``1.25 USD in, 0.125 cached, 10.00 out per million tokens, as of 2026-11-01``."""
    if model is None:
        return ""
    if model.price is None:
        return "No price is set for it: its tokens are counted, its money is not."
    price = model.price
    return (f"{price.input:g}{figures.NARROW}{price.currency} in, {price.cached:g} cached, {price.output:g} out, per "
            f"million tokens, as of {price.date}.")


def _sentences(form: GoalForm, endpoint: api.EndpointOf | None, model: api.ModelOf | None) -> tuple[str, ...]:
    """What choosing it means, beside the goal's own sentences."""
    if form.values["agent.kind"] != "openai" or endpoint is None or model is None or not form.values["agent.model"]:
        return ()
    agent, budget = form.document.get("agent", {}), form.document.get("budget", {})
    effort = f", effort {agent['effort']}" if agent.get("effort") else ""
    lines = [f"It asks {form.values['agent.model']} at {endpoint.name}{effort}. {price_text(model)}"]
    most = budget.get("tokens")
    if model.price and most and not budget.get("money"):
        worst = most * max(model.price.input, model.price.output) / 1e6
        lines.append(f"{figures.count(most)} tokens cost at most {figures.money(worst, model.price.currency)}.")
    if (agent.get("best_of") or 1) > 1:
        lines.append(f"Each asking brings up to {agent['best_of']} candidates in parallel, for as many times the "
                     "tokens; equal ones are measured once, each other one is a round of its own.")
    if not (most or budget.get("money") or budget.get("turns")):
        lines.append("Nothing limits tokens, money or turns: only rounds, evaluations and time end it.")
    return tuple(lines)
