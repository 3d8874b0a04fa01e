"""For machines: is the process up, is the site ready, and figures in the Prometheus text format."""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.campaigns.jobs.selectors import workers
from apps.core.screens.health import counts
from apps.reviews.selectors import promotions_blocked


@never_cache
@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """The web process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """The database answers. Workers that are down and waiting promotions are reported and do not make it unready."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "cause": "The database does not answer."}, status=503)
    return JsonResponse(
        {
            "status": "ready",
            "promotions_blocked": promotions_blocked(),
            "workers": {status.worker.name: "up" if status.up else "down" for status in workers()},
        }
    )


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Gauges without labels that name people, teams or kernels."""
    lines = [f"# TYPE kernelopt_{name} gauge\nkernelopt_{name} {value}" for name, value in counts().items()]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; version=0.0.4; charset=utf-8")
