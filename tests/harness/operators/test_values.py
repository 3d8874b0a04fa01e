"""Contents are quantised in a way that is cheap and gives the very bits of the plain one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.operators import values
from harness.operators.decode_attention import implementation

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
FIXED = (0.0, -0.0, torch.nan, torch.inf, -torch.inf, 65504.0, 65519.0, -65520.0, 3.4028234e38, -3.4028234e38, 1e-40)


def bits(array: torch.Tensor) -> bytes:
    return array.contiguous().as_strided((array.numel(),), (1,)).view(torch.uint8).numpy().tobytes()


def plainly(array: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    limit = torch.finfo(dtype).max
    made = array.to(dtype, copy=True)
    held = torch.where(torch.isfinite(array), array.clamp(-limit, limit), array).to(dtype)
    return held if bool(torch.isinf(made).any()) else made


@pytest.mark.parametrize("dtype", DTYPES)
@given(entries=st.lists(st.one_of(st.sampled_from(FIXED), st.floats(width=32)), min_size=1, max_size=40),
       piece=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_quantised_values_have_the_bits_of_the_plain_way(dtype: torch.dtype, entries: list[float], piece: int) -> None:
    array = torch.tensor(entries, dtype=torch.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "PIECE", piece)
        for given_array in (array, array[::2], array.expand(3, -1)):
            made = values.quantise(given_array, dtype)
            assert bits(made) == bits(plainly(given_array, dtype))
            assert made.data_ptr() != given_array.data_ptr()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_single_infinity_far_behind_is_held_at_the_largest_value(dtype: torch.dtype) -> None:
    array = torch.zeros(2 * values.PIECE + 3)
    array[-1], array[0] = 3.4e38, torch.nan
    assert bits(values.quantise(array, dtype)) == bits(plainly(array, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@given(lengths=st.lists(st.integers(0, 17), min_size=1, max_size=5), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_caches_are_the_same_bits_with_and_without_a_loop(dtype: torch.dtype, lengths: list[int], seed: int) -> None:
    drawn = torch.randn(len(lengths), 17, 2, 16, generator=torch.Generator().manual_seed(seed)) * 1e37
    made = implementation._cache(drawn.clone(), torch.tensor(lengths), dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(implementation, "ONE_BY_ONE", 0)
        assert bits(implementation._cache(drawn.clone(), torch.tensor(lengths), dtype)) == bits(made)
    for item, length in enumerate(lengths):
        assert bool(made[item, length:].isnan().all()) and bool(made[item, :length].isfinite().all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 63, 64, 65, 79, 80, 81, 95, 96, 97, 1000])
def test_values_drawn_in_pieces_are_those_of_one_draw(dtype: torch.dtype, size: int,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (torch.Generator().manual_seed(size) for _ in range(2))
    monkeypatch.setattr(values, "PIECE", 32)
    drawn = values.quantise(values.normal((size,), two), dtype)
    assert bits(values.quantised_normal((size,), dtype, one)) == bits(drawn)
    assert torch.equal(one.get_state(), two.get_state())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("regimes", [("normal",), ("ragged",), ("empty", "single"), ("normal", "ragged", "peaked"),
                                     tuple(f"length {part} of 5" for part in range(1, 6))])
@given(batch=st.integers(1, 6), max_seq=st.sampled_from([1, 7, 33]), seed=st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_caches_drawn_as_they_are_kept_have_the_same_bits(dtype: torch.dtype, regimes: tuple[str, ...], batch: int,
                                                          max_seq: int, seed: int) -> None:
    dims = {"batch": batch, "q_heads": 4, "kv_heads": 2, "dim": 32, "max_seq": max_seq}
    one, two = (torch.Generator().manual_seed(seed) for _ in range(2))
    made = implementation.make_inputs(dims, regimes, dtype, one, {"scale": 0.2})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(implementation, "WHOLE", 1 << 60)  # never
        plain = implementation.make_inputs(dims, regimes, dtype, two, {"scale": 0.2})
    assert list(made) == list(plain) and torch.equal(one.get_state(), two.get_state())
    assert all(bits(made[name]) == bits(plain[name]) for name in made)
