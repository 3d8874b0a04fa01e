"""What the harness knows of operators and hardware, as plain values for rows and pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.bridge.api.errors import BridgeError, translated


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """A workload: shapes by backend as ``{"label", "dims", "weight"}``, dtypes by backend."""

    name: str
    title: str
    note: str
    regimes: tuple[str, ...]
    shapes: dict[str, tuple[dict[str, Any], ...]]
    dtypes: dict[str, str]


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """An operator as pages show it. Lists of documents keep the field names of the harness's declarations."""

    name: str
    version: str
    title: str
    formula: str
    semantics: str
    signature: str
    backends: tuple[str, ...]
    workloads: tuple[WorkloadFacts, ...]
    arguments: tuple[dict[str, Any], ...]
    attributes: tuple[dict[str, Any], ...]
    cases: tuple[dict[str, Any], ...]
    dry_cases: tuple[dict[str, Any], ...]  # the smaller ones of Triton's interpreter
    tolerances: tuple[dict[str, Any], ...]
    tunables: tuple[dict[str, Any], ...]
    buckets: dict[str, Any] | None


def operators() -> tuple[OperatorFacts, ...]:
    """All shipped operators in listing order."""
    with translated():
        from harness.operators.registry import all_operators

        return tuple(_facts(spec) for spec in all_operators())


def operator_names() -> tuple[str, ...]:
    """Names of all shipped operators in listing order, without loading them."""
    from harness.operators.registry import NAMES

    return NAMES


def operator(name: str) -> OperatorFacts:
    """One operator.

    Raises:
        BridgeError: unknown name; the sentence lists the known ones.
    """
    with translated():
        from harness.operators.registry import get

        return _facts(get(name))


def _facts(spec: Any) -> OperatorFacts:
    from harness.domain.codec import to_document

    workloads = tuple(
        WorkloadFacts(
            name=w.name, title=w.title, note=w.note, regimes=tuple(w.regimes),
            shapes={
                str(backend): tuple({"label": p.label, "dims": dict(p.dims), "weight": p.weight} for p in points)
                for backend, points in w.shapes.items()
            },
            dtypes={str(backend): dtype for backend, dtype in w.dtypes.items()},
        )
        for w in spec.workloads.values()
    )
    backends = tuple(dict.fromkeys(backend for w in workloads for backend in w.shapes))
    return OperatorFacts(
        name=spec.name, version=spec.version, title=spec.title, formula=spec.formula, semantics=spec.semantics,
        signature=spec.signature, backends=backends, workloads=workloads,
        arguments=tuple(to_document(spec.arguments)), attributes=tuple(to_document(spec.attributes)),
        cases=tuple(to_document(spec.cases)), dry_cases=tuple(to_document(spec.interpret_cases)),
        tolerances=tuple(to_document(list(spec.tolerances.values()))),
        tunables=tuple(to_document(spec.tunables)), buckets=to_document(spec.buckets) if spec.buckets else None,
    )


def baseline_source(name: str, backend: str) -> bytes:
    """Bytes of the shipped baseline kernel.

    Raises:
        BridgeError: unknown operator, or no baseline for this backend.
    """
    with translated():
        from harness.domain.vocabulary import Backend
        from harness.operators.registry import get

        spec = get(name)
        try:
            return spec.baseline(Backend(backend)).encode("utf-8")
        except (ValueError, FileNotFoundError) as error:
            known = ", ".join(_facts(spec).backends)
            raise BridgeError(f"{name} has no baseline for backend '{backend}'. Known backends: {known}.",
                              key="backend") from error


def hardware_here() -> str:
    """Name of this machine's CPU as the evaluator uses it, ``cpu-<vendor>-<family>-<threads>t``."""
    with translated():
        from harness.hardware.detect import hardware_name

        return hardware_name()


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device of this machine: its name and the backends whose kernels an evaluation worker judges on it."""

    name: str
    backends: tuple[str, ...]


def devices_here() -> tuple[DeviceFacts, ...]:
    """This machine's devices, the CPU first. Its worker takes Triton kernels too: for dry runs in the interpreter."""
    with translated():
        from harness.hardware.gpu import gpu_name

        gpu = gpu_name()
        found = (DeviceFacts(hardware_here(), ("numba", "triton")),)
        return found if gpu is None else (*found, DeviceFacts(gpu, ("triton",)))


def environment_class_here(device: str, backend: str) -> str:
    """The environment class that verdicts of ``backend`` on ``device`` carry here."""
    with translated():
        from harness.domain.vocabulary import Backend
        from harness.hardware.detect import environment

        return environment(Backend(backend), device if device.startswith("nvidia-") else None).class_


def hardware_digest(name: str) -> dict[str, Any]:
    """The facts about a device that agents are told and pages show.

    Raises:
        BridgeError: nothing is known about this device.
    """
    with translated():
        from harness.domain.codec import to_document
        from harness.hardware.digests import digest

        return to_document(digest(name))


def hardware_known() -> tuple[str, ...]:
    """Names of devices with a digest, this machine's first; what only stands in for a device is left out."""
    with translated():
        from harness.hardware.digests import digest, known

        return tuple(name for name in known() if digest(name).kind != "interpreter")


def compile_targets() -> tuple[str, ...]:
    """GPUs that Triton plans can be compiled for without having one, the default first: targets of dry runs."""
    with translated():
        from harness.backends.triton.targets import TARGETS

        return tuple(TARGETS)


def evaluator_version() -> str:
    """Version of the evaluator in this installation."""
    from harness import EVALUATOR_VERSION

    return EVALUATOR_VERSION
