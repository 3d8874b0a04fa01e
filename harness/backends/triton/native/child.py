"""The native process: ``python -I -B child.py <project root>``, in an empty folder, on a host with the GPU.

It prepares what needs other programs (Triton builds its loader and, in 3.6, one launcher per signature with the C
compiler), then builds its walls, starts CUDA behind them and only then imports the candidate. It reads one JSON
document from standard input and writes one to standard output. Of the project it loads single modules by their paths.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

PACKAGES = ("harness", "harness.domain", "harness.evaluation", "harness.evaluation.sandbox", "harness.backends",
            "harness.backends.triton", "harness.backends.triton.compiler", "harness.backends.triton.recorder",
            "harness.backends.triton.native")


def main() -> None:
    """Answer the request on standard input."""
    for name in PACKAGES:
        package = ModuleType(name)  # a mere place to find modules in
        package.__path__ = [str(Path(sys.argv[1], *name.split(".")))]
        sys.modules[name] = package
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # candidates print; the answer stays clean
    request = json.loads(sys.stdin.buffer.read())
    json.dump(_answer(request, Path.cwd()), answer)
    answer.flush()
    os._exit(0)  # whatever the candidate left running does not matter


def _answer(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    os.environ.update(HOME=str(folder), TMPDIR=str(folder), TRITON_CACHE_DIR=str(folder / "cache"),
                      CUDA_CACHE_PATH=str(folder / "cuda"), TRITON_DISABLE_LINE_INFO="1")
    tempfile.tempdir = str(folder)
    try:
        import torch
        import triton

        driver, programs, libraries = _prepare(request)
    except Exception as error:  # noqa: BLE001 - whatever is missing, the host lacks it
        return {"host": f"{type(error).__name__}: {error}"[:1500]}
    import harness.backends.triton.candidate
    from harness.backends.triton.native import session, walls

    standing = walls.build(str(folder), programs, seconds=int(request["seconds"]), more=libraries)
    result: dict[str, Any] = {"walls": standing, "compiler": f"triton {triton.__version__}"}
    missing = [name for name in walls.NEEDED if name not in standing]
    if missing:
        return {**result, "host": f"these walls cannot be built: {', '.join(missing)}"}
    try:
        torch.cuda.init()
        torch.zeros(1, device="cuda").add_(1).cpu()
        result["device"] = torch.cuda.get_device_name(0)
    except Exception as error:  # noqa: BLE001 - CUDA's own words are the result
        return {**result, "host": f"CUDA does not start behind the walls: {type(error).__name__}: {error}"[:1500]}
    try:
        return {**result, **session.run_native(request, driver, "cuda", torch.cuda.synchronize)}
    except BaseException as error:  # noqa: BLE001 - whatever the candidate raises is the result
        return {**result, **harness.backends.triton.candidate.failure(error, "run(), called natively,")}


def _prepare(request: Mapping[str, Any]) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Triton's driver with everything built that needs other programs; the programs and folders needed later."""
    import triton
    import triton.experimental.gluon
    import triton.language.extra.libdevice
    import triton.tools.tensor_descriptor
    from triton.backends.nvidia import driver as native
    from triton.backends.nvidia.compiler import get_ptxas
    from triton.runtime import cache

    cache.triton_key = lambda: triton.__version__  # this process has a cache of its own
    driver = native.CudaDriver()
    triton.runtime.driver.set_active(driver)
    for launch in request["launches"]:
        with contextlib.suppress(Exception):  # then the candidate's own launch says what is wrong
            driver.launcher_cls(_source(launch), _metadata(launch))
    return driver, (get_ptxas(request["capability"]).path,), tuple(native.library_dirs())


def _source(launch: Mapping[str, Any]) -> Any:
    """What the native launcher reads of a kernel's source: names and types."""
    signature = {name: _tuples(kind) for name, kind in launch["signature"].items()}
    return SimpleNamespace(constants={}, signature=signature, fn=SimpleNamespace(arg_names=list(signature)))


def _metadata(launch: Mapping[str, Any]) -> Any:
    maps = [{"block_size": body["box"], "swizzle": body["swizzle"], "elem_size": body["element_bytes"],
             "elem_type": body["element_type"], "fp4_padded": body["fp4_padded"]}
            for argument in launch["args"] if (body := argument.get("tensormap"))]
    return SimpleNamespace(
        tensordesc_meta=maps, num_ctas=launch["num_ctas"], cluster_dims=(1, 1, 1), global_scratch_size=0,
        global_scratch_align=1, profile_scratch_size=0, profile_scratch_align=1, launch_cooperative_grid=False,
        launch_pdl=False)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    main()
