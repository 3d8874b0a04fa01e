"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass

ASK = "Run 'make run' again to rebuild the environment; if it stays, give this report to a maintainer."


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried. ``ok`` false with ``optional`` is a limitation, not a fault; ``means`` says what it
    costs, ``remedy`` what a person can do."""

    name: str
    ok: bool
    text: str
    means: str = ""
    remedy: str = ""
    optional: bool = False
    seconds: float = 0.0


def lacking(name: str, why: str) -> Check:
    """A backend that this host does without: a limitation, not a fault."""
    return Check(name, False, why, "Kernels of that backend are judged on other hosts.",
                 "Nothing, if that is meant; otherwise install what is named.", optional=True)
