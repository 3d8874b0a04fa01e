"""Forms and addresses are read as UTF-8 alone, whatever encoding a request names for itself."""

from __future__ import annotations

import codecs

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

WHY = ("The request names an encoding other than UTF-8 for what it sends. Nothing was read or changed; the pages of "
       "this site send UTF-8.")


class Utf8Alone(MiddlewareMixin):
    """Python knows encodings that are none of text, and others that decode to halves of characters, which no column, no
    digest and no page can hold. Django refuses them for one kind of form only."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """Refuse the request before anything reads its fields; ``None`` lets it pass."""
        if request.encoding is None or codecs.lookup(request.encoding).name == "utf-8":
            return None
        return HttpResponse(WHY, status=400, content_type="text/plain; charset=utf-8")
