"""All attempts, and the settings they run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.harness.sandbox_attacks.attempt import Attempt
from tests.harness.sandbox_attacks.files import FILES
from tests.harness.sandbox_attacks.kernel import KERNEL, LAST
from tests.harness.sandbox_attacks.processes import PROCESSES

ATTEMPTS: tuple[Attempt, ...] = (*PROCESSES, *KERNEL, *FILES, *LAST)

NO_NAMESPACES = {"namespaces": False}
SETTINGS: Mapping[str, dict[str, Any]] = {
    "3": {},
    "3 without seccomp": {"without": ("seccomp",)},
    "3 without landlock": {"without": ("landlock",)},
    "2": {**NO_NAMESPACES, "without": ("uid",)},
    "1": {**NO_NAMESPACES, "without": ("uid", "landlock")},
    "0": {**NO_NAMESPACES, "without": ("uid", "landlock", "seccomp", "limits")},
}
"""How a sandbox is opened so that its walls are those of a level, or of level 3 with one wall missing."""
