"""The compile process: IR texts in, binaries, registers, spills and shared bytes out. No candidate, no GPU, no torch.

Started as ``python -I`` with this file's path, an empty environment and limits; it reads one JSON document
from standard input and writes one to standard output, then it is gone. It imports nothing of the project.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Operations a plan may hold, by dialect: everything else, known or not, is refused.
_DIALECTS = {
    "ttir": {"tt", "arith", "math", "scf", "cf", "ub", "ttng", "builtin"},
    "ttgir": {"tt", "arith", "math", "scf", "cf", "ub", "ttng", "ttg", "nvws", "builtin"},
}
_FORBIDDEN = {
    "tt.elementwise_inline_asm": "inline assembly",
    "tt.int_to_ptr": "a pointer made from an integer",
    "tt.print": "printing from the device",
    "tt.assert": "a device assertion",
}
_USED = re.compile(r"Used (\d+) registers")
_EXTERN = re.compile(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?(\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def main() -> None:
    """Compile every kernel of the request on standard input."""
    request = json.loads(sys.stdin.buffer.read())
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # compilers print; the answer stays clean
    _limit(request)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="compile") as folder:
        import triton
        from triton import knobs

        tempfile.tempdir = folder
        knobs.cache.dir = str(Path(folder) / "cache")
        kernels = [_kernel(request, kernel, Path(folder), number) for number, kernel in enumerate(request["kernels"])]
    document = {"compiler": f"triton {triton.__version__}", "seconds": time.monotonic() - began, "kernels": kernels}
    answer.write(json.dumps(document))
    answer.flush()


def _limit(request: dict[str, Any]) -> None:
    seconds = int(request["seconds"])
    for kind, value in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, request["memory_bytes"]),
        (resource.RLIMIT_FSIZE, 256 << 20),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        resource.setrlimit(kind, (value, value))


def _kernel(request: dict[str, Any], kernel: dict[str, Any], folder: Path, number: int) -> dict[str, Any]:
    """One kernel's figures, or ``refused``, ``infeasible`` or ``error`` with the reason."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import compile as triton_compile

    path = folder / f"kernel{number}.{kernel['kind']}"
    path.write_text(kernel["ir"], "utf-8")
    target = GPUTarget("cuda", request["capability"], 32)
    try:
        finding = _lint(path, kernel["kind"], target)
        if finding:
            return {"refused": finding}
        options = {key: value for key, value in kernel["options"].items() if value is not None}
        compiled = triton_compile(str(path), target=target, options=options)
    except Exception as error:  # noqa: BLE001 - compilers raise anything; the text is the result
        return _failure(error)
    foreign = _EXTERN.findall(compiled.asm["ptx"])
    if foreign:
        return {"refused": f"it calls {', '.join(sorted(set(foreign)))}, which is not part of the kernel"}
    meta = compiled.metadata
    used, stack, stores, loads = _ptxas(compiled.asm["ptx"], request["capability"], options, folder)
    return {
        "registers": used,
        "stack_bytes": stack,
        "spill_bytes": stores + loads,
        "shared_bytes": int(meta.shared or 0),
        "num_warps": int(meta.num_warps),
        "num_ctas": int(meta.num_ctas),
        "global_scratch_bytes": int(meta.global_scratch_size or 0),
        "binary": "sha256:" + hashlib.sha256(compiled.asm["cubin"]).hexdigest(),
        "symbol": str(meta.name),
        "cubin": base64.b64encode(compiled.asm["cubin"]).decode("ascii"),
    }


def _failure(error: Exception) -> dict[str, Any]:
    """The compiler's own words, without the paths and commands it prints around them."""
    text = str(error).strip()
    complaints = [line.strip() for line in text.splitlines() if line.startswith("ptxas ") and "aborted" not in line]
    if any("Insufficient registers" in line for line in complaints):
        return {"infeasible": " ".join(complaints)[:1500]}
    return {"error": f"{type(error).__name__}: {' '.join(complaints) or text}"[:1500]}


def _lint(path: Path, kind: str, target: Any) -> str | None:
    """What a plan may not contain, found on the parsed module, so that no spelling of the text can hide it."""
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    context = ir.context()
    ir.load_dialects(context)
    make_backend(target).load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    names: set[str] = set()
    externs: set[str] = set()

    def visit(operation: Any) -> None:
        names.add(operation.get_name())
        if operation.get_name() == "tt.extern_elementwise":
            externs.add(operation.get_str_attr("libpath") or "")

    module.walk(visit)
    for name in sorted(names):
        if name in _FORBIDDEN:
            return f"it contains {_FORBIDDEN[name]} ({name})"
        if name.partition(".")[0] not in _DIALECTS[kind]:
            return f"it contains the operation {name}, which plans may not hold"
    libraries = sorted(path for path in externs if path)
    return f"it links the library {libraries[0]}" if libraries else None


def _ptxas(ptx: str, capability: int, options: dict[str, Any], folder: Path) -> tuple[int, int, int, int]:
    """Registers, stack, spill stores and loads as the bundled ``ptxas -v`` reports them for this PTX."""
    import triton
    from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

    source = folder / "again.ptx"
    source.write_text(ptx, "utf-8")
    flags = ["-lineinfo", "-suppress-debug-info"]
    if not options.get("enable_fp_fusion", True):
        flags.append("--fmad=false")
    if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 7):
        flags.append("--regAllocOptLevel=2")
    command = [
        get_ptxas(capability).path,
        *flags,
        "-v",
        f"--gpu-name={sm_arch_from_capability(capability)}",
        str(source),
        "-o",
        str(folder / "again.o"),
    ]
    log = subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ)).stderr
    stack = [tuple(map(int, found)) for found in _STACK.findall(log)] or [(0, 0, 0)]
    return (
        max(map(int, _USED.findall(log)), default=0),
        max(s[0] for s in stack),
        sum(s[1] for s in stack),
        sum(s[2] for s in stack),
    )


if __name__ == "__main__":
    main()
