"""Only pages of this site may open its sockets: browsers send cookies to any port and scheme of a host."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings

log = logging.getLogger(__name__)
Application = Callable[[dict[str, Any], Any, Any], Awaitable[Any]]


class SameOrigin:
    """Outermost layer of the sockets: the Origin must be the very host and port asked for, or a trusted origin.

    ``AllowedHostsOriginValidator`` compares host names alone and refuses silently; a page on another port of this
    machine would pass it.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        """Pass on or refuse (the browser sees HTTP 403)."""
        headers = dict(scope.get("headers", ()))
        origin = headers.get(b"origin", b"").decode("latin-1")
        host = headers.get(b"host", b"").decode("latin-1")
        if allowed(origin, host):
            return await self._application(scope, receive, send)
        log.warning("Socket %s refused: its origin is %r, this site is %r.", scope.get("path"), origin, host)
        return await WebsocketDenier()(scope, receive, send)


def allowed(origin: str, host: str) -> bool:
    """Whether a page of ``origin`` (``scheme://host[:port]``) may open a socket that was asked for at ``host``."""
    if not origin or not host:
        return False  # scripts use the HTTP address with a token
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower()) or (
        origin in settings.CSRF_TRUSTED_ORIGINS)
