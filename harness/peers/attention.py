"""Peers of decode attention: PyTorch's scaled-dot-product backends, eager products and torch.compile.

Libraries take whole caches: where all lengths are the cache's length, or a few positions less, they are measured on
full caches; where lengths differ, with a mask. Entries past a length hold zeros, because libraries multiply them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.peers.base import BOTH, EAGER, Absent, Function, Peer, Problem, Tensors
from harness.peers.compiled import called, compiled
from harness.peers.liger import lacking

NEARLY = 8
"""Lengths this close to the whole cache count as the whole cache."""
NAMES, OUT = ("q", "k_cache", "v_cache", "seq_lens"), ("out",)


def clean(inputs: Tensors) -> Tensors:
    """``inputs`` on which libraries can be measured: full lengths where they nearly are, and no NaN past a length."""
    whole = inputs["k_cache"].shape[1]
    lengths = inputs["seq_lens"]
    if bool((lengths >= whole - NEARLY).all()):
        lengths = lengths.new_full(lengths.shape, whole)
    return {**inputs, "k_cache": inputs["k_cache"].nan_to_num(0.0), "v_cache": inputs["v_cache"].nan_to_num(0.0),
            "seq_lens": lengths}


def full(problem: Problem) -> bool:
    """Whether every sequence fills its cache."""
    return bool((problem.inputs["seq_lens"] == problem.dims["max_seq"]).all())


def products(problem: Problem) -> Callable[..., Any]:
    """Scores, softmax in float32 and the weighted sum as separate products over grouped heads."""
    import torch

    scale, masked = problem.attributes["scale"], not full(problem)

    def attention(q: Any, k_cache: Any, v_cache: Any, seq_lens: Any) -> Any:
        grouped = q.unflatten(1, (k_cache.shape[2], -1))
        scores = torch.einsum("bgrd,bsgd->bgrs", grouped, k_cache).float() * scale
        if masked:
            past = torch.arange(k_cache.shape[1], device=q.device)[None, :] >= seq_lens[:, None]
            scores = scores.masked_fill(past[:, None, None, :], float("-inf"))
        return torch.einsum("bgrs,bsgd->bgrd", scores.softmax(-1).to(v_cache.dtype), v_cache).flatten(1, 2)

    return attention


def _eager(problem: Problem) -> Function:
    return called(products(problem), NAMES, OUT)


def head_major(inputs: Tensors) -> Tensors:
    """The caches as [batch, heads, seq, dim], the layout that these libraries are used to."""
    return {**inputs, "k_cache": inputs["k_cache"].transpose(1, 2), "v_cache": inputs["v_cache"].transpose(1, 2)}


def _sdpa(backend: str, *, arranged: bool) -> Callable[[Problem], Function]:
    def build(problem: Problem) -> Function:
        import torch
        from torch.nn import attention
        from torch.nn.functional import scaled_dot_product_attention as sdpa

        if not full(problem) and backend == "FLASH_ATTENTION":
            raise Absent("PyTorch's flash attention takes no mask, which lengths that differ need.")
        chosen, scale = getattr(attention.SDPBackend, backend), problem.attributes["scale"]
        lengths = problem.inputs["seq_lens"]
        mask = None if full(problem) else (
            torch.arange(problem.dims["max_seq"], device=problem.device) < lengths[:, None])[:, None, None, :]

        def call(inputs: Tensors) -> Tensors:
            k, v = inputs["k_cache"], inputs["v_cache"]
            if not arranged:
                k, v = k.transpose(1, 2), v.transpose(1, 2)
            with attention.sdpa_kernel(chosen):
                out = sdpa(inputs["q"][:, :, None, :], k, v, attn_mask=mask, scale=scale, enable_gqa=True)
            return {"out": out[:, :, 0, :]}

        return call

    return build


def _pair(name: str, backend: str) -> tuple[Peer, Peer]:
    return (Peer(name, "torch", _sdpa(backend, arranged=False), "on the cache as it is, [batch, seq, heads, dim]"),
            Peer(f"{name}, head-major", "torch", _sdpa(backend, arranged=True),
                 "the cache laid out as [batch, heads, seq, dim] beforehand", arrange=head_major))


PEERS: dict[str, tuple[Peer, ...]] = {
    "decode_attention": (
        Peer(EAGER, "torch", _eager, "two products and a softmax", BOTH),
        compiled(products, NAMES, OUT, mode="default"),  # searching products that are memory-bound takes minutes
        *_pair("cuDNN SDPA", "CUDNN_ATTENTION"),
        *_pair("flash SDPA", "FLASH_ATTENTION"),
        lacking("decode attention"),
    ),
}
