"""Strategies for matmul_bias_gelu on numba.

A body is rendered from two features: how many rows of a share every value of b that is loaded, and how many terms are
added per sweep over a block of columns. GELU's hyperbolic tangent, which no compiler vectorises, is a heavy change: a
function of its own beside the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME, GELU = "_matmul", "_gelu"
ARGUMENTS = ("a", "b", "bias", "out", "block")

TANH = (
    "                s = SUM",
    "                inner = np.float32(0.7978845608) * (s + np.float32(0.044715) * s * s * s)",
    "                SUM = np.float32(0.5) * s * (np.float32(1.0) + math.tanh(inner))",
)
OWN = ("                SUM = _gelu(SUM)",)
FUNCTION = '''\
@numba.njit(fastmath={"contract"})
def _gelu(s):
    x = np.float32(-1.5957691216) * (s + np.float32(0.044715) * s * s * s)
    x = np.float32(-87.0) if x < np.float32(-87.0) else np.float32(88.0) if x > np.float32(88.0) else x
    shifted = x * np.float32(1.44269504) + np.float32(12582912.0)
    power = shifted - np.float32(12582912.0)
    rest = x - power * np.float32(0.693359375) + power * np.float32(2.12194440e-4)
    value = np.float32(1.9875691500e-4)
    value = value * rest + np.float32(1.3981999507e-3)
    value = value * rest + np.float32(8.3334519073e-3)
    value = value * rest + np.float32(4.1665795894e-2)
    value = value * rest + np.float32(1.6666665459e-1)
    value = value * rest + np.float32(5.0000001201e-1)
    value = value * rest * rest + rest + np.float32(1.0)
    scale = np.int32(np.int32(np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    return s / (np.float32(1.0) + value * scale)
'''


@dataclass(frozen=True, slots=True)
class Form:
    """``rows`` of a taken together, ``terms`` added per sweep, and whether GELU is a function of its own."""

    rows: int = 1
    terms: int = 1
    own_gelu: bool = False


def form_of(source: str) -> Form | None:
    """The form of the kernel in ``source``, ``None`` where it is none of them."""
    if edit.argument_names(source, NAME) != ARGUMENTS:
        return None
    body = edit.body_text(source, NAME)
    rows = 4 if "s3[column] +=" in body else 1
    terms = next((count for count in (8, 4) if f"range(0, k - k % {count}" in body), 1)
    return Form(rows, terms, f"{GELU}(" in body)


def body(form: Form) -> str:
    """The kernel's body: columns in blocks; sums are kept where the results go."""
    lines = ["    m, k = a.shape", "    n = b.shape[1]", "    for start in range(0, n, block):",
             "        stop = min(start + block, n)"]
    if form.rows > 1:
        lines += [f"        for row in range(0, m - m % {form.rows}, {form.rows}):", *_rows(form, form.rows)]
        lines += [f"        for row in range(m - m % {form.rows}, m):"]
    else:
        lines += ["        for row in range(m):"]
    return "\n".join([*lines, *_rows(form, 1)]) + "\n"


def _rows(form: Form, rows: int) -> list[str]:
    """The sums and results of ``rows`` rows from ``row`` on."""
    lines = [f"            s{i} = out[{_plus('row', i)}, start:stop]" for i in range(rows)]
    lines += ["            for column in range(stop - start):"]
    lines += [f"                s{i}[column] = bias[start + column]" for i in range(rows)]
    if form.terms > 1:
        lines += [f"            for term in range(0, k - k % {form.terms}, {form.terms}):", *_sweep(rows, form.terms)]
        lines += [f"            for term in range(k - k % {form.terms}, k):"]
    else:
        lines += ["            for term in range(k):"]
    lines += [*_sweep(rows, 1), "            for column in range(stop - start):"]
    for i in range(rows):
        lines += [line.replace("SUM", f"s{i}[column]") for line in (OWN if form.own_gelu else TANH)]
    return lines


