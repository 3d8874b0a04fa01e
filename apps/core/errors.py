"""Errors of the web side. ``text`` is a sentence for the reader; views show it, the API returns it."""

from __future__ import annotations


class AppError(Exception):
    """Base: ``code`` names the troubleshooting entry, ``status`` the HTTP answer."""

    code = "error"
    status = 400

    def __init__(self, text: str, *, code: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        if code is not None:
            self.code = code


class Refused(AppError):
    """A rule forbids this to this person now. The sentence names the rule and who may."""

    code = "not_permitted"
    status = 403


class TooManyTries(AppError):
    """Too many wrong passwords; even the right one is refused for a while. The sentence says for how long."""

    code = "too_many_tries"
    status = 429


class NotFound(AppError):
    """The object does not exist, or belongs to another team."""

    code = "not_found"
    status = 404


class Invalid(AppError):
    """What was given is wrong; ``key`` is the dotted path of the value to change."""

    code = "invalid"
    status = 422

    def __init__(self, text: str, *, key: str = "", code: str | None = None) -> None:
        super().__init__(text, code=code)
        self.key = key


class ImpossibleTransition(AppError):
    """The state machine has no such step."""

    code = "impossible_transition"
    status = 409


class MovedOn(AppError):
    """The object changed since the caller read it."""

    code = "moved_on"
    status = 409


class LeaseLost(AppError):
    """The lease expired or was taken over; the fencing token no longer counts."""

    code = "lease_lost"
    status = 409


class GateRefused(AppError):
    """A promotion lacks something; ``unmet`` lists the sentences of the requirements."""

    code = "gate_refused"
    status = 409

    def __init__(self, text: str, *, unmet: tuple[str, ...] = (), code: str | None = None) -> None:
        super().__init__(text, code=code)
        self.unmet = unmet
