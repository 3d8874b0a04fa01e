"""Strategies for swiglu on numba.

Bodies differ in how elements are reached (by two indices as shipped, through views, or as one flat array), in the
exponential (the library's, one call per element, or a polynomial in the loop), in the division (checked for zero as
shipped, or not) and in the number of sweeps; each strategy changes one of these but the one that needs two.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import block_moves
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = "_swiglu"
ARGUMENTS = ("gate", "up", "out", "kept", "block")

POLYNOMIAL = """\
x = min(max(-gates[{at}], np.float32(-87.0)), np.float32(89.0))
power = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
rest = x - power * np.float32(0.693359375) + power * np.float32(2.12194440e-4)
value = {first}
value = value * rest + np.float32(1.6666665459e-1)
value = value * rest + np.float32(5.0000001201e-1)
value = value * rest * rest + rest + np.float32(1.0)
value *= np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
"""
"""exp(-gate): range reduction by ln 2 in two parts, then a polynomial. The argument is clamped to where the exponential
is a normal number or infinity."""
DEGREE_6 = (
    "((np.float32(1.9875691500e-4) * rest + np.float32(1.3981999507e-3)) * rest + np.float32(8.3334519073e-3)) * rest "
    "+ np.float32(4.1665795894e-2)"
)
DEGREE_4 = "np.float32(4.1665795894e-2)"
LIBRARY = "value = np.exp(-gates[{at}])\n"
CHECKED, UNCHECKED = "one / (one + value)", "np.divide(one, one + value)"
TWO_SWEEPS = """\
    rows, cols = gate.shape
    one = np.float32(1.0)
    for row in {rows}(rows):
{own}        for start in range(0, cols, block):
            gates = gate[row, start : start + block]
            ups = up[row, start : start + block]
            outs = out[row, start : start + block]
            for lane in range(gates.size):
{value}                kept[lane] = {sigmoid}
            for lane in range(gates.size):
                outs[lane] = gates[lane] * kept[lane] * ups[lane]
"""
ONE_SWEEP = """\
    rows, cols = gate.shape
    one = np.float32(1.0)
    for row in range(rows):
        gates = gate[row]
        ups = up[row]
        outs = out[row]
        for col in range(cols):
{value}            outs[col] = gates[col] * np.divide(one, one + value) * ups[col]
"""
FLAT = """\
    one = np.float32(1.0)
    for place in range(gates.size):
{value}        outs[place] = gates[place] * np.divide(one, one + value) * ups[place]
"""
FLAT_RUN = """\
def run(gate, up, out):
    _swiglu(gate.reshape(-1), up.reshape(-1), out.reshape(-1))
