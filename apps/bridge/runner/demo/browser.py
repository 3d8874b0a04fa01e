"""A scripted person in a browser: signs in, opens the review, submits the decision form that the page shows."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import CookieJar

TIMEOUT_S = 20.0
SHOWN = 300


class Refusal(Exception):
    """The site did not do what was asked; the sentence says what it answered."""


@dataclass
class Form:
    """A form of a page: where it goes, its hidden fields, and the values of its submit buttons by name."""

    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    buttons: set[tuple[str, str]] = field(default_factory=set)
    boxes: list[tuple[str, str]] = field(default_factory=list)


class Forms(HTMLParser):
    """Collects the forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Forms, their hidden inputs, boxes and buttons."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(given.get("action", "")))
            self._inside = True
        elif self._inside and tag == "input" and given.get("type") == "hidden":
            self.found[-1].hidden[given.get("name", "")] = given.get("value", "")
        elif self._inside and tag == "input" and given.get("type") == "checkbox":
            self.found[-1].boxes.append((given.get("name", ""), given.get("value", "on")))
        elif self._inside and tag == "button":
            self.found[-1].buttons.add((given.get("name", ""), given.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        """The end of a form."""
        if tag == "form":
            self._inside = False


class Session:
    """A browser session on one site."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def get(self, path: str) -> list[Form]:
        """Open a page; its forms."""
        return self._read(urllib.request.Request(self._site + path))

    def post(self, path: str, fields: list[tuple[str, str]]) -> list[Form]:
        """Submit a form and follow the redirect."""
        request = urllib.request.Request(self._site + path, data=urllib.parse.urlencode(fields).encode())
        request.add_header("Referer", self._site + path)
        request.add_header("Origin", self._site)
        return self._read(request)

    def _read(self, request: urllib.request.Request) -> list[Form]:
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                page = response.read().decode("utf-8")
        except urllib.error.HTTPError as error:
            body = error.read().decode("utf-8", "replace")
            raise Refusal(f"{request.full_url} answered {error.code}: {_words(body)}") from error
        forms = Forms()
        forms.feed(page)
        return forms.found


def approve(*, site: str, username: str, password: str, review: int, comment: str) -> None:
    """Sign in as ``username`` and approve ``review`` on the bytes that its page shows.

    Raises:
        Refusal: the page has no such button for this person, or the decision was refused.
        OSError: the site cannot be reached.
    """
    session = Session(site)
    sign_in = _form(session.get("/accounts/sign-in/"), lambda form: "csrfmiddlewaretoken" in form.hidden)
    session.post("/accounts/sign-in/", [*sign_in.hidden.items(), ("username", username), ("password", password)])
    page = f"/reviews/{review}/"
    decision = _form(session.get(page), lambda form: ("kind", "approve") in form.buttons)
    session.post(decision.action or page, [
        *decision.hidden.items(), *[box for box in decision.boxes if box[0] == "ticked"], ("comment", comment),
        ("kind", "approve")])


def _form(forms: list[Form], wanted: Callable[[Form], bool]) -> Form:
    found = next((form for form in forms if wanted(form)), None)
    if found is None:
        raise Refusal("The page shows no such form to this person.")
    return found


class Words(HTMLParser):
    """The text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        """Collect."""
        self.said.append(data)


def _words(body: str) -> str:
    parser = Words()
    parser.feed(body)
    return " ".join(" ".join(parser.said).split())[:SHOWN]
