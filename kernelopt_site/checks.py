"""System checks of the installation: combinations of settings that would open more than was meant."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from kernelopt_site.env import LOOPBACK

DAPHNE_LEAST = (4, 2, 2)


def _beyond_loopback() -> list[str]:
    return [host for host in settings.ALLOWED_HOSTS if host not in (*LOOPBACK, "testserver")]


@register(Tags.security)
def exposure(**_: Any) -> list[CheckMessage]:
    """Debug pages and one-click people belong to loopback alone."""
    beyond = ", ".join(_beyond_loopback())
    found: list[CheckMessage] = []
    if settings.DEBUG and beyond:
        found.append(Error(f"KERNELOPT_DEBUG is on and the site answers to {beyond}: debug pages show the source and "
                           "settings.", hint="Turn KERNELOPT_DEBUG off, or set KERNELOPT_HOSTS to loopback.",
                           id="site.E001"))
    if settings.DEMO and beyond:
        found.append(Error(f"KERNELOPT_DEMO is on and the site answers to {beyond}: demo people have public "
                           "passwords.", hint="Turn KERNELOPT_DEMO off, or set KERNELOPT_HOSTS to loopback.",
                           id="site.E002"))
    return found


@register(Tags.compatibility)
def server(**_: Any) -> list[CheckMessage]:
    """Daphne below 4.2.2 has two known vulnerabilities (frame size, header smuggling)."""
    installed = version("daphne")
    numbers = tuple(int(part) for part in installed.split(".")[:3] if part.isdigit())
    if numbers >= DAPHNE_LEAST:
        return []
    return [Error(f"daphne {installed} is installed; at least 4.2.2 is needed.",
                  hint="Install requirements.txt again.", id="site.E003")]
