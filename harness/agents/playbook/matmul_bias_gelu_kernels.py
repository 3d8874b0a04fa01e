"""The forms that matmul_bias_gelu takes on Triton, as text: every strategy turns one form into another.

A tile's place is row by row or in bands of tile rows, its loads are masked in every step or only in the last one, GELU
takes an exponential and a quotient or a power of two and a root, and long sums are one program's or split. Beside the
kernel for everything may stand one that takes its tiles by tensor descriptors, for many rows or whatever their number.
What a source has is read from its text.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.agents.playbook import edit

NAME, PARTIAL, FINISH, DESCRIBED = "_matmul", "_partial", "_finish", "_described"
ARGUMENTS = ("a", "b", "bias", "out", "m", "k", "n", "BLOCK_M", "BLOCK_N", "BLOCK_K")
BAND = 8
"""Tile rows of a band."""


@dataclass(frozen=True, slots=True)
class Form:
    """Which of the forms a kernel has. ``banded``: tiles in bands of ``BAND`` tile rows; ``peeled``: whole steps
    without a mask, then the rest; ``two``: GELU by a power of two and the square of a reciprocal root."""

    banded: bool = False
    peeled: bool = False
    two: bool = False


def form_of(source: str) -> Form | None:
    """The form of the kernel in ``source``, ``None`` where it is none of them."""
    if edit.argument_names(source, NAME) != ARGUMENTS:
        return None
    body = edit.body_text(source, NAME)
    return Form("band =" in body, "whole =" in body, "tl.exp2(" in body)


def is_split(source: str) -> bool:
    """Whether long sums are split where there are few tiles."""
    return PARTIAL in edit.functions(source)


def is_described(source: str) -> bool:
    """Whether problems of many rows at least take their tiles by tensor descriptors."""
    return DESCRIBED in edit.functions(source)


def is_described_for_all(source: str) -> bool:
    """Whether whatever has aligned rows takes its tiles by tensor descriptors: the other kernel then has the rest."""
    return is_described(source) and MANY_DESCRIBED not in source


def run_text(*, described: bool, for_all: bool, split: bool) -> str:
    """``run`` of a source that has those kernels beside the one for everything; the first that a shape fits takes it.
    ``for_all``: descriptors whatever the number of rows."""
    middle = RUN_DESCRIBED if described else ""
    if for_all:
        middle = middle.replace(MANY_DESCRIBED, ALL_DESCRIBED)
    return RUN_HEAD + middle + (RUN_SPLIT if split else "") + RUN_TAIL


def body(form: Form) -> str:
    """The body of the kernel function of ``form``."""
    return (BANDED if form.banded else ROW_BY_ROW) + sums(form, "0", "k") + epilogue(form) + STORE


def partial(form: Form) -> str:
    """The kernel that sums a part of the terms, placed and masked as ``form``; two-dimensional grid."""
    return PARTIAL_HEAD + (BANDED if form.banded else ROW_BY_ROW) + PARTIAL_SPAN + sums(form, "begin", "end") + \
        PARTIAL_STORE


def finish(form: Form) -> str:
    """The kernel that adds the parts, the bias and GELU as ``form`` takes it."""
    return FINISH_HEAD + GELU[form.two] + "    tl.store(out + cells, result, mask=inside)\n"


def sums(form: Form, first: str, last: str) -> str:
    """``sums`` over the terms from ``first`` to ``last`` of the tile at ``rows`` and ``columns``."""
    rows, columns = ("(rows % m)", "(columns % n)") if form.peeled else ("rows", "columns")
    start = "" if first == "0" else f"{first} + "
    head = f"""\
    terms = {start}tl.arange(0, BLOCK_K)
    a_tile = a + {rows}.to(tl.int64)[:, None] * k + terms[None, :]
    b_tile = b + terms.to(tl.int64)[:, None] * n + {columns}[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
"""
    if not form.peeled:
        return head + f"""\
    for start in range({first}, {last}, BLOCK_K):
        left = tl.arange(0, BLOCK_K) < {last} - start
        a_values = tl.load(a_tile, mask=(rows < m)[:, None] & left[None, :], other=0.0)
        b_values = tl.load(b_tile, mask=left[:, None] & (columns < n)[None, :], other=0.0)
        sums = tl.dot(a_values, b_values, sums, input_precision="ieee")
        a_tile += BLOCK_K
        b_tile += BLOCK_K * n
"""
    # The rest comes first: behind the loop its operands would need registers beside a full accumulator.
    return head + f"""\
    whole = {last} - ({last} - {first}) % BLOCK_K
    if whole < {last}:
        rest = whole + tl.arange(0, BLOCK_K)
        a_rest = a + {rows}.to(tl.int64)[:, None] * k + rest[None, :]
        b_rest = b + rest.to(tl.int64)[:, None] * n + {columns}[None, :]
        a_values = tl.load(a_rest, mask=(rest < {last})[None, :], other=0.0)
        b_values = tl.load(b_rest, mask=(rest < {last})[:, None], other=0.0)
        sums = tl.dot(a_values, b_values, sums, input_precision="ieee")
    for _ in range({first}, whole, BLOCK_K):
        sums = tl.dot(tl.load(a_tile), tl.load(b_tile), sums, input_precision="ieee")
        a_tile += BLOCK_K
        b_tile += BLOCK_K * n
"""


def epilogue(form: Form) -> str:
    """Bias and GELU of the tile's ``sums``."""
    return "    sums += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]\n" + GELU[form.two]


ROW_BY_ROW = """\
    width = tl.cdiv(n, BLOCK_N)
    rows = tl.program_id(0) // width * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) % width * BLOCK_N + tl.arange(0, BLOCK_N)
"""
BANDED = f"""\
    band = {BAND} * tl.cdiv(n, BLOCK_N)
    first = tl.program_id(0) // band * {BAND}
    tall = tl.minimum(tl.cdiv(m, BLOCK_M) - first, {BAND})
    rows = (first + tl.program_id(0) % band % tall) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) % band // tall * BLOCK_N + tl.arange(0, BLOCK_N)
"""
GELU = {
    False: """\
    inner = 0.7978845608028654 * (sums + 0.044715 * sums * sums * sums)
    result = sums / (1.0 + tl.exp(-2.0 * inner))
""",
    True: """\
    root = tl.rsqrt(1.0 + tl.exp2(sums * (-2.302208198 - 0.1029432407 * sums * sums)))
    result = sums * (root * root)
""",
}
STORE = """\
    cells = out + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(cells, result, mask=(rows < m)[:, None] & (columns < n)[None, :])
"""
PARTIAL_HEAD = """\
@triton.jit
def _partial(
    a,
    b,
    parts,
    m,
    k,
    n,
    span,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
"""
PARTIAL_SPAN = """\
    begin = tl.program_id(1) * span
    end = tl.minimum(begin + span, k)
"""
PARTIAL_STORE = """\
    cells = parts + (tl.program_id(1) * m + rows).to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(cells, sums, mask=(rows < m)[:, None] & (columns < n)[None, :])
"""
FINISH_HEAD = """\
@triton.jit
def _finish(parts, bias, out, n, total, splits, BLOCK: tl.constexpr):
    cells = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = cells < total
    sums = tl.load(bias + cells % n, mask=inside, other=0.0).to(tl.float32)
    plane = tl.cast(total, tl.int64)
    for part in range(0, splits):
        sums += tl.load(parts + part * plane + cells, mask=inside, other=0.0)
"""
KERNEL_DESCRIBED = f"""\
@triton.jit
def _described(a, b, bias, out, m, k, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    height, width = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    band = {BAND} * width
    for place in tl.range(tl.program_id(0), height * width, tl.num_programs(0), flatten=True):
        first = place // band * {BAND}
        tall = tl.minimum(height - first, {BAND})
        row = (first + place % band % tall) * BLOCK_M
        column = place % band // tall * BLOCK_N
        sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, k, BLOCK_K):
            sums = tl.dot(a.load([row, start]), b.load([start, column]), sums, input_precision="ieee")
        left, right = tl.split(tl.permute(tl.reshape(sums, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1)))
        columns = column + tl.arange(0, BLOCK_N // 2)
        left += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
        root = tl.rsqrt(1.0 + tl.exp2(left * (-2.302208198 - 0.1029432407 * left * left)))
        out.store([row, column], (left * (root * root)).to(out.dtype))
        columns += BLOCK_N // 2
        right += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
        root = tl.rsqrt(1.0 + tl.exp2(right * (-2.302208198 - 0.1029432407 * right * right)))
        out.store([row, column + BLOCK_N // 2], (right * (root * root)).to(out.dtype))
"""
MANY_DESCRIBED, ALL_DESCRIBED = "    if m > 1024 and lined == 8", "    if lined == 8"
RUN_DESCRIBED = f"""\
    lined = 16 // a.element_size()  # rows and bases of what a descriptor describes are multiples of 16 bytes
    offsets = a.storage_offset() % lined + b.storage_offset() % lined + out.storage_offset() % lined
{MANY_DESCRIBED} and k % lined == 0 and n % lined == 0 and offsets == 0:
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count
        _described[(min(tiles, programs),)](
            TensorDescriptor.from_tensor(a, [int(block_m), int(block_k)]),
            TensorDescriptor.from_tensor(b, [int(block_k), int(block_n)]),
            bias,
            TensorDescriptor.from_tensor(out, [int(block_m), int(block_n) // 2]),
            m,
            k,
            n,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            num_warps=warps,
            num_stages=stages,
        )
        return
"""
RUN_HEAD = """\
def run(a, b, bias, out):
    (m, k), n = a.shape, b.shape[1]
    bucket = "few" if m <= 64 else "some" if m <= 1024 else "many"
    block_m, block_n, block_k = PARAMS["BLOCK_M"], PARAMS["BLOCK_N"], PARAMS["BLOCK_K"]
    warps, stages = PARAMS["num_warps"], PARAMS["num_stages"]
    if isinstance(block_m, dict):
        block_m = block_m[bucket]
    if isinstance(block_n, dict):
        block_n = block_n[bucket]
    if isinstance(block_k, dict):
        block_k = block_k[bucket]
    if isinstance(warps, dict):
        warps = warps[bucket]
    if isinstance(stages, dict):
        stages = stages[bucket]
    if a.element_size() > 2:  # tiles of twice the bytes would leave shared memory, their products the registers
        block_n, block_k = min(block_n, 128), max(16, block_k // 2)
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
"""
RUN_SPLIT = """\
    most = PARAMS["SPLITS"]
    if isinstance(most, dict):
        most = most[bucket]
    resident = 2 * torch.cuda.get_device_properties(a.device).multi_processor_count
    room = 1 + (m * k + k * n) // (m * n)  # parts take at most about twice the memory of all arguments
    wanted = min(most, room, triton.cdiv(k, 4 * block_k), max(1, resident // tiles))
    if wanted > 1:
        span = triton.cdiv(triton.cdiv(k, wanted), block_k) * block_k
        splits = triton.cdiv(k, span)
        parts = torch.empty((splits, m, n), dtype=torch.float32, device=a.device)
        _partial[(tiles, splits)](
            a,
            b,
            parts,
            m,
            k,
            n,
            span,
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            num_warps=warps,
            num_stages=stages,
        )
        _finish[(triton.cdiv(m * n, 1024),)](parts, bias, out, n, m * n, splits, BLOCK=1024, num_warps=4)
        return
"""
RUN_TAIL = """\
    _matmul[(tiles,)](
        a,
        b,
        bias,
        out,
        m,
        k,
        n,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=warps,
        num_stages=stages,
    )
"""
