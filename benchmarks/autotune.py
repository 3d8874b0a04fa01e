"""Configurations a minute, on a GPU: the bulk search against Triton's own autotuner on the same kernel and points.

Run from the repository root on a GPU host: ``python benchmarks/autotune.py --operator decode_attention --shape
"B1 H32/8 D128 S8192" [--space 100] [--out FILE]``. Both get the same points of the same starting kernel, those that
arithmetic rules out left out of both. Triton's autotuner compiles and times natively in this process, outside the judge
and on warm caches: it runs the shipped baseline (or ``--kernel``), which is trusted here, and its times are not ours.
It takes kernels whose grid does not depend on PARAMS. Triton's cache of compiled kernels is empty at the start.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.series import facts
from benchmarks.table import print_machine
from harness.agents.autotune.space import Point
from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.operators.base import ShapePoint
from harness.search.configs import Config, Space, space_of

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""PARAMS keys that are launch options; the others are arguments of the kernel function."""
PACKAGES = ("torch", "triton")


def main() -> int:
    """Both searches, then one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operator", required=True)
    parser.add_argument("--shape", required=True, metavar="LABEL")
    parser.add_argument("--space", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernel", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write one JSON document")
    arguments = parser.parse_args()
    spec = registry.get(arguments.operator)
    source = spec.baseline(Backend.TRITON) if arguments.kernel is None else arguments.kernel.read_text("utf-8")
    space = space_of(spec, "llm", source, [arguments.shape])
    ours = bulk(arguments)
    theirs = native(space, arguments.space, arguments.seed, ours["hardware"])
    document = {**facts(PACKAGES, kind="autotune", operator=spec.name, shape=arguments.shape), "bulk": ours,
                "triton": theirs}
    print(f"\n{spec.name} {arguments.shape}: {ours['points']} points, {theirs['configurations']} after arithmetic")
    print(f"{'':24} {'configurations':>14} {'seconds':>9} {'a minute':>9}  best")
    for name, row in (("bulk search", ours), ("triton.autotune", theirs)):
        print(f"{name:24} {row['configurations']:14d} {row['seconds']:9.1f} {row['per_minute']:9.1f}  {row['best']}")
    print_machine(*PACKAGES)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return 0


def bulk(arguments: argparse.Namespace) -> dict[str, Any]:
    """The search of ``python -m harness autotune``, in a process of its own."""
    command = [sys.executable, "-m", "harness", "autotune", "--operator", arguments.operator, "--shape",
               arguments.shape, "--space", str(arguments.space), "--seed", str(arguments.seed), "--no-verdict",
               "--json"]
    if arguments.kernel is not None:
        command += ["--kernel", str(arguments.kernel)]
    document: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    kept = ("hardware", "points", "configurations", "configurations_timed", "ruled_out", "rungs", "seconds", "device_s",
            "build_s", "jobs", "per_minute", "best")
    return {name: document[name] for name in kept}


def native(space: Space, count: int, seed: int, hardware: str) -> dict[str, Any]:
    """Triton's autotuner over the points that arithmetic leaves."""
    (bucket,) = space.buckets
    points = [point for point in space.drawn(count, seed) if not space.ruled_out(Config(bucket, point), hardware)]
    (shape,) = space.buckets[bucket]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        tuner, call = tuned(space, points, shape, Path(folder))
        began = time.perf_counter()
        call()
        seconds = time.perf_counter() - began
    firsts = [times if isinstance(times, float) else times[0] for times in tuner.configs_timings.values()]
    return {"configurations": len(points), "seconds": round(seconds, 2),
            "per_minute": round(60 * len(points) / seconds, 1), "best": str(tuner.best_config),
            "failed": sum(first == float("inf") for first in firsts)}


def tuned(space: Space, points: list[Point], shape: ShapePoint, folder: Path) -> tuple[Any, Any]:
    """The autotuner around the module's kernel function, and a call of ``run`` that goes through it."""
    import torch
    import triton

    module = load(space.source, folder)
    names = [name for name, value in vars(module).items() if isinstance(value, triton.runtime.JITFunction)]
    if len(names) != 1:
        raise SystemExit(f"The kernel file has {len(names)} kernel functions; Triton's autotuner takes one.")
    tuner = triton.autotune(configs=[config_of(point) for point in points], key=[])(getattr(module, names[0]))
    chosen = {key for point in points for key, _ in point}

    class Through:
        """Launches through the autotuner, without the values that it chooses."""

        def __getitem__(self, grid: Any) -> Any:
            return lambda *values, **given: tuner[grid](
                *values, **{key: value for key, value in given.items() if key not in chosen})

    setattr(module, names[0], Through())
    arguments, attributes = inputs(space, shape)

    def call() -> None:
        module.run(*arguments, **attributes)
        torch.cuda.synchronize()

    return tuner, call


def config_of(point: Point) -> Any:
    """A point as Triton has it; a register limit of 0 is none."""
    import triton

    values = dict(point)
    options = {key: values.pop(key) for key in OPTIONS if key in values}
    if not options.get("maxnreg", 1):
        del options["maxnreg"]
    return triton.Config(values, **options)


def inputs(space: Space, shape: ShapePoint) -> tuple[list[Any], dict[str, float]]:
    """Arguments of one call on the device, as an evaluation makes them."""
    import torch

    from harness.evaluation.judge.inputs import all_attributes
    from harness.evaluation.judge.large import make_large_inputs

    attributes = all_attributes(space.spec, shape.attributes)
    made = make_large_inputs(space.spec, shape.dims, space.workload.regimes_of(shape), attributes, space.dtype, 1,
                             "autotune", shape.label)
    arguments = []
    for argument in space.spec.arguments:
        if argument.kind == "input":
            arguments.append(made[argument.name].cuda())
        else:
            dtype = getattr(torch, argument.dtype or space.dtype)
            arguments.append(torch.empty([shape.dims[dim] for dim in argument.dims], dtype=dtype, device="cuda"))
    return arguments, dict(attributes)


def load(source: str, folder: Path) -> ModuleType:
    """The kernel file as a module."""
    path = folder / "kernel.py"
    path.write_text(source, "utf-8")
    found = importlib.util.spec_from_file_location("tuned_kernel", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
