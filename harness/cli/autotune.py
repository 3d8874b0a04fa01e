"""``python -m harness autotune``: a bulk search over a kernel's declared values, per shape bucket, on a GPU host."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from harness.cli.numbers import COUNT, JOBS, SECONDS, SEED
from harness.cli.progress import Line
from harness.cli.sources import read_kernel
from harness.cli.targets import ensure_writable
from harness.cli.terminal import CLEAR
from harness.domain.codec import to_document
from harness.domain.digest import digest_source
from harness.domain.errors import UsageError
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Backend, Role
from harness.operators import registry

HZ = 2.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--operator", required=True)
    parser.add_argument("--hardware", help="defaults to this host's GPU")
    parser.add_argument("--workload", default="llm")
    parser.add_argument("--kernel", type=Path, metavar="FILE", help="the starting kernel (default: the baseline)")
    parser.add_argument("--shape", action="append", default=[], metavar="LABEL", help="only these measured shapes")
    parser.add_argument("--space", type=COUNT, metavar="N", help="configurations a bucket (default: the whole grid)")
    parser.add_argument("--seconds", type=SECONDS, metavar="S", help="build no further configuration after so long")
    parser.add_argument("--strategy", choices=["halving", "exhaustive"], default="halving")
    parser.add_argument("--seed", type=SEED, default=0, help="which configurations are drawn (default 0)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="the search's journal, begun or continued")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the best kernel goes")
    parser.add_argument("--jobs", type=JOBS, metavar="N", help="build processes at a time (default: the cores)")
    parser.add_argument("--compile-only", action="store_true", help="build and rule out, time nothing; needs no GPU")
    parser.add_argument("--no-verdict", action="store_true", help="leave out the evaluator's verdict on the best")
    parser.add_argument("--json", action="store_true", help="print one document")


def run(arguments: argparse.Namespace) -> int:
    """Search; exit 0 in order, 1 where the evaluator refuses what was found, 2 usage or environment."""
    from harness.backends.triton.launcher.process import open_device
    from harness.backends.triton.targets import find_target
    from harness.evaluation import sandbox
    from harness.search.clock import Clock
    from harness.search.configs import space_of
    from harness.search.farm import Farm, workers
    from harness.search.journal import Journal
    from harness.search.search import Search

    ensure_writable(arguments.out, "--out")
    spec, hardware = registry.get(arguments.operator), _hardware(arguments)
    source = spec.baseline(Backend.TRITON) if arguments.kernel is None else read_kernel(arguments.kernel)
    space = space_of(spec, arguments.workload, source, arguments.shape)
    points, jobs = space.drawn(arguments.space, arguments.seed), arguments.jobs or workers()
    header = {
        "operator": spec.name, "operator_version": spec.version, "workload": arguments.workload, "hardware": hardware,
        "kernel": digest_source(source), "strategy": arguments.strategy, "seed": arguments.seed,
        "space": arguments.space, "axes": {key: list(values) for key, values in space.axes.items()},
        "buckets": {name: [shape.label for shape in shapes] for name, shapes in space.buckets.items()},
        "timed": not arguments.compile_only,
    }
    journal = Journal(header, arguments.resume)
    farm = Farm(space, find_target(hardware), sandbox.opener("triton-plan"), jobs=jobs)
    clock = None if arguments.compile_only else Clock(space, hardware, open_device, seed=secrets.randbits(63))
    progress = _Progress(quiet=arguments.json)
    try:
        result = Search(space, points, farm, journal, clock, strategy=arguments.strategy,
                        seconds=arguments.seconds, tell=progress).run()
    finally:
        if clock is not None:
            clock.close()
        journal.close()
        progress.close()
    if result.source is not None and arguments.out is not None:
        arguments.out.write_text(result.source, "utf-8")
    verdict = None if result.source in (None, source) or arguments.no_verdict else _verdict(
        space, arguments.workload, hardware, result.source)
    document = {**header, "jobs": jobs, "compiler": farm.compiler, "grid": space.size, **_told(result),
                "kernel_source": result.source, "verdict": None if verdict is None else to_document(verdict)}
    if arguments.json:
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        _print(document, verdict)
    return 0 if verdict is None or verdict.passed else 1


def _hardware(arguments: argparse.Namespace) -> str:
    from harness.backends.triton.targets import DEFAULT_TARGET, TARGETS, find_target
    from harness.hardware.gpu import gpu_name, present

    asked: str | None = arguments.hardware
    if arguments.compile_only:
        return find_target(asked or DEFAULT_TARGET).name
    here = asked or gpu_name()
    if here is None or here not in TARGETS or not present(here):
        raise UsageError(f"A search times kernels on {asked or 'a GPU'}, which is not in this machine. Run it on a "
                         "host that has it, or build without timing: --compile-only.")
    return here


def _verdict(space: Any, workload: str, hardware: str, source: str) -> Verdict:
    from harness.evaluation.pipeline import evaluate_fully
    from harness.search.judge import request_for

    line = Line()
    try:
        return evaluate_fully(request_for(space, workload, hardware, source), progress=line).verdict
    finally:
        line.close()


def _told(result: Any) -> dict[str, Any]:
    return {
        "points": result.points, "configurations": result.configurations, "configurations_timed": result.timed,
        "ruled_out": dict(result.problems), "rungs": list(result.rungs), "seconds": result.seconds,
        "device_s": result.device_s, "build_s": result.build_s, "per_minute": round(result.per_minute, 1),
        "best": {bucket: {"params": found.config.params, "ratio": round(found.ratio, 4), "samples": found.samples,
                          "rung": found.rung + 1} for bucket, found in result.best.items()},
    }


def _print(document: dict[str, Any], verdict: Verdict | None) -> None:
    out = sys.stdout.write
    out(f"{document['operator']} on {document['hardware']}: {document['points']} of {document['grid']} points, "
        f"{document['configurations']} configurations, {document['configurations_timed']} timed, in "
        f"{document['seconds']:.0f} s ({document['per_minute']:.0f} a minute, {document['jobs']} build processes, "
        f"device held {document['device_s']:.0f} s)\n")
    for problem, count in document["ruled_out"].items():
        out(f"  ruled out by {problem}: {count}\n")
    for bucket, found in document["best"].items():
        values = ", ".join(f"{key}={value}" for key, value in found["params"].items())
        out(f"  {bucket or 'all shapes'}: {values}: {found['ratio']:.3f}x the starting kernel "
            f"({found['samples']} samples, rung {found['rung']})\n")
    if not document["best"]:
        out("  nothing was timed\n")
    if verdict is not None:
        ratio = verdict.timing.overall.get(str(Role.BASELINE)) if verdict.timing else None
        told = f", {ratio.ratio:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}] the starting kernel" if ratio else ""
        out(f"the evaluator: {verdict.outcome}{told}\n")
        for reason in verdict.reasons:
            out(f"  {reason.text}\n")


class _Progress:
    """One line on a terminal, a line a phase otherwise."""

    def __init__(self, *, quiet: bool) -> None:
        self._terminal, self._quiet = sys.stderr.isatty(), quiet
        self._began, self._last, self._phase = time.monotonic(), 0.0, ""

    def __call__(self, what: str, done: int, of: int, text: str) -> None:
        now = time.monotonic()
        if self._quiet or (what == self._phase and (not self._terminal or now - self._last < 1 / HZ)):
            return
        self._last, self._phase = now, what
        line = f"{now - self._began:6.1f} s  {what} {done}/{of}  {text}"
        if self._terminal:
            sys.stderr.write(CLEAR)
        sys.stderr.write(line[:110] if self._terminal else line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave a clean line."""
        if self._terminal and not self._quiet:
            sys.stderr.write(CLEAR)
