"""Sizes that no list names, from the secret seed.

Kernels go wrong for residues more often than for magnitudes ("right except when cols % 96 == 32"), so residues are not
left to chance. The size that leads a draw (three draws in four: the longest one) takes consecutive residues of 384,
from a secret start: n of them contain every class of every modulus that divides 384 (2, 3, 4, 6, 8, 12, 16, 24, 32,
48, 64, 96, 128, 192) and is at most n. What is left to chance:

- Numba, a round: 132 leading draws. Every class mod 96 and mod 128 is met for certain, one of 192 with odds of 0.69,
  one class of another modulus m with 1 - (1 - 1/m)^132 (m = 100: 0.73). A kernel wrong at one single size of 5,000
  escapes with odds of 0.97.
- Numba, before a promotion: 384 leading draws; every class of 384 is met, m = 1000 with odds of 0.32, one single size
  of 5,000 with 0.07.
- A device: 9 leading draws in a round, 24 before a promotion: one class of 96 is met with odds of 0.09 and 0.25.
  Shapes cost a compilation there; the cases' own sizes and the shapes beside the measured ones (promotion) come on top.
- The interpreter: 3 and 6 draws, sizes up to a sixteenth. It is a dry run and promotes nothing.

Two sizes wrong together (rows % 4 == 3 and cols % 32 == 5) are met with 1 - (1 - 1/128)^132 = 0.64 per round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch

from harness.evaluation.buffers import Layout, dtype_of
from harness.evaluation.judge.amounts import amounts_of, promoting
from harness.evaluation.judge.inputs import cases_for
from harness.evaluation.judge.session import Session
from harness.evaluation.judge.trials import Trial, draw_for, usual_dtype
from harness.evaluation.run import Run
from harness.operators.base import OperatorSpec

CLASSES = 384
LEAD = 4
"""Every fourth draw is led by another size than the longest one."""
CALL_BYTES = 256 << 10
NEAR_BYTES = 4 << 20


def drawn_sizes(run: Run, session: Session) -> Iterator[Trial]:
    """Drawn sizes in place of a case's own, in every layout; before a promotion also beside the measured ones."""
    spec, amounts, dtype = run.spec, amounts_of(run), usual_dtype(run)
    if not spec.free_dims:
        return
    draw = draw_for(run, "sizes")
    item = dtype_of(dtype).itemsize
    largest = {dim: max(2, size // amounts.share) for dim, size in spec.free_dims.items()}
    cases = [case for case in cases_for(spec, run.place) if case.layout == "dense" and all(case.dims.values())]
    count = amounts.promotion_sizes if promoting(run) else amounts.sizes
    leads = _leads(largest, count, draw)
    for turn, (lead, size) in enumerate(leads):
        case = cases[int(torch.randint(len(cases), (), generator=draw))]
        dims = _completed(spec, {**case.dims, lead: size}, largest, lead, item, draw)
        layout = _layout(spec, draw)
        name = f"probe: drawn sizes {turn + 1} ({_words(dims, largest)}, {layout})"
        yield Trial(session.problem(name, dims, run.workload.regimes, case.attributes, dtype, layout))
    if promoting(run):
        for point in run.workload.shapes[run.request.backend]:
            for dims in near(spec, point.dims, item):
                name = f"probe: beside {point.label} ({_words(dims, largest)})"
                yield Trial(session.problem(name, dims, run.workload.regimes, point.attributes, dtype))


def _leads(largest: Mapping[str, int], count: int, draw: torch.Generator) -> list[tuple[str, int]]:
    """Per draw the size that leads it and its value, in random order."""
    longest = max(largest, key=lambda dim: largest[dim])
    others = [dim for dim in largest if dim != longest]
    turns: dict[str, int] = dict.fromkeys(largest, 0)
    for turn in range(count):
        second = others and turn % LEAD == LEAD - 1
        turns[others[turn // LEAD % len(others)] if second else longest] += 1
    chosen = [(dim, size) for dim, number in turns.items() for size in stratified(number, largest[dim], draw)]
    return [chosen[index] for index in torch.randperm(len(chosen), generator=draw).tolist()]


def stratified(count: int, largest: int, draw: torch.Generator) -> list[int]:
    """``count`` sizes from 1 to ``largest`` in consecutive residue classes of 384 (of ``largest`` where that is less),
    small sizes as likely as large ones."""
    classes = min(CLASSES, largest)
    start = int(torch.randint(classes, (), generator=draw))
    sizes = []
    for turn in range(count):
        residue = (start + turn) % classes or classes
        more = (largest - residue) // classes
        steps = math.exp(float(torch.rand((), generator=draw)) * math.log(more + 1)) - 1 if more else 0.0
        sizes.append(residue + classes * round(steps))
    return sizes


def _completed(
    spec: OperatorSpec, dims: dict[str, int], largest: Mapping[str, int], lead: str, item: int, draw: torch.Generator
) -> dict[str, int]:
    """Draw the sizes that do not lead, small ones as likely as large ones, as far as a call stays small."""
    dims = {**dims, **{dim: 1 for dim in largest if dim != lead}}
    for dim, most in largest.items():
        if dim == lead:
            continue
        while most > 1 and spec.bytes_per_call({**dims, dim: most}, item) > CALL_BYTES:
            most //= 2
        dims[dim] = round(math.exp(float(torch.rand((), generator=draw)) * math.log(most)))
    return dims


def near(spec: OperatorSpec, measured: Mapping[str, int], item: int) -> list[dict[str, int]]:
    """Shapes beside a measured one: each free size one less, one more and the next prime; where a call would get large,
    the other free sizes are halved, the largest one first."""
    shapes = []
    for dim in spec.free_dims:
        for size in (measured[dim] - 1, measured[dim] + 1, next_prime(measured[dim] + 1)):
            dims = {**measured, dim: max(1, size)}
            others = [other for other in spec.free_dims if other != dim]
            while others and spec.bytes_per_call(dims, item) > NEAR_BYTES:
                widest = max(others, key=lambda other: dims[other])
                if dims[widest] == 1:
                    break
                dims[widest] = -(-dims[widest] // 2)
            shapes.append(dims)
    return shapes


def next_prime(number: int) -> int:
    """The smallest prime above ``number``."""
    found = number + 1
    while any(found % divisor == 0 for divisor in range(2, math.isqrt(found) + 1)):
        found += 1
    return found


def _layout(spec: OperatorSpec, draw: torch.Generator) -> Layout:
    """Dense half of the time; rows far apart where an input may have them, or a shifted base, a quarter each."""
    kind = int(torch.randint(4, (), generator=draw))
    if kind == 0 and any(argument.strided for argument in spec.inputs):
        return "strided"
    return "offset" if kind == 1 else "dense"


def _words(dims: Mapping[str, int], named: Mapping[str, int]) -> str:
    return " ".join(f"{dim} {dims[dim]}" for dim in named)
