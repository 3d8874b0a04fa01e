"""Operator, slot, kernel and verdict pages."""

from __future__ import annotations

from django.urls import path

from apps.kernels.views import hardware, kernels, operators, slots, verdicts

urlpatterns = [
    path("operators/", operators.listing, name="operators"),
    path("operators/<str:name>/", operators.operator_page, name="operator"),
    path("operators/<str:operator>/<str:backend>/<str:hardware>/<str:workload>/", slots.slot_page, name="slot"),
    path(
        "operators/<str:operator>/<str:backend>/<str:hardware>/<str:workload>/rollback/",
        slots.roll_back,
        name="rollback",
    ),
    path("hardware/", hardware.listing, name="hardware-list"),
    path("hardware/<str:name>/", hardware.hardware_page, name="hardware"),
    path("kernels/<str:digest>/", kernels.kernel_page, name="kernel"),
    path("kernels/<str:digest>/source.py", kernels.source, name="kernel-source"),
    path("verdicts/<int:pk>/", verdicts.verdict_page, name="verdict"),
    path("verdicts/<int:pk>/verdict.json", verdicts.verdict_document, name="verdict-json"),
    path("verdicts/<int:pk>/samples.json", verdicts.samples_json, name="samples-json"),
    path("verdicts/<int:pk>/samples.csv", verdicts.samples_csv, name="samples-csv"),
]
