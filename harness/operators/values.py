"""Value regimes: what fills an input tensor. A row is the last axis; every regime draws from the generator alone."""

from __future__ import annotations

from collections.abc import Callable

import torch

Shape = tuple[int, ...]
MOST_EDGED = 64
"""Rows with places of their own; tens of thousands would take seconds."""
HUGE = {torch.float32: 1e15, torch.bfloat16: 1e15, torch.float16: 1e4}
TINY = {torch.float32: 1e-12, torch.bfloat16: 1e-12, torch.float16: 1e-3}
# Twice this times log2(e) is still finite as a float32: kernels work in powers of two.
LARGEST = {torch.float32: 1.1e38, torch.bfloat16: 1.1e38, torch.float16: 65504.0}
# Exponents of two. So far below the smallest normal number that no right answer depends on whether they are flushed.
DENORMAL = {torch.float32: (-149, -129), torch.bfloat16: (-133, -129), torch.float16: (-24, -15)}

EXPONENT = {torch.float32: (torch.int32, 0x7FFFFFFF, 0x7F800000), torch.bfloat16: (torch.int16, 0x7FFF, 0x7F80),
            torch.float16: (torch.int16, 0x7FFF, 0x7C00)}
"""Integers of a dtype's size, the bits beside the sign, and these of infinity: all but NaN are smaller."""
PIECE = 1 << 17
"""Elements that are looked at or drawn together; a multiple of sixteen."""
LEAST_DRAWN = 16


def normal(shape: Shape, generator: torch.Generator) -> torch.Tensor:
    """Standard normal values, float32."""
    return torch.randn(shape, generator=generator)


def uniform(shape: Shape, generator: torch.Generator, low: float, high: float) -> torch.Tensor:
    """Uniform values in [low, high), float32."""
    return torch.rand(shape, generator=generator) * (high - low) + low


def signs(shape: Shape, generator: torch.Generator) -> torch.Tensor:
    """Random +1 and -1."""
    return torch.randint(0, 2, shape, generator=generator).float() * 2 - 1


def places(rows: int, cols: int, generator: torch.Generator) -> torch.Tensor:
    """One random column per row, int64 [rows]."""
    return torch.randint(0, cols, (rows,), generator=generator)


def stratified(rows: int, cols: int, generator: torch.Generator) -> torch.Tensor:
    """One column per row that together cover the whole row, first and last included, int64 [rows]."""
    edges = (torch.arange(rows) + torch.rand(rows, generator=generator)) * cols / rows
    chosen = edges.long().clamp(0, cols - 1)
    chosen[0] = 0
    chosen[-1] = cols - 1
    return chosen


