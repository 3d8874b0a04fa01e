"""The server's model endpoints: one TOML file, read without the network and without the openai package.

Keys are not in the file: an endpoint names the environment variable that holds its key, and the transport reads it when
it asks. See ``docs/endpoints.md`` for the file by example.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from harness.agents.llm.settings_table import EndpointsError, Table
from harness.domain.errors import UsageError
from harness.domain.files import read_regular
from harness.domain.turn import Usage

Api = Literal["chat", "responses", "auto"]
LISTED = "*"
"""A model of this name stands for whatever the endpoint's own list of models has."""
SCRIPTED = "script:"
"""The address of models that are scripts of this project: no server, no network, no key."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
__all__ = ["LISTED", "Api", "Endpoint", "EndpointsError", "ModelFacts", "Price", "key_variables", "load_endpoints"]
MILLION = 1_000_000
MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, as on ``date`` (ISO)."""

    input: float
    cached: float
    output: float
    currency: str
    date: str

    def cost(self, usage: Usage) -> float:
        """What a turn cost; cached tokens are part of the input and cheaper."""
        cached = min(usage.cached, usage.input)
        return ((usage.input - cached) * self.input + cached * self.cached + usage.output * self.output) / MILLION


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the server's owner says of a model. ``efforts`` are the words its reasoning effort may take."""

    name: str
    context_tokens: int = 32_768
    efforts: tuple[str, ...] = ()
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A place that answers questions. Seconds: ``connect_s`` to be connected, ``first_token_s`` until the first
    piece of an answer, ``gap_s`` between two pieces, ``answer_s`` for a whole answer, ``patience_s`` until a question
    that keeps failing is given up. ``parallel`` questions at a time. ``ca_file`` adds an authority for certificates."""

    name: str
    url: str
    key_variable: str | None = None
    models: tuple[ModelFacts, ...] = ()
    api: Api = "chat"
    connect_s: float = 10.0
    first_token_s: float = 300.0
    gap_s: float = 120.0
    answer_s: float = 900.0
    patience_s: float = 300.0
    parallel: int = 4
    ca_file: str | None = None

    @property
    def scripted(self) -> bool:
        """Whether the scripts of this project answer, without a server."""
        return self.url == SCRIPTED

    @property
    def lists_models(self) -> bool:
        """Whether any model that the endpoint itself lists may be chosen."""
        return any(model.name == LISTED for model in self.models)

    def facts(self, model: str) -> ModelFacts | None:
        """What is known of a model; the facts of ``*`` stand for one that is not written out. ``None``: not offered."""
        named = next((item for item in self.models if item.name == model), None)
        if named is not None or not model:
            return named
        listed = next((item for item in self.models if item.name == LISTED), None)
        return None if listed is None else ModelFacts(model, listed.context_tokens, listed.efforts, listed.price)


def load_endpoints(path: Path) -> dict[str, Endpoint]:
    """The endpoints of a file by name, in its order; an absent file has none.

    Raises:
        EndpointsError: the file cannot be read, is not TOML, or a table or key in it is wrong.
    """
    try:
        raw = read_regular(path, MOST_BYTES, "Mend that; until then there are no endpoints.", "The file of endpoints")
    except UsageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise EndpointsError(error.text) from error
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EndpointsError(f"{path} is not valid TOML: {error}. Mend that line; until then the server has no "
                             "endpoints.") from error
    top = Table(path, "the file", document)
    tables = top.mapping("endpoint")
    top.done()
    return {name: _endpoint(path, name, table) for name, table in tables.items()}


def key_variables(endpoints: Mapping[str, Endpoint]) -> tuple[str, ...]:
    """Names of all environment variables that hold keys: what no process but the engine's may have."""
    return tuple(sorted({item.key_variable for item in endpoints.values() if item.key_variable}))


def _endpoint(path: Path, name: str, document: Any) -> Endpoint:
    table = Table(path, f"[endpoint.{name}]", document)
    if not NAME.match(name):
        raise table.wrong("name", "an endpoint's name has letters, digits, dots, dashes and underscores, up to 63")
    defaults = Endpoint(name, "http://localhost")
    prices = table.mapping("price")
    models = table.items("models")
    api = table.text("api", "chat")
    if api not in ("chat", "responses", "auto"):
        raise table.wrong("api", "it is chat, responses or auto")
    variable = table.text("key_variable", "") or None
    if variable is not None and not VARIABLE.match(variable):
        # Somebody who pastes the key itself must not see it come back in an error.
        raise table.wrong("key_variable", "it is the NAME of an environment variable that holds the key, never the key")
    endpoint = Endpoint(
        name, _url(table), variable, tuple(_model(table, item, prices) for item in models), cast(Api, api),
        connect_s=table.seconds("connect_s", defaults.connect_s),
        first_token_s=table.seconds("first_token_s", defaults.first_token_s),
        gap_s=table.seconds("gap_s", defaults.gap_s), answer_s=table.seconds("answer_s", defaults.answer_s),
        patience_s=table.seconds("patience_s", defaults.patience_s, least=0.0),
        parallel=table.whole("parallel", defaults.parallel, 1, 256), ca_file=table.text("ca_file", "") or None)
    table.done()
    names = [model.name for model in endpoint.models]
    if not names:
        raise table.wrong("models", 'name at least one model, or "*" for all that the endpoint lists')
    twice = next((item for item in names if names.count(item) > 1), None)
    if twice is not None:
        raise table.wrong("models", f"{twice!r} is in it twice")
    strange = next((item for item in prices if item not in names), None)
    if strange is not None:
        raise table.wrong(f"price.{strange}", "no model of this endpoint has that name")
    return endpoint


def _url(table: Table) -> str:
    url = table.text("url").rstrip("/")
    if url == SCRIPTED:
        return url
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        raise table.wrong("url", "it is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok:
        raise table.wrong("url", "it begins with http:// or https:// and names a host, such as https://host:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise table.wrong("url", "it carries a user, a password, a query or a fragment; a key belongs into the "
                                 "environment variable that key_variable names")
    return url


def _model(table: Table, item: Any, prices: Mapping[str, Any]) -> ModelFacts:
    if isinstance(item, str):
        item = {"name": item}
    inner = Table(table.path, f"{table.name} models", item)
    name = inner.text("name")
    facts = ModelFacts(name, inner.whole("context_tokens", 32_768, 256, 100_000_000),
                       tuple(inner.words("efforts")), _price(table, name, prices.get(name)))
    inner.done()
    return facts


def _price(table: Table, model: str, document: Any) -> Price | None:
    if document is None:
        return None
    inner = Table(table.path, f'{table.name[:-1]}.price."{model}"]', document)
    whole = inner.money("input")
    date = inner.text("date")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        raise inner.wrong("date", 'it is a day such as "2026-11-29", so that readers know how old the price is')
    currency = inner.text("currency")
    if not re.fullmatch(r"[A-Z]{3}", currency):
        raise inner.wrong("currency", "it is three capital letters such as USD")
    price = Price(whole, inner.money("cached", whole), inner.money("output"), currency, date)
    inner.done()
    return price
