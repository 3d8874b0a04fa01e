"""The compile process: IR texts in, binaries, registers, spills and shared bytes out. No candidate, no GPU, no torch.

Started as ``python -I`` with this file's path and the project's root, in an empty folder with an empty environment; it
builds walls around itself, reads one JSON document from standard input and writes one to standard output, then it is
gone. Of the project it loads its walls and the lint by their paths, no package's own code.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

_USED = re.compile(r"Used (\d+) registers")
_EXTERN = re.compile(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?(\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def main() -> None:
    """Compile every kernel of the request on standard input."""
    began = time.monotonic()
    for package in ("harness", "harness.evaluation", "harness.evaluation.sandbox", "harness.backends",
                    "harness.backends.triton", "harness.backends.triton.compiler"):
        _bare(package, Path(sys.argv[1], *package.split(".")))
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # compilers print; the answer stays clean
    request = json.loads(sys.stdin.buffer.read())
    folder = Path.cwd()
    import triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import get_ptxas
    from triton.runtime import cache

    from harness.backends.triton.compiler import flow, lint, walls

    tempfile.tempdir = str(folder)
    knobs.nvidia.dump_ptxas_log = True
    # The key tells installations apart in a shared cache and hashes all of Triton; these caches live for one request.
    cache.triton_key = lambda: triton.__version__
    standing = walls.build(str(folder), (get_ptxas(request["capability"]).path,), seconds=int(request["seconds"]),
                           memory_bytes=request["memory_bytes"])
    answers = []
    for number, kernel in enumerate(request["kernels"]):
        path = folder / f"kernel{number}.{kernel['kind']}"
        path.write_text(kernel["ir"], "utf-8")
        # One each: what came from a cache leaves no log, and its registers and spills would read as none.
        knobs.cache.dir = str(folder / f"cache{number}")
        answers.append(_kernel(path, kernel, GPUTarget("cuda", request["capability"], 32), lint.look, flow))
    json.dump({"compiler": f"triton {triton.__version__}", "walls": standing, "seconds": time.monotonic() - began,
               "kernels": answers}, answer)
    answer.flush()


def _bare(name: str, folder: Path) -> None:
    """Make package ``name`` a mere place to find modules in."""
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


def _kernel(path: Path, kernel: dict[str, Any], target: Any, look: Callable[..., Any], flow: Any) -> dict[str, Any]:
    """One kernel's figures, or ``refused``, ``infeasible`` or ``error`` with the reason. ``look`` and ``flow`` were
    loaded before the walls stood."""
    from triton.compiler.compiler import compile as triton_compile

    printed = io.StringIO()
    try:
        looked = look(path, kernel["kind"], target)
        if looked.refused:
            return {"refused": looked.refused}
        options = {key: value for key, value in kernel["options"].items() if value is not None}
        with contextlib.redirect_stdout(printed):
            compiled = triton_compile(str(path), target=target, options=options)
    except Exception as error:  # noqa: BLE001 - compilers raise anything; the text is the result
        return _failure(error)
    ptx = compiled.asm["ptx"]
    foreign = _EXTERN.findall(ptx)
    if foreign:
        return {"refused": f"it calls {', '.join(sorted(set(foreign)))}, which is not part of the kernel"}
    meta, log = compiled.metadata, printed.getvalue()
    stack = [tuple(map(int, found)) for found in _STACK.findall(log)] or [(0, 0, 0)]
    specialised = int(meta.num_warps) != int(kernel["options"].get("num_warps") or meta.num_warps)
    return {
        "registers": max(map(int, _USED.findall(log)), default=0),
        "stack_bytes": max(s[0] for s in stack),
        "spill_bytes": sum(s[1] + s[2] for s in stack),
        "shared_bytes": int(meta.shared or 0),
        "num_warps": int(meta.num_warps),
        "num_ctas": int(meta.num_ctas),
        "global_scratch_bytes": int(meta.global_scratch_size or 0),
        "binary": "sha256:" + hashlib.sha256(compiled.asm["cubin"]).hexdigest(),
        "symbol": str(meta.name),
        "triggers": looked.triggers or flow.triggers(ptx),
        "waits": looked.waits and flow.every_program_waits(ptx, specialised=specialised),
        "unwaited": flow.touched_before_waiting(ptx, specialised=specialised),
        "cubin": base64.b64encode(compiled.asm["cubin"]).decode("ascii"),
    }


def _failure(error: Exception) -> dict[str, Any]:
    """The compiler's own words, without the paths and commands it prints around them."""
    text = str(error).strip()
    complaints = [line.strip() for line in text.splitlines() if line.startswith("ptxas ") and "aborted" not in line]
    if any("Insufficient registers" in line for line in complaints):
        return {"infeasible": " ".join(complaints)[:1500]}
    return {"error": f"{type(error).__name__}: {' '.join(complaints) or text}"[:1500]}


if __name__ == "__main__":
    main()
