"""Reads what compute-sanitizer wrote. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = re.compile(r"^=+ ?")
SUMMARY = re.compile(r"^(?:ERROR|RACECHECK|LEAK|SYNCCHECK) SUMMARY: (.*)")
DEVICE_SIDE = re.compile(
    r"^(?:Invalid __\w+__ |Misaligned |Out-of-range |Uninitialized __\w+__ |Barrier error |"
    r"(?:Error: |Warning: |ERROR: )?(?:Race reported|Potential \w+ hazard))")
"""Heads of findings about kernels; what the tool says about the launcher's own driver calls is no candidate's doing."""
WHERE = re.compile(r"(?:^|access )at (?:0x[0-9a-f]+ in )?(?P<function>[A-Za-z_$][\w$.]*)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One complaint: the tool's sentence, the function it is about (empty where none is named), the first details.
    ``severe`` is false for warnings."""

    text: str
    function: str
    details: tuple[str, ...]
    severe: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """``summary`` is the tool's last line, ``None`` where it did not get that far: then nothing can be concluded."""

    findings: tuple[Finding, ...]
    summary: str | None


def read_report(text: str) -> Report:
    """The findings of one tool's log. Lines that are not the tool's own are passed over."""
    findings: list[Finding] = []
    head: str | None = None
    details: list[str] = []
    summary = None

    def finish() -> None:
        nonlocal head
        if head is not None and DEVICE_SIDE.match(head):
            findings.append(_finding(head, details))
        head = None
        details.clear()

    for raw in text.splitlines():
        if not raw.startswith("========="):
            continue
        line = PREFIX.sub("", raw, count=1)
        if line.startswith("    "):
            details.append(line.strip())
            continue
        finish()
        known = SUMMARY.match(line.strip())
        if known:
            summary = known.group(1)
        elif line.strip():
            head = line.strip()
    finish()
    return Report(tuple(findings), summary)


def _finding(head: str, details: list[str]) -> Finding:
    lines = [line for line in details if not line.startswith(("Saved host backtrace", "Host Frame", "Device Frame"))]
    function = next((found.group("function") for line in [head, *lines] if (found := WHERE.search(line))), "")
    return Finding(head, function, tuple(lines[:4]), severe=not head.startswith("Warning"))
