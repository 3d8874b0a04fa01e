"""Somebody at the site over plain HTTP: a person with a session and its forms, or a script with a token."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.cookiejar import CookieJar
from typing import Any

from apps.bridge.runner.demo.browser import Form, Forms, Words

TIMEOUT_S = 30.0
SHOWN = 400
Fields = Sequence[tuple[str, str]]


class Failed(Exception):
    """Something did not happen as it must; the sentence says what was asked and what came back."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the site answered: the status after redirects, the final address, and the body."""

    status: int
    url: str
    text: str

    @property
    def words(self) -> str:
        """The text of a page without its markup."""
        parser = Words()
        parser.feed(self.text)
        return " ".join(" ".join(parser.said).split())

    @property
    def forms(self) -> list[Form]:
        """The forms of a page."""
        parser = Forms()
        parser.feed(self.text)
        return parser.found

    def form(self, wanted: Callable[[Form], bool], what: str) -> Form:
        """The form that ``wanted`` picks.

        Raises:
            Failed: the page has no such form.
        """
        found = next((form for form in self.forms if wanted(form)), None)
        if found is None:
            raise Failed(f"{self.url} shows no {what}: {self.words[:SHOWN]}")
        return found


class Visitor:
    """A browser session: cookies are kept, redirects followed, refusals are answers."""

    def __init__(self, site: str, name: str = "") -> None:
        self.site = site
        self.name = name
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def get(self, path: str) -> Answer:
        """Open a page."""
        return self._ask(urllib.request.Request(self.site + path))

    def fetch(self, path: str) -> bytes:
        """The bytes of a file that the site offers.

        Raises:
            Failed: it does not.
        """
        try:
            with self._opener.open(self.site + path, timeout=TIMEOUT_S) as response:
                found: bytes = response.read()
                return found
        except OSError as error:  # a status beyond 400 is one
            raise Failed(f"{self.site}{path} does not answer with a file: {error}") from error

    def post(self, path: str, fields: Fields) -> Answer:
        """Send a form as a browser does."""
        request = urllib.request.Request(self.site + path, data=urllib.parse.urlencode(fields).encode())
        request.add_header("Referer", self.site + path)
        request.add_header("Origin", self.site)
        return self._ask(request)

    def submit(self, page: str, wanted: Callable[[Form], bool], what: str, fields: Fields) -> Answer:
        """Open ``page``, fill in the form that ``wanted`` picks, and send it with its hidden fields (CSRF included)."""
        form = self.get(page).form(wanted, what)
        return self.post(form.action or page, [*form.hidden.items(), *fields])

    def sign_in(self, password: str) -> None:
        """Sign in on the page.

        Raises:
            Failed: it was refused.
        """
        fields = [("username", self.name), ("password", password)]
        answer = self.submit("/accounts/sign-in/", lambda form: "csrfmiddlewaretoken" in form.hidden, "form", fields)
        if answer.status != 200 or "sign-in" in answer.url:
            raise Failed(f"{self.name} could not sign in: {answer.words[:SHOWN]}")

    def _ask(self, request: urllib.request.Request) -> Answer:
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                return Answer(response.status, response.url, response.read().decode("utf-8", "replace"))
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.url or request.full_url, error.read().decode("utf-8", "replace"))
        except OSError as error:
            raise Failed(f"{request.full_url} does not answer: {error}") from error


class Api:
    """A script with a bearer token; documents in, documents out."""

    def __init__(self, site: str, token: str) -> None:
        self._site = site
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Status and document of ``path`` under ``/api/v1/``; ``body`` makes it a POST."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._site}/api/v1/{path}", data=data, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")
        except OSError as error:
            raise Failed(f"{request.full_url} does not answer: {error}") from error

    def must(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Like ``ask``, but only success will do.

        Raises:
            Failed: with the site's sentence.
        """
        status, document = self.ask(path, body)
        if status >= 300:
            raise Failed(f"/api/v1/{path} answered {status}: {document.get('text', document)}")
        return document
