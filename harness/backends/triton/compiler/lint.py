"""What IR may hold. Looks at the parsed module, so that no spelling of the text can hide anything."""

from __future__ import annotations

from dataclasses import dataclass
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
    "tt.int_to_ptr": "a pointer made from an integer",
    "tt.print": "printing from the device",
    "tt.assert": "a device assertion",
}


_ASSEMBLY = "tt.elementwise_inline_asm"
WAIT, TRIGGER = "griddepcontrol.wait; // dummy $0", "griddepcontrol.launch_dependents; // dummy $0"
"""The only assembly that a plan may hold, as Triton's ``gdc_wait`` and ``gdc_launch_dependents`` write it: no operands,
with effects, said to return one number. That is whatever lay in a register: nobody may read it."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a module holds: ``refused`` says what it may not, or is empty. ``triggers``: it lets the next launch begin
    before it ends. ``waits``: every one of its programs waits for the end of the launch before it, whatever it does
    else, because the wait stands in the first block of the kernel function itself."""

    refused: str = ""
    triggers: bool = False
    waits: bool = False


def look(path: Path, kind: str, target: Any) -> Looked:
    """What the IR in ``path`` (``ttir`` or ``ttgir``) holds. Raises what parsing raises."""
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    context = ir.context()
    ir.load_dialects(context)
    make_backend(target).load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    seen = _Seen()
    module.walk(seen.visit)
    module.walk(seen.use)
    entry = module.get_function(module.get_entry_func_name()).get_region(0).id()
    return Looked(_refused(kind, seen), TRIGGER in seen.assembly, seen.first.get(entry, -1) in seen.waiting)


class _Seen:
    """What walks through a module find; blocks, regions and values by their numbers."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.libraries: set[str] = set()
        self.assembly: set[str] = set()
        self.made: set[int] = set()
        """Values that assembly is said to return."""
        self.changed = False
        """Assembly has other operands, constraints or effects than Triton gives it."""
        self.read = False
        self.waiting: set[int] = set()
        """Blocks that hold a wait."""
        self.first: dict[int, int] = {}
        """The first block of every region."""

    def visit(self, operation: Any) -> None:
        """First walk: what an operation holds comes before itself, blocks come in their order."""
        name = operation.get_name()
        self.names.add(name)
        if name == "builtin.module":
            return
        block = operation.get_block()
        self.first.setdefault(block.get_parent().id(), block.id())
        if name == "tt.extern_elementwise":
            self.libraries |= {path for path in [operation.get_str_attr("libpath")] if path}
        elif name == _ASSEMBLY:
            text = operation.get_str_attr("asm_string") or ""
            self.assembly.add(text)
            self.changed |= not _as_triton_writes_it(operation)
            self.made.update(operation.get_result(number).id() for number in range(operation.get_num_results()))
            if text == WAIT:
                self.waiting.add(block.id())

    def use(self, operation: Any) -> None:
        """Second walk."""
        if self.made:
            operands = {operation.get_operand(number).id() for number in range(operation.get_num_operands())}
            self.read |= not operands.isdisjoint(self.made)


def _as_triton_writes_it(operation: Any) -> bool:
    return ((operation.get_num_operands(), operation.get_num_results()) == (0, 1)
            and operation.get_str_attr("constraints") == "=r" and operation.get_bool_attr("pure") is False)


def _refused(kind: str, seen: _Seen) -> str:
    foreign = sorted(seen.assembly - {WAIT, TRIGGER})
    if foreign:
        return f"it contains inline assembly ({_ASSEMBLY}): {foreign[0][:80]}"
    if seen.changed:
        return (f"it contains inline assembly ({_ASSEMBLY}) with operands, constraints or effects of its own; call "
                "gdc_wait and gdc_launch_dependents")
    if seen.read:
        return f"it reads what inline assembly ({_ASSEMBLY}) returns, which nobody wrote"
    for name in sorted(seen.names - {_ASSEMBLY}):
        if name in _FORBIDDEN:
            return f"it contains {_FORBIDDEN[name]} ({name})"
        if name.partition(".")[0] not in _DIALECTS[kind] and name not in _BARRIERS:
            return f"it contains the operation {name}, which plans may not hold"
    return f"it links the library {min(seen.libraries)}" if seen.libraries else ""
