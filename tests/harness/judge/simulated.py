"""Kernels simulated in torch with operands and sums of any precision, and what the judge says to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from harness.evaluation.buffers import dtype_of
from harness.evaluation.judge.allowance import U32
from harness.evaluation.judge.compare import compare
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.oracle import expect
from harness.operators.base import OperatorSpec
from harness.operators.implementation import load_implementation

Round = Callable[[torch.Tensor], torch.Tensor]


def tf32(values: torch.Tensor) -> torch.Tensor:
    """Float32 rounded to 11 significant bits, to nearest even, with float32's exponents."""
    bits = values.contiguous().view(torch.int32)
    bits = (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF
    return torch.where(torch.isfinite(values), bits.view(torch.float32), values)


FORMATS: dict[str, Round] = {
    "float32": lambda values: values,
    "tf32": tf32,
    "bfloat16": lambda values: values.bfloat16().float(),
    "float16": lambda values: values.half().float(),
}


@dataclass(frozen=True)
class Numerics:
    """``operands``: what factors and addends are rounded to; ``sums``: what every partial sum is rounded to;
    ``serial`` or pairwise; ``inner``: results in the middle rounded to the inputs' dtype."""

    operands: str = "float32"
    sums: str = "float32"
    serial: bool = True
    inner: bool = False

    def total(self, terms: torch.Tensor) -> torch.Tensor:
        """Sum over the last axis, kept."""
        keep = FORMATS[self.sums]
        terms = keep(terms)
        if self.serial:
            partial = torch.zeros_like(terms[..., :1])
            for place in range(terms.shape[-1]):
                partial = keep(partial + terms[..., place : place + 1])
            return partial
        while terms.shape[-1] > 1:
            half = terms.shape[-1] // 2
            paired = keep(terms[..., :half] + terms[..., half : 2 * half])
            terms = torch.cat([paired, terms[..., 2 * half :]], -1)
        return terms


def run_kernel(
    name: str, inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics
) -> dict[str, torch.Tensor]:
    """The operator's simulated outputs in the inputs' dtype."""
    made = KERNELS[name](inputs, attributes, how)
    return made if isinstance(made, dict) else {"out": made}


def _rms_norm(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> torch.Tensor:
    dtype, operand = inputs["x"].dtype, FORMATS[how.operands]
    x, weight = inputs["x"].float(), inputs["weight"].float()
    scaled = x * torch.rsqrt(how.total(operand(x) * operand(x)) / x.shape[-1] + attributes["eps"])
    if how.inner:
        scaled = scaled.to(dtype).float()
    return (scaled * weight).to(dtype)


def _add_rms_norm(
    inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics
) -> dict[str, torch.Tensor]:
    """``inner``: the norm of the rounded sum, rounded again before the weight."""
    dtype, total = inputs["x"].dtype, inputs["x"].float() + inputs["residual"].float()
    kept = total.to(dtype)
    given = {"x": kept if how.inner else total, "weight": inputs["weight"]}
    return {"out": _rms_norm(given, attributes, how).to(dtype), "residual_out": kept}


def _layer_norm(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> torch.Tensor:
    dtype, operand = inputs["x"].dtype, FORMATS[how.operands]
    x, weight, bias = (inputs[name].float() for name in ("x", "weight", "bias"))
    apart = x - how.total(operand(x)) / x.shape[-1]
    scaled = apart * torch.rsqrt(how.total(operand(apart) * operand(apart)) / x.shape[-1] + attributes["eps"])
    if how.inner:
        scaled = scaled.to(dtype).float()
    return (scaled * weight + bias).to(dtype)


def _softmax(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> torch.Tensor:
    dtype, operand = inputs["x"].dtype, FORMATS[how.operands]
    x = inputs["x"].float()
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    total = how.total(operand(powers))
    if how.inner:
        powers = powers.to(dtype).float()
    return (powers / total).to(dtype)


def _decode(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> torch.Tensor:
    dtype, operand, lengths = inputs["q"].dtype, FORMATS[how.operands], inputs["seq_lens"]
    group = inputs["q"].shape[1] // inputs["k_cache"].shape[2]
    valid = torch.arange(inputs["k_cache"].shape[1])[None, :] < lengths[:, None]
    k, v = (
        torch.where(valid[:, :, None, None], inputs[name].float(), 0.0).transpose(1, 2).repeat_interleave(group, 1)
        for name in ("k_cache", "v_cache")
    )
    q = inputs["q"].float()
    scores = how.total(operand(q)[:, :, None] * operand(k))[..., 0] * attributes["scale"]
    scores = scores.masked_fill(~valid[:, None], -torch.inf)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True)).masked_fill(~valid[:, None], 0.0)
    total = how.total(powers)
    if how.inner:
        powers = powers.to(dtype).float()
    gathered = how.total((operand(powers)[..., None] * operand(v)).transpose(2, 3))[..., 0]
    return torch.where((lengths > 0)[:, None, None], gathered / total, 0.0).to(dtype)


def _matmul_bias_gelu(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> torch.Tensor:
    dtype, operand = inputs["a"].dtype, FORMATS[how.operands]
    a, b, bias = (inputs[name].float() for name in ("a", "b", "bias"))
    terms = operand(a)[:, None, :] * operand(b).mT[None]
    sums = how.total(torch.cat([terms, bias[None, :, None].expand(len(a), -1, 1)], -1))[..., 0]  # never rounded inside
    return torch.nn.functional.gelu(sums, approximate="tanh").to(dtype)


def _swiglu(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> torch.Tensor:
    dtype, operand = inputs["gate"].dtype, FORMATS[how.operands]
    gate, up = operand(inputs["gate"].float()), operand(inputs["up"].float())
    gated = gate / how.total(torch.stack([torch.ones_like(gate), torch.exp(-gate)], -1))[..., 0]
    if how.inner:
        gated = gated.to(dtype).float()
    return (gated * up).to(dtype)


def _rope(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> dict[str, torch.Tensor]:
    made, operand = {}, FORMATS[how.operands]
    cos, sin = (operand(inputs[name].float())[None, :, None] for name in ("cos", "sin"))
    for name in ("q", "k"):
        left, right = operand(inputs[name].float()).chunk(2, -1)
        halves = [torch.stack(terms, -1) for terms in ((left * cos, -right * sin), (right * cos, left * sin))]
        made[f"{name}_out"] = torch.cat([how.total(terms)[..., 0] for terms in halves], -1).to(inputs[name].dtype)
    return made


def _cross_entropy(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> dict[str, Any]:
    operand, target = FORMATS[how.operands], inputs["target"]
    logits = operand(inputs["logits"].float())
    top = logits.amax(-1)
    total = how.total(operand(torch.exp(logits - top[:, None])))[:, 0]
    ignored = target == int(attributes["ignore_index"])
    chosen = logits.gather(-1, torch.where(ignored, 0, target)[:, None])[:, 0]
    return {"loss": torch.where(ignored, 0.0, torch.log(total) + top - chosen)}


def _topk(inputs: dict[str, torch.Tensor], attributes: dict[str, float], how: Numerics) -> dict[str, Any]:
    k, x = int(attributes["k"]), inputs["x"]
    found = torch.sort(FORMATS[how.operands](x.float()), dim=-1, descending=True, stable=True)
    return {"values": found.values[:, :k].to(x.dtype), "indices": found.indices[:, :k]}


KERNELS = {"rms_norm": _rms_norm, "softmax": _softmax, "decode_attention": _decode,
           "matmul_bias_gelu": _matmul_bias_gelu,
           "add_rms_norm": _add_rms_norm, "layer_norm": _layer_norm,
           "swiglu": _swiglu, "rope": _rope, "cross_entropy": _cross_entropy, "topk": _topk}


def missed(spec: OperatorSpec, dtype: str, how: Numerics, seed: int, cases: Any) -> Iterator[str]:
    """Names of cases and exact probes at which the judge refuses such a kernel."""
    for case in cases:
        attributes = all_attributes(spec, case.attributes)
        inputs = make_inputs(spec, case.dims, case.regime, attributes, dtype, seed, case.name)
        answers = expect(spec, case.dims, inputs, attributes, dtype)
        made = run_kernel(spec.name, inputs, attributes, how)
        if any(compare(name, next(output.dims for output in spec.outputs if output.name == name), got,
                       torch.zeros(got.shape, dtype=torch.bool), answers[name]).finding for name, got in made.items()):
            yield case.name
    yield from missed_exactly(spec, dtype, how, seed)


def missed_exactly(spec: OperatorSpec, dtype: str, how: Numerics, seed: int) -> Iterator[str]:
    """Names of the exact probes alone."""
    dims = next(case.dims for case in spec.cases if case.smoke)
    draw = torch.Generator().manual_seed(seed)
    for probe in load_implementation(spec).exact_probes(dims, dtype_of(dtype), draw):
        for name, got in run_kernel(spec.name, probe.inputs, probe.attributes, how).items():
            if name not in probe.outputs:
                continue  # about another output alone
            right = probe.outputs[name]
            slack = probe.roundings * U32 * right.double().abs() if right.dtype is torch.float32 else 0.0
            if not bool(((got.double() - right.double()).abs() <= slack).all()):
                yield f"probe: {probe.name}"
                break
