"""What IR may hold. Looks at the parsed module, so that no spelling of the text can hide anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Operations a plan may hold, by dialect: everything else, known or not, is refused.
_DIALECTS = {
    "ttir": {"tt", "arith", "math", "scf", "cf", "ub", "ttng", "builtin"},
    "ttgir": {"tt", "arith", "math", "scf", "cf", "ub", "ttng", "ttg", "nvws", "builtin"},
}
_BARRIERS = {"ttg.barrier", "ttg.local_barrier", "gpu.barrier"}
"""What ``tl.debug_barrier`` is, by the compiler's version: the threads of a program wait for one another."""
_FORBIDDEN = {
    "tt.elementwise_inline_asm": "inline assembly",
    "tt.int_to_ptr": "a pointer made from an integer",
    "tt.print": "printing from the device",
    "tt.assert": "a device assertion",
}


def finding(path: Path, kind: str, target: Any) -> str | None:
    """Why the IR in ``path`` (``ttir`` or ``ttgir``) is refused, else ``None``. Raises what parsing raises."""
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
        if name.partition(".")[0] not in _DIALECTS[kind] and name not in _BARRIERS:
            return f"it contains the operation {name}, which plans may not hold"
    libraries = sorted(path for path in externs if path)
    return f"it links the library {libraries[0]}" if libraries else None