def quantise(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round to ``dtype``; finite values beyond its range become the largest finite one."""
    made, limit = values.to(dtype, copy=True), torch.finfo(dtype).max
    if values.is_contiguous() and values.numel():
        for part, given in zip(made.view(-1).split(PIECE), values.view(-1).split(PIECE), strict=True):
            _hold(part, given)
    elif bool(torch.isinf(made).any()):
        made = torch.where(torch.isfinite(values), values.clamp(-limit, limit), values).to(dtype)
    return made


def _hold(made: torch.Tensor, values: torch.Tensor) -> None:
    """Put the largest finite value of its sign where a finite one of ``values`` became infinite; pieces stay in a
    core's cache, and mostly none of their bits are infinity's."""
    kind, magnitude, infinite = EXPONENT[made.dtype]
    bits = made.view(kind) & magnitude
    if int(bits.max()) >= infinite:
        beyond = (bits == infinite) & torch.isfinite(values)
        if bool(beyond.any()):
            limit = torch.finfo(made.dtype).max
            made.copy_(torch.where(beyond, values.clamp(-limit, limit).to(made.dtype), made))


def quantised_normal(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """``quantise(normal(shape, generator), dtype)`` in pieces, without the float32 array in between: the same bits."""
    made = torch.empty(shape, dtype=dtype)
    flat = made.view(-1)
    count = max(0, flat.numel() - LEAST_DRAWN) // PIECE * PIECE  # torch draws sixteen at a time, and the last ones anew
    for part in (*flat[:count].split(PIECE), flat[count:]):
        part.copy_(torch.randn(part.shape, generator=generator))
    return made


def rows_of(regime: str, rows: int, cols: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """A [rows, cols] float32 tensor of the named regime. Raises ``KeyError`` for an unknown name."""
    return REGIMES[regime](rows, cols, dtype, generator)


def mixed_rows(
    regimes: tuple[str, ...], rows: int, cols: int, dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Rows shared out among ``regimes`` in random order, float32 [rows, cols]."""
    if len(regimes) == 1:
        return rows_of(regimes[0], rows, cols, dtype, generator)
    values = torch.empty(rows, cols)
    order = torch.randperm(rows, generator=generator)
    for index, regime in enumerate(regimes):
        mine = order[index :: len(regimes)]
        if len(mine):
            values[mine] = rows_of(regime, len(mine), cols, dtype, generator)
    return values


def denormals(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Denormal numbers of ``dtype`` of all sizes and both signs, float32."""
    low, high = DENORMAL[dtype]
    return signs(shape, generator) * torch.ldexp(
        torch.ones(shape), torch.randint(low, high + 1, shape, generator=generator))


def _with_entry(values: torch.Tensor, entries: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    values[torch.arange(values.shape[0]), columns] = entries
    return values


def _spike(rows: int, cols: int, generator: torch.Generator, columns: torch.Tensor) -> torch.Tensor:
    size = 10 ** uniform((rows,), generator, 3.0, 4.0) * signs((rows,), generator)
    return _with_entry(normal((rows, cols), generator), size, columns)


def _single(rows: int, cols: int, generator: torch.Generator, value: float) -> torch.Tensor:
    values = normal((rows, cols), generator)
    values[places(1, rows, generator), places(1, cols, generator)] = value
    return values


def _masked(rows: int, cols: int, generator: torch.Generator) -> torch.Tensor:
    values = normal((rows, cols), generator)
    hidden = torch.rand(rows, cols, generator=generator) < 0.3
    hidden[torch.arange(rows), places(rows, cols, generator)] = False
    return values.masked_fill_(hidden, -torch.inf)


def _masked_run(rows: int, cols: int, generator: torch.Generator) -> torch.Tensor:
    """A run of -inf over most of each row: at its start, at its end and in its middle by turns, as causal masks and
    padded vocabularies have them. At least one entry stays."""
    values = normal((rows, cols), generator)
    length = (uniform((rows,), generator, 0.6, 0.95) * cols).long().clamp(max=cols - 1)
    turn = torch.arange(rows) % 3
    start = torch.where(turn == 0, 0, torch.where(turn == 1, cols - length, (cols - length) // 2))
    place = torch.arange(cols)
    return values.masked_fill_((place >= start[:, None]) & (place < (start + length)[:, None]), -torch.inf)


def _all_neg_inf(rows: int, cols: int, generator: torch.Generator) -> torch.Tensor:
    values = normal((rows, cols), generator)
    values[torch.randperm(rows, generator=generator)[: max(1, rows // 3)]] = -torch.inf
    return values


def _some_denormal(rows: int, cols: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Normal values, two in three replaced by denormal ones, but for one that keeps a row's size."""
    chosen = torch.rand(rows, cols, generator=generator) < 2 / 3
    chosen[torch.arange(rows), places(rows, cols, generator)] = False
    return torch.where(chosen, denormals((rows, cols), dtype, generator), normal((rows, cols), generator).abs() + 0.5)


def ends_and_edges(size: int, generator: torch.Generator) -> torch.Tensor:
    """Places that a loop over blocks may miss, each once: the first and the last of ``size``, and those on both sides
    of a multiple of a few powers of two, one of them the last multiple (where the tail begins); int64."""
    chosen = [0, size - 1]
    for turn in range(4):
        block = 2 ** int(torch.randint(3, 14, (), generator=generator))
        if block < size:
            last = (size - 1) // block
            multiple = last if turn == 0 else int(torch.randint(1, last + 1, (), generator=generator))
            chosen += [multiple * block - 1, multiple * block]
    return torch.tensor(sorted(set(chosen)))


def _ends(rows: int, cols: int, generator: torch.Generator) -> torch.Tensor:
    """Equal spikes at ends and edges of blocks: none of them can be left out without a large share of any sum, and the
    first of them come first in any order."""
    values = normal((rows, cols), generator)
    for row in range(min(rows, MOST_EDGED)):
        values[row, ends_and_edges(cols, generator)] = float(torch.randint(1000, 2000, (), generator=generator))
    return values


def _far_steps(rows: int, cols: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """One value, a hundred or more, in nearly all of a row; about one in 128 is larger by the smallest step of
    bfloat16, one at least. A mean square less a squared mean has no right digit left. In float32, where more digits
    must be right and a running mean would stick to such a value, half of the row is larger. The value has six bits, so
    that long serial sums of it are exact."""
    value = torch.randint(33, 64, (rows, 1), generator=generator) * 2.0 ** torch.randint(2, 8, (rows, 1),
                                                                                        generator=generator)
    step = 2.0 ** (torch.floor(torch.log2(value)) - 7.0)
    raised = torch.rand(rows, cols, generator=generator) < (1 / 2 if dtype is torch.float32 else 1 / 128)
    raised[torch.arange(rows), places(rows, cols, generator)] = True
    return (value + step * raised) * signs((rows, 1), generator)


def _alternating(rows: int, cols: int, generator: torch.Generator) -> torch.Tensor:
    sign = 1.0 - 2.0 * (torch.arange(cols) % 2)
    return sign * 1e3 * (1 + 0.01 * normal((rows, cols), generator))


REGIMES: dict[str, Callable[[int, int, torch.dtype, torch.Generator], torch.Tensor]] = {
    "normal": lambda r, c, d, g: normal((r, c), g),
    "offset": lambda r, c, d, g: normal((r, c), g) + 100.0,
    "far_offset": lambda r, c, d, g: normal((r, c), g) + 1e4,
    "far_steps": lambda r, c, d, g: _far_steps(r, c, d, g),
    "negative_offset": lambda r, c, d, g: normal((r, c), g) * 4.0 - 1e4,
    "negative": lambda r, c, d, g: -normal((r, c), g).abs() - 0.1,
    "tiny": lambda r, c, d, g: normal((r, c), g) * TINY[d],
    "huge": lambda r, c, d, g: normal((r, c), g) * HUGE[d],
    "small": lambda r, c, d, g: normal((r, c), g) * 1e-3,
    "large": lambda r, c, d, g: normal((r, c), g) * 1e3,
    "largest": lambda r, c, d, g: signs((r, c), g) * uniform((r, c), g, 0.5, 1.0) * LARGEST[d],
    # Squares as large as a float32 sum of all of them can hold.
    "largest_squares": lambda r, c, d, g: signs((r, c), g) * uniform((r, c), g, 0.5, 1.0) * (2e38 / max(1, c)) ** 0.5,
    "denormal": lambda r, c, d, g: _some_denormal(r, c, d, g),
    # Exponentials of all of them are 1: a share of equal values with many bits would make a serial sum drift.
    "all_denormal": lambda r, c, d, g: denormals((r, c), d, g),
    "wide": lambda r, c, d, g: signs((r, c), g) * 10 ** uniform((r, c), g, -4.0, 4.0),
    # A few bits per value, so that sums of squares are exact and a long serial sum has no drift of its own.
    "equal": lambda r, c, d, g: (
        (torch.randint(1, 64, (r, 1), generator=g) / 8.0 * signs((r, 1), g)).expand(r, c).clone()
    ),
    "zeros": lambda r, c, d, g: signs((r, c), g) * 0.0,
    # Beyond 30, so that the equal small terms of a softmax vanish beside the large one instead of drifting.
    "one_hot": lambda r, c, d, g: _with_entry(
        torch.zeros(r, c), 10 ** uniform((r,), g, 1.5, 2.0) * signs((r,), g), places(r, c, g)
    ),
    "spike": lambda r, c, d, g: _spike(r, c, g, places(r, c, g)),
    "stratified_spikes": lambda r, c, d, g: _spike(r, c, g, stratified(r, c, g)),
    "ends": lambda r, c, d, g: _ends(r, c, g),
    "alternating": lambda r, c, d, g: _alternating(r, c, g),
    "sorted": lambda r, c, d, g: (normal((r, c), g) * 4.0).sort(-1).values,
    "nan": lambda r, c, d, g: _single(r, c, g, torch.nan),
    "neg_inf": lambda r, c, d, g: _single(r, c, g, -torch.inf),
    "masked": lambda r, c, d, g: _masked(r, c, g),
    "masked_run": lambda r, c, d, g: _masked_run(r, c, g),
    "all_neg_inf": lambda r, c, d, g: _all_neg_inf(r, c, g),
}
"""Regimes of [rows, cols] inputs by name."""
