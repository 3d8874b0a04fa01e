"""The server's endpoints of language models as plain facts for the goal form and the system page. No key is among them:
the web process has none, and the file names only the variables that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.bridge.api.errors import BridgeError, translated


@dataclass(frozen=True, slots=True)
class PriceOf:
    """Money for a million tokens of input, cached input and output, as on ``date``."""

    input: float
    cached: float
    output: float
    currency: str
    date: str


@dataclass(frozen=True, slots=True)
class ModelOf:
    """A model that an endpoint offers; ``listed`` stands for any that the endpoint itself lists."""

    name: str
    context_tokens: int
    efforts: tuple[str, ...]
    price: PriceOf | None
    listed: bool


@dataclass(frozen=True, slots=True)
class EndpointOf:
    """An endpoint by the server's settings."""

    name: str
    url: str
    key_variable: str
    api: str
    parallel: int
    models: tuple[ModelOf, ...]

    def model(self, name: str) -> ModelOf | None:
        """The model of this name, or what stands for it; ``None``: not offered."""
        if not name:
            return None
        named = next((one for one in self.models if one.name == name and not one.listed), None)
        return named or next((one for one in self.models if one.listed), None)


@dataclass(frozen=True, slots=True)
class EndpointsHere:
    """What the file has: endpoints in its order, or the sentence that says why there are none."""

    path: str
    there: bool
    endpoints: tuple[EndpointOf, ...]
    error: str = ""

    def named(self, name: str) -> EndpointOf | None:
        """One endpoint."""
        return next((one for one in self.endpoints if one.name == name), None)


def endpoints_of(path: Path) -> EndpointsHere:
    """Read the file anew; a wrong one is a server without endpoints and a sentence, never an exception."""
    try:
        with translated():
            from harness.agents.llm.endpoints import load_endpoints

            found = load_endpoints(path)
    except BridgeError as error:
        return EndpointsHere(str(path), True, (), error.text)
    return EndpointsHere(str(path), path.exists(), tuple(_endpoint(one) for one in found.values()))


def _endpoint(one: Any) -> EndpointOf:
    from harness.agents.llm.endpoints import LISTED

    models = tuple(
        ModelOf(model.name, model.context_tokens, tuple(model.efforts), _price(model.price), model.name == LISTED)
        for model in one.models)
    return EndpointOf(one.name, one.url, one.key_variable or "", one.api, one.parallel, models)


def _price(price: Any) -> PriceOf | None:
    return None if price is None else PriceOf(price.input, price.cached, price.output, price.currency, price.date)
