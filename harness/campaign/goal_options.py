"""The goal of a command-line campaign: the document first, single options over it, and what they changed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backends.triton.targets import TARGETS, find_target
from harness.domain.codec import to_document
from harness.domain.errors import UsageError
from harness.domain.files import read_regular
from harness.domain.goal import Goal, goal_from_document, goal_from_toml
from harness.domain.vocabulary import Backend
from harness.hardware.detect import hardware_name
from harness.hardware.digests import digest
from harness.hardware.gpu import gpu_name

MAX_GOAL_BYTES = 1 << 20
DRY_RUN_TARGET = "nvidia-h200"
"""The device a Triton campaign without a GPU is prepared for where the goal names none."""


@dataclass(frozen=True, slots=True)
class Options:
    """Command-line options that override a goal; ``None`` leaves the goal's value."""

    operator: str | None = None
    backend: str | None = None
    hardware: str | None = None
    workload: str | None = None
    agent: str | None = None
    strategy: str | None = None
    grant: str | None = None
    rounds: int | None = None
    seconds: float | None = None
    endpoint: str | None = None
    model: str | None = None
    effort: str | None = None
    best_of: int | None = None
    tokens: int | None = None


def goal_of(path: Path | None, options: Options) -> tuple[Goal, tuple[str, ...]]:
    """The goal and, when a document was given, one sentence per option that changed it.

    Raises:
        UsageError: no document and no operator or backend, or a file that cannot be read.
        GoalError: a contradiction; ``key`` names the value.
    """
    if path is None:
        for name in ("operator", "backend"):
            if getattr(options, name) is None:
                raise UsageError(f"optimize needs --{name} (or --goal with a goal document).")
        document: dict[str, Any] = {"version": 1, "operator": options.operator, "backend": options.backend,
                                    "hardware": "", "workload": "llm"}
        changed = _overridden(document, options)[0]
        changed["hardware"] = options.hardware or _default_hardware(changed["backend"])
        return _checked(changed), ()
    document = to_document(_read(path))
    changed, sentences = _overridden(document, options)
    return _checked(changed), sentences


def _read(path: Path) -> Goal:
    data = read_regular(path, MAX_GOAL_BYTES, "Give the path of a TOML file.", "The goal")
    try:
        return goal_from_toml(data.decode("utf-8"))
    except (UnicodeDecodeError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UsageError(f"The goal {path} cannot be read: {why}. Give the path of a TOML file.") from error


def _overridden(document: dict[str, Any], options: Options) -> tuple[dict[str, Any], tuple[str, ...]]:
    paths = {"operator": ("operator",), "backend": ("backend",), "hardware": ("hardware",), "workload": ("workload",),
             "agent": ("agent", "kind"), "strategy": ("agent", "strategy"), "grant": ("grant",),
             "rounds": ("budget", "rounds"), "seconds": ("budget", "seconds"), "endpoint": ("agent", "endpoint"),
             "model": ("agent", "model"), "effort": ("agent", "effort"), "best_of": ("agent", "best_of"),
             "tokens": ("budget", "tokens")}
    sentences = []
    for name, path in paths.items():
        value = getattr(options, name)
        if value is None:
            continue
        target = document
        for part in path[:-1]:
            # A section that the document leaves out keeps the defaults of its other values.
            target = target.setdefault(part, to_document(_DEFAULTS[part]))
        before = target.get(path[-1])
        if before is not None and before != value:
            sentences.append(f"--{name.replace('_', '-')} {value} overrides {'.'.join(path)} = {before}")
        target[path[-1]] = value
    return document, tuple(sentences)


_DEFAULTS = {field.name: field.default for field in dataclasses.fields(Goal) if field.name in ("agent", "budget")}


def _checked(document: dict[str, Any]) -> Goal:
    goal = goal_from_document(document)
    here = hardware_name()
    if goal.backend is Backend.NUMBA and goal.hardware != here:
        raise UsageError(f"Numba kernels are timed on this machine, which is '{here}', not '{goal.hardware}'. Leave "
                         "--hardware out, or run the campaign on that machine.")
    if goal.backend is Backend.TRITON and goal.hardware != "interpreter":
        digest(goal.hardware)  # raises UsageError with the names known
        find_target(goal.hardware)  # raises UsageError where no plan can be compiled for it
    return goal


def _default_hardware(backend: str) -> str:
    if backend == Backend.NUMBA:
        return hardware_name()
    here = gpu_name()
    return here if here in TARGETS else DRY_RUN_TARGET
