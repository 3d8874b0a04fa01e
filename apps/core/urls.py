"""Home, system, troubleshooting, jump box and health."""

from __future__ import annotations

from django.urls import path

from apps.core.views import health, home, jump, system, troubleshooting

urlpatterns = [
    path("", home.home, name="home"),
    path("banners/", home.banner_strip, name="banners"),
    path("jump/", jump.jump, name="jump"),
    path("system/", system.system, name="system"),
    path("system/workers/<int:pk>/drain/", system.drain, name="worker-drain"),
    path("system/jobs/<uuid:pk>/requeue/", system.requeue, name="job-requeue"),
    path("system/workers/<int:pk>/selftest/", system.order_selftest, name="selftest-order"),
    path("system/canary/<int:pk>/rebase/", system.rebase, name="canary-rebase"),
    path("docs/troubleshooting/", troubleshooting.index, name="troubleshooting-index"),
    path("docs/troubleshooting/<str:code>/", troubleshooting.entry, name="troubleshooting"),
    path("health/", health.health, name="health"),
    path("ready/", health.ready, name="ready"),
    path("metrics", health.metrics, name="metrics"),
]
