"""ASGI entry: Django first, then the socket routes behind the origin check and the session."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelopt_site.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()  # loads the apps before anything below imports a model

from importlib.util import find_spec  # noqa: E402

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402


def _websocket_routes() -> list:
    if find_spec("apps.stream.routing") is None:
        return []
    from apps.stream.routing import websocket_urlpatterns

    return websocket_urlpatterns


application = ProtocolTypeRouter({
    "http": django_application,
    "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(_websocket_routes()))),
})
