"""Devices: what agents are told about them, with the sources, and what happened on them here."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from apps.bridge import api
from apps.campaigns.jobs.devices import devices_served
from apps.core.errors import NotFound
from apps.core.paging import SignedIn, page, show
from apps.imports.selectors import imported_keys
from apps.kernels import selectors
from apps.kernels.models import Hardware
from apps.kernels.screens.device import Device, device_of


def devices() -> list[Device]:
    """Every device with a digest, this machine's first, then those that rows name without one."""
    rows = {row.name: row for row in Hardware.objects.all()}
    served = set(devices_served())
    here = api.hardware_here()
    names = dict.fromkeys((*api.hardware_known(), *rows))
    return [device_of(name, digest_of(name), rows[name].backends if name in rows else [],
                      here=name == here or name in served, targets=api.compile_targets()) for name in names]


def digest_of(name: str) -> dict[str, Any]:
    """The harness's digest of a device; the one stored with its row where this version has none."""
    try:
        return api.hardware_digest(name)
    except api.BridgeError:
        row = Hardware.objects.filter(name=name).first()
        return dict(row.facts) if row is not None else {}


@page
def listing(request: SignedIn) -> HttpResponse:
    """All devices side by side."""
    return show(request, "kernels/hardware_list.html", {"devices": devices()})


@page
def hardware_page(request: SignedIn, name: str) -> HttpResponse:
    """One device."""
    found = next((one for one in devices() if one.name == name), None)
    if found is None:
        raise NotFound(f"Nothing is known about hardware '{name}'. The hardware page lists what is.")
    return show(request, "kernels/hardware.html", {
        "device": found, "slots": selectors.slots_for(request.user).filter(hardware__name=name),
        "imported": imported_keys(request.user, report__hardware=name)})
