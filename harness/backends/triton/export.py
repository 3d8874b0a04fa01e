"""Request files for a GPU host: what a dry run leaves behind, to be evaluated where the device is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from harness.backends.triton.targets import find_target
from harness.domain.codec import check_schema, to_document
from harness.domain.plan import LaunchPlan
from harness.domain.request import EvaluationRequest


def request_files(
    request: EvaluationRequest, plans: Sequence[LaunchPlan] = (), *, target: str | None = None
) -> dict[str, str]:
    """``<kernel>.request.json`` and ``<kernel>.plan-<n>.json``: each document's text by its file's name.

    The request names the target as its hardware, so ``python -m harness evaluate --request`` on a host that has
    it measures the kernel; the plans show a reader what was recorded here. ``target`` defaults to the goal's.

    Raises:
        UsageError: the target is not a known GPU.
        DocumentError: a document does not follow its schema.
    """
    hardware = find_target(target or request.goal.hardware).name
    goal = dataclasses.replace(request.goal, hardware=hardware)
    addressed = dataclasses.replace(request, hardware=hardware, goal=goal)
    name = request.candidate.digest.removeprefix("sha256:")[:16]
    documents = {f"{name}.request.json": ("request", to_document(addressed))}
    for number, plan in enumerate(plans):
        documents[f"{name}.plan-{number}.json"] = ("plan", to_document(plan))
    for kind, document in documents.values():
        check_schema(document, kind)
    # A signature's order is its meaning: keys stay as they are.
    return {file: json.dumps(document, indent=1) + "\n" for file, (_, document) in documents.items()}


def export_request(
    request: EvaluationRequest, plans: Sequence[LaunchPlan], folder: Path, *, target: str | None = None
) -> list[Path]:
    """Write ``request_files`` into ``folder`` and return their paths.

    Raises:
        UsageError: the target is not a known GPU.
        DocumentError: a document does not follow its schema.
    """
    texts = request_files(request, plans, target=target)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for file, text in texts.items():
        path = folder / file
        path.write_text(text, "utf-8")
        written.append(path)
    return written