def _sweep(rows: int, terms: int) -> list[str]:
    """``terms`` products per column added to the sums of ``rows`` rows."""
    lines = [f"                b{j} = b[{_plus('term', j)}, start:stop]" for j in range(terms)]
    lines += [f"                f{i}{j} = a[{_plus('row', i)}, {_plus('term', j)}]"
              for i in range(rows) for j in range(terms)]
    lines += ["                for column in range(stop - start):"]
    for i in range(rows):
        products = " + ".join(f"f{i}{j} * b{j}[column]" for j in range(terms))
        lines += [f"                    s{i}[column] += {products}"]
    return lines


def _plus(name: str, number: int) -> str:
    return f"{name} + {number}" if number else name


def _changed(**change: int | bool) -> Callable[[AgentContext], str | None]:
    """A transform that gives the kernel another form."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        form = form_of(source)
        if form is None or replace(form, **change) == form:  # type: ignore[arg-type]
            return None
        changed = replace(form, **change)  # type: ignore[arg-type]
        source = edit.replace_body(source, NAME, body(changed))
        return edit.insert_before(source, NAME, FUNCTION) if changed.own_gelu and not form.own_gelu else source
    return transform


def _relaxed(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if form_of(source) is None or common.relaxed(source, NAME):
        return None
    return edit.set_decorator(source, NAME, common.njit(common.RELAXED))


def _threads(context: AgentContext) -> str | None:
    source = context.incumbent.source
    text = edit.body_text(source, NAME)
    if form_of(source) is None or "prange" in text or "for start in range(0, n, block):" not in text:
        return None
    whole = ("    blocks = (n + block - 1) // block\n    for number in numba.prange(blocks):\n"
             "        start = number * block\n")
    changed = edit.replace_body(source, NAME, text.replace("    for start in range(0, n, block):\n", whole))
    return edit.set_decorator(changed, NAME, common.njit(*common.parallel_options(source, NAME)))


def moves(context: AgentContext) -> list[Move]:
    """All strategies, with predictions that rest on the profile's headroom."""
    return [
        Move("four-rows", Direction.LAYOUT, NAME, Tier.MEDIUM,
             "Take four rows of a together: every value of b that is loaded then counts four times, and sums are kept "
             "where the results go.", "four rows share every value of b", 0.5, 0.15, _changed(rows=4),
             basis="bytes"),
        Move("four-terms", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "Add four terms per sweep over the columns: a sum is loaded and stored once for four products.",
             "four terms per sweep", 0.5, 0.18, _changed(terms=4), basis="latency"),
        Move("eight-terms", Direction.PIPELINING, NAME, Tier.MEDIUM,
             "Add eight terms per sweep. Risk: more addresses and factors than there are registers.",
             "eight terms per sweep", 0.2, 0.06, _changed(terms=8), basis="latency"),
        Move("contract", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Let products and sums fuse into one instruction each; NaN and infinity stay exact.",
             "fused multiply-add", 0.3, 0.05, _relaxed, basis="flops"),
        Move("vector-gelu", Direction.ALGORITHM, NAME, Tier.HEAVY,
             "GELU as s / (1 + e^x) with an exponential of polynomial and exponent bits, which vectorises; a call of "
             "tanh per result does not.", "GELU as a function that vectorises", 0.4, 0.15, _changed(own_gelu=True),
             basis="flops"),
        Move("threads", Direction.OCCUPANCY, NAME, Tier.MEDIUM, common.thread_text(context),
             "blocks of columns spread over threads with prange", 1.0, common.thread_gain(context), _threads,
             evidence="hardware.threads"),
        *block_moves(context, NAME, (512, 1024, 128), what="columns per sweep: longer ones amortise the loop, shorter "
                     "ones keep rows of b in the nearest cache", reach=0.2, most=0.1,
                     applies=lambda source: form_of(source) is not None),
    ]
