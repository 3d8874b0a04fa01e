"""The forms that the ladder gives rope's Triton kernel, as texts; a source is recognised by them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Literal

from harness.agents.playbook import edit

NAME, TURN = "_rope", "_turn"
HINT = ', eviction_policy="evict_first"'

Launch = Literal["two", "blocks", "positions", "staying"]

GATHERED = """\
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, HALF)[None, :]
    mask = (rows < count) & (cols < half)
    angle = rows // heads % seq * half + cols
    c = tl.load(cos + angle, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin + angle, mask=mask, other=0.0).to(tl.float32)
    place = rows * (2 * half) + cols
    left = tl.load(x + place, mask=mask, other=0.0{hint}).to(tl.float32)
    right = tl.load(x + place + half, mask=mask, other=0.0{hint}).to(tl.float32)
    tl.store(out + place, left * c - right * s, mask=mask{hint})
    tl.store(out + place + half, right * c + left * s, mask=mask{hint})
"""
SHARED = """\
    first = tl.program_id(0).to(tl.int64) * BLOCK
    rows = first + tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, HALF)[None, :]
    mask = (rows < count) & (cols < half)
    place = rows * (2 * half) + cols
    left = tl.load(x + place, mask=mask, other=0.0{hint}).to(tl.float32)
    right = tl.load(x + place + half, mask=mask, other=0.0{hint}).to(tl.float32)
    if heads % BLOCK == 0:
        angle = first // heads % seq * half + cols
        c = tl.load(cos + angle, mask=cols < half, other=0.0).to(tl.float32)
        s = tl.load(sin + angle, mask=cols < half, other=0.0).to(tl.float32)
        tl.store(out + place, left * c - right * s, mask=mask{hint})
        tl.store(out + place + half, right * c + left * s, mask=mask{hint})
    else:
        each = rows // heads % seq * half + cols
        own_c = tl.load(cos + each, mask=mask, other=0.0).to(tl.float32)
        own_s = tl.load(sin + each, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + place, left * own_c - right * own_s, mask=mask{hint})
        tl.store(out + place + half, right * own_c + left * own_s, mask=mask{hint})
"""
HALVES = """\
@triton.jit
def _turn(x, out, first, heads, head, half, cos, sin, angle, BLOCK: tl.constexpr, HALF: tl.constexpr):
    rows = head + tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, HALF)[None, :]
    mask = (rows < heads) & (cols < half)
    c = tl.load(cos + angle + cols, mask=cols < half, other=0.0).to(tl.float32)
    s = tl.load(sin + angle + cols, mask=cols < half, other=0.0).to(tl.float32)
    place = first + rows * (2 * half) + cols
    left = tl.load(x + place, mask=mask, other=0.0{hint}).to(tl.float32)
    right = tl.load(x + place + half, mask=mask, other=0.0{hint}).to(tl.float32)
    tl.store(out + place, left * c - right * s, mask=mask{hint})
    tl.store(out + place + half, right * c + left * s, mask=mask{hint})
"""
WHOLE = """\
@triton.jit
def _turn(x, out, first, heads, head, half, cos, sin, angle, BLOCK: tl.constexpr, HALF: tl.constexpr):
    rows = head + tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, 2 * HALF)[None, :]
    inside = cols < 2 * half
    upper = cols >= half
    pair = tl.where(upper, cols - half, cols)
    mask = (rows < heads) & inside
    c = tl.load(cos + angle + pair, mask=inside, other=0.0).to(tl.float32)
    s = tl.load(sin + angle + pair, mask=inside, other=0.0).to(tl.float32)
    place = first + rows * (2 * half)
    mine = tl.load(x + place + cols, mask=mask, other=0.0).to(tl.float32)
    other = tl.load(x + place + tl.where(upper, cols - half, cols + half), mask=mask, other=0.0).to(tl.float32)
    tl.store(out + place + cols, mine * c + other * tl.where(upper, s, -s), mask=mask{hint})
