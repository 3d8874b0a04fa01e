"""SwiGLU in torch: inputs, float64 reference, honest implementation and relations. Formula: Shazeer 2020."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import silu

from harness.operators.base import Dims
from harness.operators.exact import odd_integers, tie_distance
from harness.operators.gains import alone
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.symmetries import every, row_symmetries
from harness.operators.values import LARGEST, TINY, mixed_rows, normal, quantise, signs, uniform

UNDERFLOW, FAINT = -86.0, 2.0**-104
"""Below this gate float32 exponentials overflow or sigmoids are denormal, and may be taken for infinity or 0. FAINT is
so small a share of gate * up that a sigmoid there (5e-38) is less than any bound relative to it."""
CLEAR = 2.0**-18
"""Nearer to a tie than this, an honest float32 sigmoid could round either way."""
REACH = 6.0
SURE = 32.0
"""From this gate on a float32 sigmoid is 1."""
FLAT = 2.0**-40
"""Gates of this size have a sigmoid of 1/2 in float32."""
REACHED = 6e4
"""Results in float16 stay below this."""
TRIED = 16
PROBE_ROWS = 8
ROUNDINGS = 40.0
"""Of a float32 result, left for exponential, sum, quotient and two products where gates reach 6."""


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """gate and up [rows, cols], each of the regimes.

    Where a regime is alone: ``tails`` has gates from -120 to 120, ``large_ups`` gates that are negative or small beside
    ups near the end of the range, ``huge`` tiny ups, and ``largest`` ups below 1, so that no result overflows."""
    shape = (dims["rows"], dims["cols"])
    only = alone(regimes)
    if only == "tails":
        gate, up = uniform(shape, generator, -120.0, 120.0), normal(shape, generator)
    elif only == "large_ups":
        gate = uniform(shape, generator, -60.0, 1.0)
        up = signs(shape, generator) * uniform(shape, generator, 0.5, 1.0) * LARGEST[dtype]
    else:
        gate, up = (mixed_rows(regimes, *shape, dtype, generator) for _ in range(2))
        if only == "huge":
            up = normal(shape, generator) * TINY[dtype]
        elif only == "largest":
            up = signs(shape, generator) * uniform(shape, generator, 0.5, 1.0)
    if dtype is torch.float16:  # whose range the product of usual values leaves
        most = REACHED / gate.abs().clamp_min(1.0)
        up = torch.where(torch.isfinite(up) & (up.abs() > most), up.sign() * most, up)
    return {"gate": quantise(gate, dtype), "up": quantise(up, dtype)}


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """gate * sigmoid(gate) * up in float64."""
    gate, up = inputs["gate"].double(), inputs["up"].double()
    return {"out": gate * torch.sigmoid(gate) * up}


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """The result's own size, where gate * sigmoid(gate) counts as a normal number at least, for it may be rounded, and
    where a sigmoid is denormal as a faint share of |gate|. One rounding of the exponential's argument is
    |gate| (1 - sigmoid) roundings of the sigmoid; the judge counts four per unit."""
    gate, up = inputs["gate"].double(), inputs["up"].double()
    sigmoid = torch.sigmoid(gate)
    gated = gate.abs() * torch.where(gate < UNDERFLOW, sigmoid + FAINT, sigmoid)
    gated = torch.where(gate == 0.0, 0.0, gated.clamp_min(torch.finfo(inputs["gate"].dtype).tiny))
    return {"out": (gated * up.abs(), (gate.abs() * (1.0 - sigmoid)).nan_to_num(0.0, 0.0))}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 throughout, rounded once to the inputs' dtype."""
    gate, up = inputs["gate"].float(), inputs["up"].float()
    return {"out": (gate * torch.sigmoid(gate) * up).to(inputs["gate"].dtype)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's eager operators."""
    return {"torch eager": lambda: {"out": silu(inputs["gate"]) * inputs["up"]}}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """The result is linear in up, powers of two change exponents only, and elements do not know each other."""
    gate, up = inputs["gate"], inputs["up"]
    half = gate.dtype is torch.float16  # a scaled result may leave the normal range there
    power = int(torch.randint(1, 4, (), generator=generator)) * (1 if torch.rand((), generator=generator) < 0.5 else -1)
    return [
        Relation(f"up times 2^{power} changes the exponent alone", {"gate": gate, "up": up * 2.0**power}, {},
                 every(lambda values: values * 2.0**power), exact=not half),
        Relation("minus up gives minus the result", {"gate": gate, "up": -up}, {}, every(torch.neg), exact=True),
        Relation("as columns instead of rows", {"gate": gate.T.contiguous(), "up": up.T.contiguous()}, {},
                 every(torch.t), exact=False),
        *row_symmetries(inputs, attributes, generator),
    ]


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """Gates whose sigmoid is 1, 1/2 or 0 in float32 leave one product, of odd integers of 16 bits for half precision.
    Between them ups are powers of two, and in half precision gates are drawn whose result lies beside a rounding tie,
    so that a sigmoid off by 2^-16 shows."""
    shape = (PROBE_ROWS, dims["cols"])
    bits = 12 if dtype is torch.float32 else 8
    one, other = (odd_integers(shape, dtype, generator, bits) / 2.0 ** (bits - 1) for _ in range(2))
    up = other * signs(shape, generator)
    sign = signs(shape, generator).double()
    # In float16 gates with a sigmoid of 1/2 are subnormal: even ones, whose half is one as well, and ups are large.
    half = dtype is torch.float16
    flat = sign * torch.randint(1, 8, shape, generator=generator) * 2.0**-23 if half else sign * one * FLAT
    wide = up * 2.0**14 if half else up
    probes = [
        ("a sigmoid of 1", one * SURE, up, one * SURE * up),
        ("a sigmoid of 1/2", flat, wide, flat / 2 * wide),
        ("a sigmoid of 0", -one * 256.0, up, torch.zeros(shape)),
    ]
    found = [_probe(name, gate, up, right, dtype, 8.0) for name, gate, up, right in probes]
    gate = _beside_ties(shape, dtype, generator)
    scale = 2.0 ** torch.randint(-3, 4, shape, generator=generator).double() * signs(shape, generator)
    right = reference({"gate": gate, "up": scale}, {})["out"]
    return [*found, _probe("results beside rounding ties", gate.double(), scale, right, dtype, ROUNDINGS)]


def _probe(
    name: str, gate: torch.Tensor, up: torch.Tensor, right: torch.Tensor, dtype: torch.dtype, roundings: float
) -> ExactProbe:
    return ExactProbe(name, {"gate": gate.to(dtype), "up": up.to(dtype)}, {}, {"out": right.to(dtype)}, roundings)


def _beside_ties(shape: tuple[int, int], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Of several gates for every element the one whose result is nearest to a rounding tie, but clear of it."""
    gates = uniform((TRIED, *shape), generator, -REACH, REACH).to(dtype)
    gates = torch.where(gates.abs() < 0.25, torch.ones((), dtype=dtype), gates)  # results stay normal in float16
    if dtype is torch.float32:
        return gates[0]
    distance = tie_distance(silu(gates.double()).abs(), dtype)
    distance[distance < CLEAR] = 1.0
    return gates.gather(0, distance.argmin(0, keepdim=True))[0]
