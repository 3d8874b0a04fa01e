"""``python -m harness plan``: what a Triton kernel launches and what it takes, on a machine without a GPU."""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

from harness.backends.triton.targets import DEFAULT_TARGET, Target, find_target
from harness.cli.progress import Line, Quiet
from harness.cli.sources import read_kernel
from harness.domain.codec import to_document
from harness.domain.digest import digest_source
from harness.domain.errors import UsageError
from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Required, SourceRef
from harness.domain.verdict import Reason
from harness.domain.vocabulary import Backend, Outcome, Purpose
from harness.evaluation.ports import CandidateFault
from harness.evaluation.run import Refused, Run
from harness.operators import registry


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path, help="the candidate")
    parser.add_argument("--operator", required=True)
    parser.add_argument("--hardware", default=DEFAULT_TARGET, help=f"GPU to compile for (default {DEFAULT_TARGET})")
    parser.add_argument("--workload", default="llm")
    parser.add_argument("--export", type=Path, metavar="DIR", help="also write request and plans for a GPU host")
    parser.add_argument("--json", action="store_true", help="print plans and resources as one document")


def run(arguments: argparse.Namespace) -> int:
    """Record, compile and print; exit 0 within limits, 1 refused, 2 usage or environment."""
    target = find_target(arguments.hardware)
    state = _run(arguments, target)
    refused = _stages(state)
    state.progress.close()  # type: ignore[attr-defined]
    if arguments.json:
        sys.stdout.write(json.dumps(_document(state, refused), indent=1) + "\n")
    else:
        _print(state, target, refused)
    if arguments.export is not None and refused is None:
        from harness.backends.triton.export import export_request

        for path in export_request(state.request, state.plans, arguments.export, target=target.name):
            sys.stderr.write(f"wrote {path}\n")
    if refused is None:
        return 0
    return 2 if refused.outcome in (Outcome.INFRA_ERROR, Outcome.UNSUPPORTED_HERE) else 1


def _run(arguments: argparse.Namespace, target: Target) -> Run:
    from harness.evaluation import sandbox

    spec = registry.get(arguments.operator)
    workload = spec.workloads.get(arguments.workload)
    if workload is None:
        raise UsageError(f"Operator {spec.name} has no workload '{arguments.workload}'. "
                         f"Known: {', '.join(spec.workloads)}.")
    source = read_kernel(arguments.file)
    goal = Goal(operator=spec.name, backend=Backend.TRITON, hardware=target.name, workload=workload.name)
    request = EvaluationRequest(
        job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.PROBE,
        operator=OperatorRef(spec.name, spec.version), backend=Backend.TRITON, hardware=target.name,
        workload=workload.name, goal=goal, candidate=SourceRef(digest_source(source), source),
        required=Required(isolation=0))
    return Run(request=request, spec=spec, workload=workload, open_workers=sandbox.opener,
               progress=Quiet() if arguments.json else Line(), target=target.name)


def _stages(state: Run) -> Refused | None:
    from harness.backends.triton import stages

    try:
        stages.plan(state)
        stages.resources(state)
    except Refused as refused:
        return refused
    except CandidateFault as failed:
        fault = failed.fault
        return Refused(fault.outcome, Reason(code=fault.code, stage=state.stage, text=fault.text, line=fault.line))
    return None


def _document(state: Run, refused: Refused | None) -> dict[str, Any]:
    return {
        "kernel": state.request.candidate.digest, "operator": state.spec.name, "target": state.target,
        "outcome": "passed" if refused is None else str(refused.outcome),
        "reasons": [to_document(reason) for reason in refused.reasons] if refused else [],
        "plans": [to_document(plan) for plan in state.plans],
        "compiled": [to_document(compiled) for compiled in state.compiled],
        "resources": to_document(state.resources),
    }


def _print(state: Run, target: Target, refused: Refused | None) -> None:
    out = sys.stdout.write
    if refused is not None:
        out(f"{refused.outcome}\n")
        for reason in refused.reasons:
            out(f"  [{reason.code}] {f'line {reason.line}: ' if reason.line else ''}{reason.text}\n")
    if not state.compiled:
        return
    out(f"{'function':24} {'grid':>18} {'warps':>5} {'registers':>9} {'spills':>7} {'shared':>8} {'occupancy':>9}"
        "  limited by\n")
    for plan, compiled in zip(state.plans, state.compiled, strict=True):
        fills = sum("fill" in step for step in plan.steps)
        for row in compiled.launches:
            grid = "x".join(map(str, row.grid))
            spills, shared, share = row.spill_bytes or 0, row.shared_bytes or 0, row.occupancy or 0
            out(f"{row.function[:24]:24} {grid:>18} {row.num_warps:>5} {row.registers or 0:>9} {spills:>7} {shared:>8} "
                f"{share:>9.0%}  {(row.limiter if share < 1.0 else None) or ''}".rstrip() + "\n")
        if fills:
            out(f"  and {fills} fill{'s' if fills > 1 else ''} of scratch or outputs\n")
    out(f"for {target.title} with {state.compiled[0].compiler}; {len(state.plans)} shapes; "
        f"scratch {state.resources.scratch_bytes or 0:,} bytes; not timed\n")
