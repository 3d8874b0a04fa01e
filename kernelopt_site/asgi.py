"""ASGI entry: Django first, before it the MCP server at its one address, and the socket routes behind the origin check
and the session."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelopt_site.settings.base")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()  # loads the apps before anything below imports a model

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

from apps.bridge.mcp.door import McpDoor  # noqa: E402
from apps.stream.origin import SameOrigin  # noqa: E402
from apps.stream.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter({
    "http": McpDoor(django_application),
    "websocket": SameOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
})
