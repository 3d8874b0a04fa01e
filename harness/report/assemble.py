"""From the folder of a report to its document: whatever is there, and sentences about what is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from harness import EVALUATOR_VERSION
from harness.domain.codec import from_document
from harness.domain.digest import digest_source
from harness.domain.peers import ClockAgreement, Protocol, Row
from harness.domain.report import (
    BestPair,
    Report,
    ReportCampaign,
    ReportKernel,
    ReportOperator,
    ReportSearch,
    ReportShape,
    Seconds,
)
from harness.domain.verdict import Environment
from harness.domain.vocabulary import Backend
from harness.domain.words import counted
from harness.operators import registry
from harness.report.reach import figures_of, means_of
from harness.report.settings import Folder, Settings

T = TypeVar("T")
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def assemble(folder: Folder, settings: Settings, began: str, finished: str, environment: Environment,
             protocol: Protocol, versions: Mapping[str, str], wall_s: float, cut: tuple[str, ...] = ()) -> Report:
    """The report of what ``folder`` holds. ``cut``: why something was not run."""
    operators, missing, device_s = [], list(cut), 0.0
    for name in settings.operators:
        operator, lacks, seconds = _operator(folder, settings, name)
        operators.append(operator)
        missing += lacks
        device_s += seconds
    roofs = _roofs(operators, [rates for name in settings.operators for rates in _rates(folder, name)])
    return Report(
        began=began, finished=finished, complete=not missing, backend=str(settings.backend), hardware=settings.hardware,
        workload=settings.workload, environment=environment, evaluator=EVALUATOR_VERSION,
        seconds=Seconds(round(wall_s, 1), round(device_s, 1)), protocol=protocol, missing=tuple(missing),
        versions=dict(versions), roofs=roofs, operators=tuple(operators),
        figures=figures_of(operators, settings.hardware, (roofs or {}).get("copy_gbps")),
        means=means_of(operators, settings.hardware),
    )


def _operator(folder: Folder, settings: Settings, name: str) -> tuple[ReportOperator, list[str], float]:
    spec, where = registry.get(name), f"operators/{name}"
    workload = spec.workloads[settings.workload]
    dtype, points = workload.dtypes[settings.backend], workload.shapes[settings.backend]
    missing: list[str] = []
    campaigns, seconds = [], 0.0
    kernels: dict[str, ReportKernel] = {}
    baseline = spec.baseline(settings.backend)
    sources = {digest_source(baseline): baseline}
    for agent in settings.agents:
        document = folder.read(f"{where}/{agent}/campaign.json")
        if document is None:
            if "campaigns" in settings.phases:
                missing.append(f"{name}: the campaign of {agent} was not run.")
            continue
        campaign = from_document(document["campaign"], ReportCampaign)
        campaigns.append(campaign)
        if document.get("cut"):
            missing.append(f"{name}: the campaign of {agent} was cut after {counted(campaign.rounds, 'round')}; "
                           "--resume goes on with it.")
        seconds += campaign.device_seconds
        sources |= document["sources"]
        for raw in document["kernels"]:
            kernel = from_document(raw, ReportKernel)
            kernels.setdefault(kernel.name, kernel)
    searched = folder.read(f"{where}/search.json") if "search" in settings.phases else None
    search = None if searched is None else from_document(searched["search"], ReportSearch)
    if searched is not None and search is not None:
        seconds += search.device_seconds
        sources |= searched["sources"]
        kernels |= {kernel["name"]: from_document(kernel, ReportKernel) for kernel in searched["kernels"]}
    elif "search" in settings.phases and settings.backend is Backend.TRITON:
        missing.append(f"{name}: the bulk search was not run.")
    sessions = {phase: folder.read(f"{where}/{phase}.json") for phase in ("peers", "final") if phase in settings.phases}
    seconds += sum(float(one["held_s"]) for one in sessions.values() if one)
    for phase, one in sessions.items():
        failed = (one or {}).get("failed", ())
        missing += [f"{name}, {phase}: our kernels were not timed on {sentence}" for sentence in failed]
    chosen = sessions.get("final") or sessions.get("peers")
    if chosen is None and sessions:
        missing.append(f"{name}: libraries were not measured.")
    elif "final" in sessions and sessions["final"] is None and campaigns:
        missing.append(f"{name}: the final session with every agent's kernel was not run; its rows are those of the "
                       "baseline.")
    rows, clocks, best = _session(chosen)
    shapes = tuple(ReportShape(point.label, dict(point.dims), point.weight,
                               spec.bytes_per_call(point.work, ITEM_BYTES[dtype]), spec.flops_per_call(point.work))
                   for point in points)
    return ReportOperator(
        name=name, version=spec.version, title=spec.title, dtype=dtype, shapes=shapes, sources=sources,
        kernels=tuple(kernels.values()), rows=rows, clocks=clocks, campaigns=tuple(campaigns), best=best,
        search=search,
    ), missing, seconds


def _session(document: Mapping[str, Any] | None
             ) -> tuple[tuple[Row, ...], tuple[ClockAgreement, ...], tuple[BestPair, ...]]:
    if document is None:
        return (), (), ()
    return (_all(document["rows"], Row), _all(document["clocks"], ClockAgreement), _all(document["best"], BestPair))


def _all(documents: Iterable[Any], kind: type[T]) -> tuple[T, ...]:
    return tuple(from_document(one, kind) for one in documents)


def _rates(folder: Folder, name: str) -> list[Mapping[str, float]]:
    return [(folder.read(f"operators/{name}/{phase}.json") or {}).get("rates", {}) for phase in ("peers", "final")]


def _roofs(operators: list[ReportOperator], sessions: Iterable[Mapping[str, float]]) -> dict[str, float] | None:
    """The device's roofs as sessions and the verdicts' notes hold them, the highest of each."""
    found: dict[str, float] = {}
    for rates in sessions:
        found |= {name: max(found.get(name, 0.0), float(value)) for name, value in rates.items()}
    for operator in operators:
        for kernel in operator.kernels:
            roofs = ((kernel.verdict or {}).get("environment", {}).get("clocks", {}) or {}).get("roofs") or {}
            for name, value in roofs.items():
                if isinstance(value, int | float):
                    found[name] = max(found.get(name, 0.0), float(value))
    return found or None