"""


def _indented(text: str, depth: int) -> str:
    return "".join(f"{' ' * depth}{line}\n" for line in text.splitlines())


def _two_sweeps(value: str, sigmoid: str, *, rows: str = "range", own: str = "") -> str:
    return TWO_SWEEPS.format(rows=rows, own=own, value=_indented(value.format(at="lane", first=DEGREE_6), 16),
                             sigmoid=sigmoid)


def _fits(source: str) -> bool:
    return edit.argument_names(source, NAME) == ARGUMENTS


def _vectorised(source: str) -> bool:
    body = edit.body_text(source, NAME)
    return "power" in body and "np.divide" in body


def _swept_twice(source: str) -> bool:
    return _fits(source) and "kept[" in edit.body_text(source, NAME)


def _body(text: str, applies: Callable[[str], bool]) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        return edit.replace_body(source, NAME, text) if _fits(source) and applies(source) else None
    return transform


def _mode(option: str, applies: Callable[[str], bool]) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        return edit.set_decorator(source, NAME, common.njit(option)) if applies(source) else None
    return transform


def _coarser(context: AgentContext) -> str | None:
    source = context.incumbent.source
    return source.replace(DEGREE_6, DEGREE_4) if DEGREE_6 in source and _vectorised(source) else None


def _threads(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or "prange" in edit.body_text(source, NAME):
        return None
    fast = _vectorised(source)
    body = _two_sweeps(POLYNOMIAL if fast else LIBRARY, UNCHECKED if fast else CHECKED, rows="numba.prange",
                       own="        kept = np.empty(block, np.float32)\n")  # none shared between threads
    options = common.parallel_options(source, NAME)
    return edit.set_decorator(edit.replace_body(source, NAME, body), NAME, common.njit(*options))


def _flat(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not _fits(source) or not _vectorised(source):
        return None
    body = FLAT.format(value=_indented(POLYNOMIAL.format(at="place", first=DEGREE_6), 8))
    changed = edit.replace_function(edit.replace_body(source, NAME, body), "run", FLAT_RUN)
    return changed.replace("def _swiglu(gate, up, out, kept, block):", "def _swiglu(gates, ups, outs):")


def moves(context: AgentContext) -> list[Move]:
    """All strategies in the order in which an expert would think of them."""
    one_sweep = ONE_SWEEP.format(value=_indented(POLYNOMIAL.format(at="col", first=DEGREE_6), 12))
    return [
        Move("unchecked-polynomial", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Compute the exponential by a polynomial in the loop and divide without a check for zero: neither a call "
             "nor a branch is left in it, so that SIMD lanes compute many sigmoids at a time instead of one.",
             "polynomial in the loop, np.divide", 0.9, 6.0,
             _body(_two_sweeps(POLYNOMIAL, UNCHECKED), lambda s: not _vectorised(s)), basis="flops"),
        Move("polynomial", Direction.ALGORITHM, NAME, Tier.MEDIUM,
             "Compute the exponential by a polynomial in the loop instead of a call per element. Risk: the division is "
             "still checked for zero, and a branch per element keeps the loop scalar.",
             "polynomial in the loop", 0.5, 0.6,
             _body(_two_sweeps(POLYNOMIAL, CHECKED), lambda s: "power" not in edit.body_text(s, NAME))),
        Move("views", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Take views of BLOCK elements before the inner loops: contiguous loads without index arithmetic and "
             "without a check for negative indices.",
             "views hoisted out of the inner loops", 0.4, 0.5,
             _body(_two_sweeps(LIBRARY, CHECKED), lambda s: "gates" not in edit.body_text(s, NAME))),
        Move("one-sweep", Direction.FUSION, NAME, Tier.MEDIUM,
             "Multiply in the loop that computes the sigmoid: gate is read once instead of twice, and no sigmoid goes "
             "through memory.",
             "one sweep, no array of sigmoids", 0.3, 0.12,
             _body(one_sweep, lambda s: _vectorised(s) and _swept_twice(s))),
        Move("relaxed", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Let the compiler fuse the polynomial's products and sums (numeric mode without NaN or infinity "
             "assumptions): half as many instructions, and one rounding less each.",
             "numeric mode that contracts products and sums", 0.3, 0.15,
             _mode(common.RELAXED, lambda s: _vectorised(s) and not common.relaxed(s, NAME))),
        Move("full-fastmath", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Also assume that no NaN and no infinity occurs. Risk: elements that hold them, and sigmoids whose "
             "exponential is infinite, must still come out right.",
             "numeric mode fastmath=True", 0.1, 0.03, _mode(common.FULL, lambda s: "reassoc" in
                                                            edit.decorator(s, NAME))),
        Move("coarser-polynomial", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Stop the polynomial at degree 4: three products and sums less for each element. Risk: its error is some "
             "thirty roundings of float32.",
             "polynomial of degree 4", 0.1, 0.06, _coarser, basis="flops"),
        Move("threads", Direction.OCCUPANCY, NAME, Tier.MEDIUM, common.thread_text(context),
             "rows spread over threads with prange", 1.0, common.thread_gain(context), _threads,
             evidence="hardware.threads"),
        Move("flat", Direction.LAYOUT, NAME, Tier.HEAVY,
             "Take both arrays as one flat array: one long loop without a tail and a start for every row.",
             "one loop over all elements", 0.2, 0.06, _flat, basis="latency"),
        *block_moves(context, NAME, (256, 1024, 16, 4096), what="fewer, longer loops whose sigmoids still fit the "
                     "first cache", reach=0.1, most=0.08, applies=_swept_twice),
    ]