"""
BLOCKS = """\
@triton.jit
def _rope(
    q, k, cos, sin, q_out, k_out, seq, q_heads, kv_heads, half, q_blocks, blocks,
    BLOCK: tl.constexpr, HALF: tl.constexpr,
):
    position = (tl.program_id(0) // blocks).to(tl.int64)
    block = tl.program_id(0) % blocks
    angle = position % seq * half
    if block < q_blocks:
        first = position * q_heads * (2 * half)
        _turn(q, q_out, first, q_heads, block * BLOCK, half, cos, sin, angle, BLOCK, HALF)
    else:
        first = position * kv_heads * (2 * half)
        _turn(k, k_out, first, kv_heads, (block - q_blocks) * BLOCK, half, cos, sin, angle, BLOCK, HALF)
"""
POSITION_BODY = """\
angle = position % seq * half
for head in range(0, q_heads, BLOCK):
    _turn(q, q_out, position * q_heads * (2 * half), q_heads, head, half, cos, sin, angle, BLOCK, HALF)
for head in range(0, kv_heads, BLOCK):
    _turn(k, k_out, position * kv_heads * (2 * half), kv_heads, head, half, cos, sin, angle, BLOCK, HALF)
"""
POSITIONS_HEAD = """\
@triton.jit
def _rope(
    q, k, cos, sin, q_out, k_out, places, seq, q_heads, kv_heads, half, BLOCK: tl.constexpr, HALF: tl.constexpr
):
"""


def _indented(text: str, depth: int) -> str:
    return "".join(f"{' ' * depth}{line}\n" for line in text.splitlines())


POSITIONS = POSITIONS_HEAD + "    position = tl.program_id(0).to(tl.int64)\n" + _indented(POSITION_BODY, 4)
STAYING = (POSITIONS_HEAD + "    for place in range(tl.program_id(0), places, tl.num_programs(0)):\n"
           "        position = place.to(tl.int64)\n" + _indented(POSITION_BODY, 8))
LOOK_UP = """\
def run(q, k, cos, sin, q_out, k_out):
    batch, seq, q_heads, dim = q.shape
    kv_heads, half = k.shape[2], dim // 2
    block, warps = PARAMS["BLOCK"], PARAMS["num_warps"]
    bucket = "decode" if seq <= 16 else "chunk" if seq <= 4096 else "long"
    if isinstance(block, dict):
        block = block[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    width = triton.next_power_of_2(half)
"""
RUNS: dict[Launch, str] = {
    "blocks": LOOK_UP + """\
    q_blocks = triton.cdiv(q_heads, block)
    blocks = q_blocks + triton.cdiv(kv_heads, block)
    _rope[(batch * seq * blocks,)](
        q, k, cos, sin, q_out, k_out, seq, q_heads, kv_heads, half, q_blocks, blocks,
        BLOCK=block, HALF=width, num_warps=warps,
    )
""",
    "positions": LOOK_UP + """\
    places = batch * seq
    _rope[(places,)](
        q, k, cos, sin, q_out, k_out, places, seq, q_heads, kv_heads, half, BLOCK=block, HALF=width, num_warps=warps
    )
""",
    "staying": LOOK_UP + """\
    places = batch * seq
    resident = 8 * torch.cuda.get_device_properties(q.device).multi_processor_count
    _rope[(min(places, resident),)](
        q, k, cos, sin, q_out, k_out, places, seq, q_heads, kv_heads, half, BLOCK=block, HALF=width, num_warps=warps
    )
""",
}
ONE_LAUNCH: dict[Launch, str] = {"blocks": BLOCKS, "positions": POSITIONS, "staying": STAYING}


@dataclass(frozen=True, slots=True)
class Form:
    """``launch``: one for q and one for k, or one for both with a program per block of a position's heads, per position
    or as many as stay resident; ``shared``: of two launches, angles are loaded once where a program's heads share them;
    ``whole``: of one, a head is loaded and stored in one piece; ``hints``: the cache is told that heads are used
    once."""

    launch: Launch = "two"
    shared: bool = False
    whole: bool = False
    hints: bool = False


def kernel(form: Form) -> str:
    """The text that tells the form: the body of the only kernel, or the function that turns heads."""
    text = (SHARED if form.shared else GATHERED) if form.launch == "two" else (WHOLE if form.whole else HALVES)
    return text.format(hint=HINT if form.hints else "")


def form_of(source: str) -> Form | None:
    """The form of a source, ``None`` where it is another one."""
    for launch, one, hints in itertools.product(("two", *ONE_LAUNCH), (False, True), (False, True)):
        two = launch == "two"
        form = Form(launch, shared=one and two, whole=one and not two, hints=hints)  # type: ignore[arg-type]
        wanted = kernel(form).rstrip("\n")
        if two and edit.body_text(source, NAME) == wanted:
            return form
        if not two and (edit.function_text(source, NAME) == ONE_LAUNCH[form.launch].rstrip("\n")
                        and edit.function_text(source, TURN) == wanted):
            return form
    return None


def to(source: str, **change: bool) -> str | None:
    """``source`` in another form of the same launch; ``None`` where it has it already or fits none."""
    form = form_of(source)
    changed = None if form is None else replace(form, **change)  # type: ignore[arg-type]
    if changed is None or changed == form:
        return None
    if changed.launch == "two":
        return edit.replace_body(source, NAME, kernel(changed))
    turn = edit.functions(kernel(changed))[TURN]
    body = "\n".join(kernel(changed).rstrip("\n").split("\n")[turn.body[0].lineno - 1:])
    return edit.replace_body(source, TURN, body)


def relaunch(source: str, launch: Launch) -> str | None:
    """``source`` with one launch for q and k; ``None`` where it has this one already or fits none."""
    form = form_of(source)
    if form is None or form.launch == launch:
        return None
    changed = edit.replace_function(source, NAME, ONE_LAUNCH[launch])
    changed = edit.replace_function(changed, "run", RUNS[launch])
    if form.launch == "two":
        changed = edit.insert_before(changed, NAME, kernel(Form(launch, hints=form.hints)))
    if launch == "staying" and "import torch\n" not in changed:
        changed = changed.replace("import triton\n", "import torch\nimport triton\n", 1)
    return changed
