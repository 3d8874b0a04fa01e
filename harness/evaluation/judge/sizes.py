"""Sizes that no list names, from the secret seed: every draw is taken from all of the operator's domain.

One dimension leads a draw (three draws in four: the domain's first one, otherwise the others in turn). It is drawn from
its whole range, the others from what keeps the work within ``Amounts.elements``, so that long rows come with few of
them and many rows are short. All are log-uniform and stratified: n values of a dimension lie in n equal parts of its
logarithm, one in each. Whatever is wrong from some size on is met for certain where its share of the logarithmic range
is more than 2/n for a leading dimension, and with the odds below where it is smaller or needs two sizes at once.

Leading draws of the first dimension (columns, positions) besides take consecutive residues of 384 from a secret start:
n of them contain every class of every modulus that divides 384 (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
and is at most n. Per round:

- Numba, 132 leading draws of the first dimension and 44 of the others. Columns above 6,000 of 131,072: share 0.26 of
  the range, so at least 33 of the 132. Rows from 600 on of 70,000: share 0.42, at least 17 of 44. Five or more
  query heads per cache head (of 16): share 0.42, at least 3 of the 11 draws that this dimension leads. All three are
  certain. Every class mod 96 and mod 128 is met, one of 192 with odds of 0.69, of another modulus m with
  1 - (1 - 1/m)^132 (m = 100: 0.73). A kernel wrong at one single size escapes nearly always.
- Numba, before a promotion: 384 leading draws; every class of 384 is met.
- A device, 9 and 3 draws: columns above 6,000 at least twice, rows from 11,000 on at least once: certain. Three of the
  four other dimensions of decode attention lead once each, and every draw varies all of them as far as the work
  allows: of 1,000 rounds drawn, 958 met five or more query heads per cache head, 833 more than 128 columns. One class
  of 96 is met with odds of 0.09. Shapes cost a compilation there. Before a promotion: 24 and 8.
- The interpreter: 3 draws (6 before a promotion) of at most 32 rows. Of 1,000 rounds drawn 786 met columns above 6,000,
  369 five or more query heads per cache head; rows from 600 on are never drawn. It is a dry run and promotes nothing.

Contents are the workload's regimes and ``ENDS``; where a draw has several rows, a few of them hold other special
values, by turns (``special_rows``). Such values at the largest sizes are ``specials``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from harness.evaluation.buffers import Layout, dtype_of
from harness.evaluation.judge.amounts import Amounts, amounts_of, promoting
from harness.evaluation.judge.inputs import cases_for
from harness.evaluation.judge.rows import row_dim
from harness.evaluation.judge.session import Session
from harness.evaluation.judge.special_rows import ENDS, kinds_of, room_for, with_special_rows
from harness.evaluation.judge.trials import Trial, draw_for, usual_dtype
from harness.evaluation.run import Run
from harness.operators.base import Dims, OperatorSpec, Span

CLASSES = 384
LEAD = 4
"""Every fourth draw is led by another dimension than the first one."""
NEAR_BYTES = 4 << 20
GAP = 256
"""Most elements between the rows of a strided array of drawn sizes."""
SHARED = 11
"""Every eleventh draw has special values in an argument that all rows share, and ordinary rows, where there is one."""
SINGLE = 6
"""Every sixth problem of one row stays ordinary."""
TOP = 6
"""Where a dimension leads few draws, one of them is in the highest sixth of its range."""


def drawn_sizes(run: Run, session: Session) -> Iterator[Trial]:
    """Drawn sizes in every layout; before a promotion also shapes beside the measured ones."""
    spec, amounts, dtype = run.spec, amounts_of(run), usual_dtype(run)
    draw = draw_for(run, "sizes")
    cases = [case for case in cases_for(spec, run.place) if case.layout == "dense" and all(case.dims.values())]
    count = amounts.promotion_sizes if promoting(run) else amounts.sizes
    drawn = drawn_dims(spec, amounts, count, draw)
    special = kinds_by_size(spec, amounts, drawn, kinds_of(spec, dtype), draw_for(run, "special rows"))
    for turn, dims in enumerate(drawn):
        case = cases[int(torch.randint(len(cases), (), generator=draw))]
        layout, gap = layout_of(spec, turn), gap_of(turn, draw)
        words = f"{layout}, rows {gap} apart" if layout == "strided" else layout
        name = f"probe: drawn sizes {turn + 1} ({sizes_in_words(dims)}, {words})"
        first = turn % (len(run.workload.regimes) + 1)  # rows may be fewer than regimes
        regimes = (*run.workload.regimes, ENDS)[first:] + (*run.workload.regimes, ENDS)[:first]
        if spec.shared_regimes and turn % SHARED == SHARED // 2:
            kind = spec.shared_regimes[turn // SHARED % len(spec.shared_regimes)]
            yield Trial(session.problem(name, dims, kind, case.attributes, dtype, layout, gap))
            continue
        problem = session.problem(name, dims, regimes, case.attributes, dtype, layout, gap)
        if run.seed is not None:
            problem = replace(problem, inputs=with_special_rows(
                spec, dims, problem.inputs, special[turn], problem.attributes, dtype, run.seed, name))
        yield Trial(problem)
    if promoting(run):
        for point in run.workload.shapes[run.request.backend]:
            for dims in near(spec, point.dims, dtype_of(dtype).itemsize):
                name = f"probe: beside {point.label} ({sizes_in_words(dims)})"
                yield Trial(session.problem(name, dims, run.workload.regimes_of(point), point.attributes, dtype))


def kinds_by_size(spec: OperatorSpec, amounts: Amounts, drawn: Sequence[Dims], kinds: Sequence[str],
                  draw: torch.Generator) -> list[list[str]]:
    """Which special kinds each of ``drawn`` sizes gets rows of. They take turns in the order of the first dimension's
    sizes: all kinds meet sizes that lie near each other, and every sixth single row meets none. Single rows have
    turns of their own: a kernel may have other code for one row."""
    first, order = next(iter(spec.domain)), torch.randperm(len(kinds), generator=draw).tolist()
    chosen: list[list[str]] = [[] for _ in drawn]
    row, at, single = row_dim(spec), 0, 0
    for turn in sorted(range(len(drawn)), key=lambda turn: drawn[turn][first]):
        if row is not None and drawn[turn][row] == 1:
            single += 1
            chosen[turn] = [] if single % SINGLE == 0 else [kinds[order[(single - single // SINGLE) % len(kinds)]]]
            continue
        count = min(amounts.special_rows, room_for(spec, drawn[turn]), len(kinds))
        chosen[turn] = [kinds[order[place % len(kinds)]] for place in range(at, at + count)]
        at += count
    return chosen


def drawn_dims(spec: OperatorSpec, amounts: Amounts, count: int, draw: torch.Generator) -> list[dict[str, int]]:
    """``count`` times sizes of all dimensions, in random order."""
    leads = _leads(spec.domain, count, draw)
    depths = {dim: strata(count, draw) for dim in spec.domain}
    chosen = []
    for turn, (lead, size) in enumerate(leads):
        own = {dim: span.low for dim, span in spec.domain.items()} | {lead: size}
        beside = spec.domain[lead].within
        if beside is not None:
            own[beside] = max(own[beside], size)
        if amounts.programs:
            own[lead] = largest_within(spec, amounts, own, lead, size)
        others = [dim for dim in own if dim != lead]
        order = [others[index] for index in torch.randperm(len(others), generator=draw).tolist()]
        for dim in sorted(order, key=lambda dim: spec.domain[dim].within is not None):  # behind what it is within
            low, within = own[dim], spec.domain[dim].within
            high = spec.domain[dim].high if within is None else min(spec.domain[dim].high, own[within])
            own[dim] = log_size(low, max(low, largest_within(spec, amounts, own, dim, high)), depths[dim][turn])
        chosen.append(sizes_of(spec.domain, own))
    return [chosen[index] for index in torch.randperm(count, generator=draw).tolist()]


def sizes_of(domain: Mapping[str, Span], own: Mapping[str, int]) -> dict[str, int]:
    """Sizes from ``own`` ones, which are factors where a dimension is a multiple of another; one that is within another
    is cut to it."""
    sizes: dict[str, int] = {}
    for dim, span in domain.items():
        size = own[dim] * (sizes[span.times] if span.times else 1)
        sizes[dim] = size if span.within is None else min(size, sizes[span.within])
    return sizes


def work(spec: OperatorSpec, dims: Dims) -> int:
    """What a call moves or multiplies, in elements of a row-wise operator's input."""
    return max(spec.bytes_per_call(dims, 1), spec.flops_per_call(dims) // 2) // 2


def programs(spec: OperatorSpec, dims: Dims) -> int:
    """Rows of the outputs: sizes of all their axes but the last."""
    return max(math.prod(dims[dim] for dim in argument.dims[:-1]) for argument in spec.outputs)


def allowed(spec: OperatorSpec, amounts: Amounts, dims: Dims) -> bool:
    """Whether a call of these sizes stays within the amounts."""
    return work(spec, dims) <= amounts.elements and (
        not amounts.programs or programs(spec, dims) <= amounts.programs)


def largest_within(spec: OperatorSpec, amounts: Amounts, own: Mapping[str, int], dim: str, high: int) -> int:
    """The largest size of ``dim`` from ``own[dim]`` to ``high`` that the amounts allow beside the others; at least
    ``own[dim]`` or the lowest."""
    low = spec.domain[dim].low
    while low < high:
        middle = (low + high + 1) // 2
        within = allowed(spec, amounts, sizes_of(spec.domain, {**own, dim: middle}))
        low, high = (middle, high) if within else (low, middle - 1)
    return low


def _leads(domain: Mapping[str, Span], count: int, draw: torch.Generator) -> list[tuple[str, int]]:
    """Per draw the dimension that leads it and its size."""
    first, *others = domain
    turns: dict[str, int] = dict.fromkeys(domain, 0)
    start = int(torch.randint(max(1, len(others)), (), generator=draw))
    for turn in range(count):
        second = others and turn % LEAD == LEAD - 1
        turns[others[(start + turn // LEAD) % len(others)] if second else first] += 1
    chosen = []
    for dim, number in turns.items():
        span = domain[dim]
        sizes = stratified(number, span.low, span.high, draw) if dim == first else [
            log_size(span.low, span.high, depth) for depth in _with_top(strata(number, draw))]
        chosen += [(dim, size) for size in sizes]
    return chosen


def stratified(count: int, low: int, high: int, draw: torch.Generator) -> list[int]:
    """``count`` sizes from ``low`` to ``high``, one in each of as many equal parts of the logarithmic range but for
    half of 384, which brings them into consecutive residue classes of 384 (of the range where that is less)."""
    classes = min(CLASSES, high - low + 1)
    start = int(torch.randint(classes, (), generator=draw))
    sizes = []
    for turn, depth in enumerate(strata(count, draw)):
        residue = low + (start + turn - low) % classes  # the smallest size of the class
        steps = round((log_size(low, high, depth) - residue) / classes)
        sizes.append(residue + classes * max(0, min(steps, (high - residue) // classes)))
    return sizes


def strata(count: int, draw: torch.Generator) -> list[float]:
    """``count`` numbers from 0 to 1 in random order, one in each of ``count`` equal parts."""
    return ((torch.randperm(count, generator=draw) + torch.rand(count, generator=draw)) / max(1, count)).tolist()


def _with_top(depths: list[float]) -> list[float]:
    """``depths``, the highest of them moved into the highest sixth unless there are enough for one to lie there."""
    if not depths or len(depths) >= TOP:
        return depths
    highest = max(range(len(depths)), key=depths.__getitem__)
    return [1 - (1 - depth) / TOP if place == highest else depth for place, depth in enumerate(depths)]


def log_size(low: int, high: int, depth: float) -> int:
    """The size ``depth`` (0 to 1) of the way from ``low`` to ``high`` in the logarithm; every size has its part."""
    return min(high, math.floor(low * ((high + 1) / low) ** depth))


def near(spec: OperatorSpec, measured: Mapping[str, int], item: int) -> list[dict[str, int]]:
    """Shapes beside a measured one: each dimension one less, one more and the next prime; where a call would get large,
    the others are halved, the largest one first. Heads change by groups; a fixed multiple of another dimension changes
    with it alone."""
    domain = spec.domain
    free = [dim for dim, span in domain.items() if span.low < span.high]
    own = {dim: measured[dim] // (measured[span.times] if span.times else 1) for dim, span in domain.items()}
    shapes = []
    for dim in free:
        for size in (own[dim] - 1, own[dim] + 1, next_prime(own[dim] + 1)):
            changed = {**own, dim: max(1, size)}
            others = [other for other in free if other != dim]
            while others and spec.bytes_per_call(sizes_of(domain, changed), item) > NEAR_BYTES:
                widest = max(others, key=lambda other: changed[other])
                if changed[widest] == 1:
                    break
                changed[widest] = -(-changed[widest] // 2)
            shapes.append(sizes_of(domain, changed))
    return shapes


def next_prime(number: int) -> int:
    """The smallest prime above ``number``."""
    found = number + 1
    while any(found % divisor == 0 for divisor in range(2, math.isqrt(found) + 1)):
        found += 1
    return found


def layout_of(spec: OperatorSpec, turn: int) -> Layout:
    """Dense half of the time; rows far apart where an input may have them, or a shifted base, a quarter each. Sizes
    come in random order, so that the turn says nothing about them."""
    if turn % 4 == 0 and any(argument.strided for argument in spec.inputs):
        return "strided"
    return "offset" if turn % 4 == 1 else "dense"


def gap_of(turn: int, draw: torch.Generator) -> int:
    """Elements between strided rows: every other time a multiple of 16, for which a kernel may have other code."""
    if turn % 8 == 0:
        return 16 * int(torch.randint(1, GAP // 16 + 1, (), generator=draw))
    return int(torch.randint(1, GAP + 1, (), generator=draw))


def sizes_in_words(dims: Mapping[str, int]) -> str:
    return " ".join(f"{dim} {size}" for dim, size in dims.items())
