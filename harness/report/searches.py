"""A bulk search over the baseline's declared values, for the comparison with agents: as ``python -m harness autotune``
does it, kept as the report shows it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from harness.campaign.local import Evaluator
from harness.domain.codec import to_document
from harness.domain.digest import digest_source
from harness.domain.report import BucketBest, ReportKernel, ReportSearch
from harness.domain.vocabulary import Backend, Tier
from harness.operators import registry
from harness.report.settings import Folder, Settings

NAME = "search"
"""What rows and kernels of it are called."""


def run_search(settings: Settings, operator: str, evaluate: Evaluator, folder: Folder,
               told: Callable[[str], None]) -> dict[str, Any]:
    """Search, let the evaluator judge what was found, and store it under ``operators/<operator>``. A search that was
    cut goes on from its journal.

    Raises:
        InfrastructureError: the starting kernel cannot be built or timed here.
    """
    from harness.backends.triton.launcher.process import open_device
    from harness.backends.triton.targets import find_target
    from harness.evaluation import sandbox
    from harness.search.clock import Clock
    from harness.search.configs import space_of
    from harness.search.farm import Farm, workers
    from harness.search.journal import Journal
    from harness.search.search import Search

    spec = registry.get(operator)
    source = spec.baseline(Backend.TRITON)
    space = space_of(spec, settings.workload, source)
    strategy = settings.strategy or "halving"
    header = {"operator": spec.name, "operator_version": spec.version, "workload": settings.workload,
              "hardware": settings.hardware, "kernel": digest_source(source), "strategy": strategy, "seed": 0,
              "space": settings.space,
              "axes": {key: list(values) for key, values in space.axes.items()},
              "buckets": {name: [shape.label for shape in shapes] for name, shapes in space.buckets.items()},
              "timed": True}
    path = folder.path / "operators" / operator / "search.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(header, path)
    farm = Farm(space, find_target(settings.hardware), sandbox.opener("triton-plan"), jobs=workers())
    clock = Clock(space, settings.hardware, open_device, seed=secrets.randbits(63))

    def tell(what: str, done: int, of: int, text: str) -> None:
        if done == of:
            told(f"{operator}, search: {what} {done}/{of} {text}")

    try:
        result = Search(space, space.drawn(settings.space, 0), farm, journal, clock, strategy=strategy,
                        tell=tell).run()
    finally:
        clock.close()
        journal.close()
    document = documented(settings, operator, result, space.size, evaluate)
    folder.write(f"operators/{operator}/{NAME}.json", document)
    return document


def documented(settings: Settings, operator: str, result: Any, grid: int, evaluate: Evaluator) -> dict[str, Any]:
    """What a search found: its figures, and the kernel with the evaluator's verdict where one was found."""
    from harness.search.configs import space_of
    from harness.search.judge import request_for

    spec = registry.get(operator)
    source = spec.baseline(Backend.TRITON)
    kernels, sources, held = [], {}, float(result.device_s)
    found = result.source if result.source not in (None, source) else None
    if found is not None:
        request = request_for(space_of(spec, settings.workload, source), settings.workload, settings.hardware, found)
        verdict, samples = evaluate(request)
        if verdict.passed:
            kernels.append(ReportKernel(NAME, request.candidate.digest, "autotune", 0, Tier.LIGHT, to_document(verdict),
                                        None if samples is None else to_document(samples)))
            sources[request.candidate.digest] = found
    search = ReportSearch(
        strategy=settings.strategy or "halving", grid=grid, points=result.points, configurations=result.configurations,
        timed=result.timed, ruled_out=dict(result.problems), rungs=tuple(result.rungs), seconds=result.seconds,
        device_seconds=held, per_minute=round(result.per_minute, 1),
        best=tuple(BucketBest(bucket, dict(one.config.params), round(one.ratio, 4), one.samples)
                   for bucket, one in result.best.items()),
        kernel=kernels[0].digest if kernels else None)
    return {"search": to_document(search), "kernels": [to_document(kernel) for kernel in kernels], "sources": sources}
