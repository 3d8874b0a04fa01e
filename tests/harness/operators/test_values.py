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
