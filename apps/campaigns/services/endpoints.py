"""Whether this server has the endpoint, model and effort that a campaign picks: checked before anything is asked."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.bridge import api
from apps.core.errors import Invalid

NAME_KEPT = 200


def check_choice(choice: dict[str, Any], *, budget: dict[str, Any], currency: str = "") -> None:
    """Refuse what the server's settings do not offer. ``currency`` is what the campaign was charged in so far.

    Raises:
        Invalid: ``key`` names the value to change.
    """
    if choice["kind"] != "openai":
        return
    for name in ("endpoint", "model", "effort"):
        said = choice.get(name) or ""
        if len(said) > NAME_KEPT or api.plain_text(said, NAME_KEPT) != said:
            raise Invalid(f"This cannot be the agent's {name}: names have at most {NAME_KEPT} characters, all of them "
                          "visible.", key=f"agent.{name}")
    here = api.endpoints_of(settings.ENDPOINTS_PATH)
    found = here.named(choice.get("endpoint") or "")
    if found is None:
        names = ", ".join(one.name for one in here.endpoints)
        why = here.error or (f"It has: {names}." if names else f"It has none: {here.path} names them.")
        raise Invalid(f"This server has no endpoint '{choice.get('endpoint') or ''}'. {why}", key="agent.endpoint")
    model = found.model(choice.get("model") or "")
    if model is None:
        raise Invalid(f"Endpoint {found.name} offers no model '{choice.get('model') or ''}'. It offers: "
                      f"{', '.join(one.name for one in found.models)}.", key="agent.model")
    effort = choice.get("effort")
    if effort and effort not in model.efforts:
        raise Invalid(f"Model {choice['model']} has no effort '{effort}'. It has: "
                      f"{', '.join(model.efforts) or 'none; leave it empty'}.", key="agent.effort")
    if budget.get("money") is not None and model.price is None:
        raise Invalid(f"The budget limits money, but the server's settings have no price for {choice['model']} at "
                      f"{found.name}. Limit tokens or turns instead, or add the price.", key="budget.money")
    if currency and model.price is not None and model.price.currency != currency:
        raise Invalid(f"This campaign was charged in {currency} so far; {choice['model']} is priced in "
                      f"{model.price.currency}, and the two cannot be added up. Fork the campaign for it.",
                      key="agent.model")
