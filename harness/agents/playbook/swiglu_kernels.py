"""The forms that the ladder gives swiglu's Triton kernel, as texts; a source is recognised by them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Literal

from harness.agents.playbook import edit

NAME = "_swiglu"
ROW_ARGUMENTS = ("gate", "up", "out", "cols", "BLOCK")
HINT = ', eviction_policy="evict_first"'

Grid = Literal["rows", "flat", "staying"]
Step = Literal["plain", "paired", "staged"]

VALUE, FAST = "gates / (1.0 + tl.exp(-gates))", "tl.fdiv(gates, 1.0 + tl.exp2(gates * -1.4426950408889634))"
ROWS = """\
    first = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)
    for start in {steps}:
        offsets = start + lanes
        mask = offsets < cols
        gates = tl.load(gate + first + offsets, mask=mask, other=0.0{hint}).to(tl.float32)
        ups = tl.load(up + first + offsets, mask=mask, other=0.0{hint}).to(tl.float32)
        tl.store(out + first + offsets, {value} * ups, mask=mask{hint})
"""
PAIRED = """\
    first = tl.program_id(0).to(tl.int64) * cols
    lanes = tl.arange(0, BLOCK)
    for start in range(0, cols, 2 * BLOCK):
        near = start + lanes
        far = near + BLOCK
        gates = tl.load(gate + first + near, mask=near < cols, other=0.0{hint}).to(tl.float32)
        ups = tl.load(up + first + near, mask=near < cols, other=0.0{hint}).to(tl.float32)
        next_gates = tl.load(gate + first + far, mask=far < cols, other=0.0{hint}).to(tl.float32)
        next_ups = tl.load(up + first + far, mask=far < cols, other=0.0{hint}).to(tl.float32)
        tl.store(out + first + near, {value} * ups, mask=near < cols{hint})
        gates = next_gates
        tl.store(out + first + far, {value} * next_ups, mask=far < cols{hint})
"""
FLAT = """\
    first = tl.program_id(0).to(tl.int64) * BLOCK
    lanes = tl.arange(0, BLOCK)
    mask = first + lanes < count
    gates = tl.load(gate + first + lanes, mask=mask, other=0.0{hint}).to(tl.float32)
    ups = tl.load(up + first + lanes, mask=mask, other=0.0{hint}).to(tl.float32)
    tl.store(out + first + lanes, {value} * ups, mask=mask{hint})
"""
STAYING = """\
    lanes = tl.arange(0, BLOCK)
    for block in range(tl.program_id(0), tl.cdiv(count, BLOCK), tl.num_programs(0)):
        first = block.to(tl.int64) * BLOCK
        mask = first + lanes < count
        gates = tl.load(gate + first + lanes, mask=mask, other=0.0{hint}).to(tl.float32)
        ups = tl.load(up + first + lanes, mask=mask, other=0.0{hint}).to(tl.float32)
        tl.store(out + first + lanes, {value} * ups, mask=mask{hint})
"""
HEADS = {
    "rows": "@triton.jit\ndef _swiglu(gate, up, out, cols, BLOCK: tl.constexpr):\n",
    "flat": "@triton.jit\ndef _swiglu(gate, up, out, count, BLOCK: tl.constexpr):\n",
}
LOOK_UP = """\
def run(gate, up, out):
    rows, cols = gate.shape
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "decode" if rows <= 128 else "chunk" if rows <= 4096 else "prefill"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
"""
FLAT_RUN = LOOK_UP + """\
    count = rows * cols
    _swiglu[(triton.cdiv(count, block),)](gate, up, out, count, BLOCK=block, num_warps=warps)
"""
STAYING_RUN = LOOK_UP + """\
    count = rows * cols
    resident = 8 * torch.cuda.get_device_properties(gate.device).multi_processor_count
    _swiglu[(min(triton.cdiv(count, block), resident),)](gate, up, out, count, BLOCK=block, num_warps=warps)
"""


@dataclass(frozen=True, slots=True)
class Form:
    """``grid``: a program per row that loops, per block of the flat arrays, or as many as stay resident; ``step``: how
    a row's loop goes; ``hints``: the cache is told that everything is used once; ``fast``: exponential of two and
    approximate division."""

    grid: Grid = "rows"
    step: Step = "plain"
    hints: bool = False
    fast: bool = False


def body(form: Form) -> str:
    """The kernel's body."""
    text = {"flat": FLAT, "staying": STAYING, "rows": PAIRED if form.step == "paired" else ROWS}[form.grid]
    steps = "tl.range(0, cols, BLOCK, num_stages=3)" if form.step == "staged" else "range(0, cols, BLOCK)"
    return text.format(hint=HINT if form.hints else "", value=FAST if form.fast else VALUE, steps=steps)


def _forms() -> list[Form]:
    steps: dict[Grid, tuple[Step, ...]] = {"rows": ("plain", "paired", "staged"), "flat": ("plain",),
                                           "staying": ("plain",)}
    return [Form(grid, step, hints, fast) for grid, some in steps.items() for step in some
            for hints, fast in itertools.product((False, True), repeat=2)]


FORMS = {body(form).rstrip("\n"): form for form in _forms()}


def form_of(source: str) -> Form | None:
    """The form of a source's kernel, ``None`` where it is another one."""
    return FORMS.get(edit.body_text(source, NAME))


def to(source: str, **change: object) -> str | None:
    """``source`` with its kernel in another form of the same grid; ``None`` where it has it already or fits none."""
    form = form_of(source)
    changed = None if form is None else replace(form, **change)  # type: ignore[arg-type]
    return None if changed is None or changed == form else edit.replace_body(source, NAME, body(changed))


def regrid(source: str, grid: Grid) -> str | None:
    """``source`` with another grid, kernel and ``run`` alike; ``None`` where it has it already or fits none."""
    form = form_of(source)
    if form is None or form.grid == grid:
        return None
    changed = edit.replace_function(source, NAME, HEADS["flat"] + body(replace(form, grid=grid, step="plain")))
    changed = edit.replace_function(changed, "run", STAYING_RUN if grid == "staying" else FLAT_RUN)
    if grid == "staying" and "import torch\n" not in changed:
        changed = changed.replace("import triton\n", "import torch\nimport triton\n", 1)
    return changed
