"""What libraries took in this environment class, as far as it was measured: kept by ``python -m harness report``.

A win of more than twice the best library always needs a person, and a baseline that is three times slower is no
reasonable start. Without figures both rules are off, and a verdict says so. Loads no torch.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.domain.codec import check_schema, from_document
from harness.domain.digest import digest_source
from harness.domain.errors import DocumentError
from harness.domain.peers import Peers, best_peers
from harness.domain.verdict import Reason, Timing
from harness.domain.vocabulary import Stage
from harness.evaluation.run import Run
from harness.hardware.detect import environment
from harness.hardware.roofs import var_folder

SUSPICIOUS_WIN = 2.0
REASONABLE = 3.0
"""How many times the best library's time a baseline may take."""
OFF = "off: no library was measured in this environment class"


@dataclass(frozen=True, slots=True)
class Best:
    """The fastest right library on one shape, microseconds per call."""

    name: str
    us: float


def path_of(class_: str) -> Path:
    """Where the figures of an environment class are kept."""
    return var_folder() / "peers" / f"{class_.replace('/', '_')}.json"


def best_of(class_: str, operator: str, workload: str) -> dict[str, Best]:
    """The fastest right library of every shape of a workload; empty where none was measured."""
    with contextlib.suppress(OSError, ValueError, DocumentError):
        document = json.loads(path_of(class_).read_text("utf-8"))
        check_schema(document, "peers")
        peers = from_document(document, Peers)
        if peers.workload == workload and peers.environment.class_ == class_:
            return {row.shape: Best(row.name, row.median_us) for (name, _), row in best_peers(peers.rows).items()
                    if name == operator and row.median_us is not None}
    return {}


def wins(timing: Timing, best: Mapping[str, Best]) -> list[str]:
    """Shapes on which the kernel takes less than half of the best library's time."""
    return [f"{one.shape}: {one.median_us:.1f} us is {best[one.shape].us / one.median_us:.1f} times as fast as the "
            f"best library measured here ({best[one.shape].name}, {best[one.shape].us:.1f} us)."
            for one in timing.shapes if one.shape in best and SUSPICIOUS_WIN * one.median_us < best[one.shape].us]


def slow(timing: Timing, best: Mapping[str, Best]) -> str | None:
    """Why a baseline is no reasonable start, ``None`` where it is one."""
    found = [(one.median_us / best[one.shape].us, one) for one in timing.shapes if one.shape in best]
    worst = max(found, key=lambda pair: pair[0], default=None)
    if worst is None or worst[0] <= REASONABLE:
        return None
    ratio, shape = worst
    known = best[shape.shape]
    return (f"The baseline takes {ratio:.1f} times as long as the best library measured here on {shape.shape} "
            f"({shape.median_us:.1f} us, {known.name} {known.us:.1f} us): gains over it flatter. Compare with the "
            "library.")


def hold_against(run: Run, timing: Timing) -> None:
    """Add what the libraries' figures say to ``run``: suspicious wins, a note on a slow baseline, what was known."""
    best = best_of(environment(run.request.backend, run.device).class_, run.spec.name, run.request.workload)
    run.clocks["library"] = {label: {"name": one.name, "us": round(one.us, 3)} for label, one in best.items()} or OFF
    run.suspicious += wins(timing, best)
    if run.request.candidate.digest == digest_source(run.spec.baseline(run.request.backend)):
        text = slow(timing, best)
        if text is not None:
            run.notes.append(Reason("baseline_slow", Stage.RECHECK, text))
