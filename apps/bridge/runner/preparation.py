"""What must stand before the site answers: operators, hardware, the gate's triggers, the demo's people."""

from __future__ import annotations

from django.conf import settings
from django.core.checks import run_checks

from apps.bridge import api
from apps.kernels.services import hardware_register, operators_sync
from apps.reviews.services import gate_prepare


def prepare(*, demo: bool) -> list[str]:
    """Write what is missing; answers sentences about what will not work. Idempotent, takes about a second."""
    checks = run_checks(tags=["database"], databases=["default"])
    notes = [f"The gate's trigger {name} does not stand; promotions wait." for name in gate_prepare()]
    notes += [f"{check.msg} {check.hint or ''}".strip() for check in checks]
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # the static middleware warns where it is missing
    operators_sync()
    here, *others = api.devices_here()
    hardware_register(name=here.name, title="this machine", backends=["numba"], facts=_facts(here.name))
    for name in dict.fromkeys((*api.compile_targets(), *(device.name for device in others))):
        hardware_register(name=name, backends=["triton"], facts=_facts(name))
    if demo:
        from apps.bridge.runner.demo.people import seed_people

        seed_people()
    if settings.DEBUG:
        notes.append("KERNELOPT_DEBUG is on: error pages show settings and source.")
    return notes


def _facts(name: str) -> dict:
    try:
        return api.hardware_digest(name)
    except api.BridgeError:
        return {}
