"""``python -m harness operators``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.operators.base import OperatorSpec


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Print every registered operator."""
    documents = [describe(spec) for spec in registry.all_operators()]
    if arguments.json:
        sys.stdout.write(json.dumps({"version": 1, "operators": documents}, indent=1) + "\n")
        return 0
    for document in documents:
        sys.stdout.write(f"{document['name']} {document['version']}: {document['title']}\n")
        sys.stdout.write(f"    {document['signature']}\n    {document['formula']}\n")
        for workload in document["workloads"]:
            for backend, shapes in workload["shapes"].items():
                sys.stdout.write(f"    workload {workload['name']} on {backend}: {', '.join(shapes)}\n")
        for backend in document["backends"]:
            keys = ", ".join(f"{t['key']} ({t['tier']})" for t in document["tunables"] if backend in t["backends"])
            sys.stdout.write(f"    tunables on {backend}: {keys or 'none'}\n")
        sys.stdout.write(f"    {document['cases']} nasty cases\n")
    return 0


def describe(spec: OperatorSpec) -> dict[str, Any]:
    """An operator's declaration as a JSON document."""
    return {
        "name": spec.name,
        "version": spec.version,
        "title": spec.title,
        "formula": spec.formula,
        "signature": spec.signature,
        "workloads": [
            {
                "name": workload.name,
                "title": workload.title,
                "shapes": {str(b): [point.label for point in points] for b, points in workload.shapes.items()},
                "dtypes": {str(b): dtype for b, dtype in workload.dtypes.items()},
            }
            for workload in spec.workloads.values()
        ],
        "tunables": [
            {
                "key": t.key,
                "backends": [str(b) for b in t.backends],
                "tier": str(t.tier),
                "range": None if t.choices else [t.low, t.high],
                "choices": list(t.choices),
                "note": t.note,
            }
            for t in spec.tunables
        ],
        "backends": [str(backend) for backend in Backend],
        "cases": len(spec.cases),
    }
