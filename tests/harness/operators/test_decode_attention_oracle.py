"""The oracle of decode attention is cheap and gives the very bits of the plain way, which is written out here."""

from __future__ import annotations

import pytest
import torch

from harness.operators.decode_attention import implementation as cheap
from harness.operators.decode_attention.spec import SPEC
from harness.operators.implementation import Tensors, load_implementation, reference_and_magnitude
from harness.operators.summation import FAINT, U32, serial_loss

CASES = [case for case in (*SPEC.cases, *SPEC.interpret_cases) if SPEC.bytes_per_call(case.dims, 4) < 200_000]


def opened(inputs: Tensors, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    valid = torch.arange(inputs["k_cache"].shape[1])[None, :] < inputs["seq_lens"][:, None]
    k, v = (torch.where(valid[:, :, None, None], inputs[name], 0).to(dtype).transpose(1, 2)
            for name in ("k_cache", "v_cache"))
    return inputs["q"].to(dtype).unflatten(1, (inputs["k_cache"].shape[2], -1)), k, v, valid[:, None, None, :]


def faint(share: torch.Tensor, size: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    rough, total = size.float(), total.clamp_min(torch.finfo(torch.float64).tiny)
    units = share / U32
    part = rough / total.float().clamp_min(torch.finfo(torch.float32).tiny)
    below = units * part.amax(-1) < 1.0
    lost = torch.where(below, units, 0.0) @ size / total
    reach = torch.where(below | (share == 0), 0.0, cheap.MARGIN * FAINT / units)
    places, columns = torch.nonzero(part < reach.float()[:, None], as_tuple=True)
    roundings = units[places] * size[places, columns] / total[columns]
    lost.index_add_(0, columns, torch.where(roundings < FAINT, roundings.clamp_max(1.0), 0.0))
    return lost.nan_to_num(0.0, 0.0, 0.0)


def bits(array: torch.Tensor) -> bytes:
    return array.contiguous().as_strided((array.numel(),), (1,)).view(torch.uint8).numpy().tobytes()


def made(case, dtype: torch.dtype) -> tuple[Tensors, dict[str, float]]:
    attributes = SPEC.attributes_for(case.dims, case.attributes)
    draw = torch.Generator().manual_seed(11)
    return cheap.make_inputs(case.dims, (case.regime,), dtype, draw, attributes), attributes


@pytest.mark.parametrize("alone", [0, cheap.ONE_BY_ONE])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_clean_caches_and_all_that_follows_have_the_bits_of_the_plain_way(
    case, alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, attributes = made(case, torch.bfloat16)
    monkeypatch.setattr(cheap, "ONE_BY_ONE", alone)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        for mine, plain in zip(cheap._opened(inputs, dtype), opened(inputs, dtype), strict=True):
            assert mine.stride() == plain.stride() and bits(mine) == bits(plain)
    q, k, v, valid = opened(inputs, torch.float64)
    shares = cheap._shares(q, k, valid, attributes["scale"])
    totals = shares @ v.abs()
    products = (q.abs() @ k.abs().mT * abs(attributes["scale"])).amax(-1, keepdim=True)
    lost = serial_loss(shares) + cheap._lost_values(shares, v.abs(), valid, totals)
    conditioning = products * max(1.0, q.shape[-1] ** 0.5 / 2) + lost / 4.0
    reference, magnitudes = reference_and_magnitude(load_implementation(SPEC), inputs, attributes)
    assert bits(reference["out"]) == bits((shares @ v).flatten(1, 2))
    assert bits(cheap.reference(inputs, attributes)["out"]) == bits(reference["out"])
    for one, two in zip(magnitudes["out"], (totals.flatten(1, 2), conditioning.flatten(1, 2)), strict=True):
        assert bits(one) == bits(two)


def test_a_part_of_the_heads_is_opened_as_the_whole_is() -> None:
    inputs, _ = made(next(case for case in CASES if case.dims["kv_heads"] > 1), torch.float16)
    inputs |= {name: inputs[name][:, :, 1:2] for name in ("k_cache", "v_cache")}
    inputs["q"] = inputs["q"][:, :2]
    for mine, plain in zip(cheap._opened(inputs, torch.float64), opened(inputs, torch.float64), strict=True):
        assert mine.stride() == plain.stride() and bits(mine) == bits(plain)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("spread", [1.0, 12.0])
def test_faint_products_looked_at_in_pieces_lose_the_same(seed: int, spread: float,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    draw = torch.Generator().manual_seed(seed)
    share = torch.softmax(spread * torch.randn(3000, generator=draw).double(), -1)
    share[2900:] = 0.0
    size = torch.randn(3000, 16, generator=draw).abs().double() * 10 ** torch.randn(3000, 1, generator=draw).double()
    total = share @ size
    plain = faint(share, size, total)
    for together in (7, 512, 5000):
        monkeypatch.setattr(cheap, "TOGETHER", together)
        assert bits(cheap._faint(share, size, size.float(), total)) == bits(plain)
    assert bool((plain > 0).any())
