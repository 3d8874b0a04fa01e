"""The doctor's escape probes: per sandbox mode the level proved, what is missing and why, and the way to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.backends.present import absent
from harness.cli.doctor_check import Check, lacking
from harness.evaluation.sandbox.modes import MODES, backend_of

LEAST_LEVEL = 2
MEANS = "Below level 2 only playbook and autotune kernels run, and nothing is promoted."


@dataclass(slots=True)
class Levels:
    """What the probes of one doctor's visit found, mode by mode, in the shape of its report."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def trials(self, modes: Iterable[str] = tuple(MODES)) -> list[Callable[[], Check]]:
        """One trial per mode."""
        return [self._trial(mode) for mode in modes]

    def _trial(self, mode: str) -> Callable[[], Check]:
        def isolation() -> Check:
            from harness.evaluation import sandbox

            why = absent(backend_of(mode))
            if why is not None:
                return lacking(f"isolation ({mode})", why)
            return self.found(mode, sandbox.opener(mode).proof)

        isolation.__doc__ = f"Escape probe of the mode {mode}."
        isolation.__name__ = f"isolation ({mode})"
        return isolation

    def found(self, mode: str, proof: Any) -> Check:
        """Note the proof of ``mode`` and word it."""
        from harness.evaluation.sandbox.advice import next_level, remedies

        step, mends = next_level(proof), remedies(proof)
        self.rows.append({
            "mode": mode, "level": proof.level, "proved": list(proof.proved), "missing": dict(proof.missing),
            "escaped": list(proof.escaped), "remedies_by_wall": mends,
            "next": list(dict.fromkeys([*([] if proof.level >= 3 else [step]), *mends.values()])),
        })
        text = f"level {proof.level} of 3 proved by the escape probe: {', '.join(proof.proved) or 'no wall'}"
        if proof.escaped:
            text += f". The probe got through: {', '.join(proof.escaped)}"
        if proof.missing:
            text += ". Not standing: " + "; ".join(f"{wall} ({why})" for wall, why in proof.missing)
        if proof.level >= LEAST_LEVEL:
            # a wall that is missing although the level is reached is a note, not a fault
            return Check(f"isolation ({mode})", proof.level >= 3, text, "" if proof.level >= 3 else
                         "Agents' kernels may be promoted; one wall more would stand at the next level.",
                         "" if proof.level >= 3 else step, optional=True)
        return Check(f"isolation ({mode})", False, text, MEANS, step)
