"""Cross entropy in torch: inputs, float64 reference, honest implementation, relations and exact problems."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy

from harness.operators.base import Dims
from harness.operators.implementation import Attributes, ExactProbe, Relation, Tensors
from harness.operators.summation import serial_loss
from harness.operators.values import mixed_rows, quantise

IGNORED = 0.125
"""Share of rows whose target is ignored."""
OF_TARGETS = {"all_ignored": "nan", "edge_targets": "normal", "sure": "spike", "hidden_target": "normal"}
"""Regimes about targets, and what the logits are then."""
UNIGNORED = ("stratified_spikes", "edge_targets", "sure", "hidden_target")
COUNT_ROWS, COUNT_COLS = 16, 4099
FAR = 500.0
"""An exponential of minus this is nothing beside 1."""
ROUNDINGS = 16.0
"""Of float32, for a logarithm of an exact sum and a change of its base."""


def make_inputs(
    dims: Dims, regimes: tuple[str, ...], dtype: torch.dtype, generator: torch.Generator, attributes: Attributes
) -> Tensors:
    """logits [rows, vocab] of the regimes, targets [rows] anywhere, one in eight ignored.

    Where one of ``OF_TARGETS`` is alone: all rows are ignored, although some of their logits are NaN; targets are the
    first and the last class in turn; the largest logit of each row; or hidden by -inf in every other row."""
    rows, vocab = dims["rows"], dims["vocab"]
    alone = regimes[0] if len(regimes) == 1 else ""
    logits = mixed_rows(tuple(OF_TARGETS.get(regime, regime) for regime in regimes), rows, vocab, dtype, generator)
    target = torch.randint(vocab, (rows,), generator=generator)
    skipped = torch.rand(rows, generator=generator) < (1.0 if alone == "all_ignored" else IGNORED)
    if alone == "edge_targets":
        target = torch.arange(rows) % 2 * (vocab - 1)
    elif alone == "sure":
        target = logits.argmax(-1)
    else:  # a model does not hide what it is to learn
        picked = logits[torch.arange(rows), target]
        seen = ~torch.isneginf(picked) | torch.isneginf(logits).all(-1)
        logits[torch.arange(rows), target] = torch.where(seen, picked, 0.0)
    if alone == "hidden_target":
        logits[torch.arange(0, rows, 2), target[::2]] = -torch.inf
    if alone not in UNIGNORED:
        target[skipped] = int(attributes["ignore_index"])
    return {"logits": quantise(logits, dtype), "target": target}


def _chosen(logits: torch.Tensor, target: torch.Tensor, ignore_index: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The targets' logits [rows], and which rows are ignored; the logit of those is that of class 0."""
    ignored = target == int(ignore_index)
    return logits.gather(-1, torch.where(ignored, 0, target)[:, None])[:, 0], ignored


def _parts(inputs: Tensors, attributes: Attributes) -> dict[str, torch.Tensor]:
    """In float64: shares [rows, vocab]; top, total (relative to the top's exponential), chosen, ignored [rows]."""
    logits = inputs["logits"].double()
    top = logits.amax(-1)
    powers = torch.exp(logits - top[:, None])
    total = powers.sum(-1)
    chosen, ignored = _chosen(logits, inputs["target"], attributes["ignore_index"])
    return {"shares": powers / total[:, None], "top": top, "total": total, "chosen": chosen, "ignored": ignored}


def reference(inputs: Tensors, attributes: Attributes) -> Tensors:
    """log(sum(exp(logits))) - logits[target] in float64, 0 where ignored."""
    parts = _parts(inputs, attributes)
    loss = torch.log(parts["total"]) + (parts["top"] - parts["chosen"])
    return {"loss": torch.where(parts["ignored"], 0.0, loss)}


def magnitude(inputs: Tensors, attributes: Attributes) -> dict[str, tuple[torch.Tensor, torch.Tensor | float]]:
    """The sizes of what is added up: the largest logit, the target's, and 1 for the logarithm, which turns a relative
    error of its argument into an absolute one. An ignored row has none.

    Counted besides, in units of four roundings: the exponents' own (their mean size under the shares, however the
    maximum is taken away), the logarithm's, 2 sqrt(vocab) for a sum in any order and what a serial one loses."""
    parts = _parts(inputs, attributes)
    sizes = 1.0 + parts["top"].abs() + parts["chosen"].abs()
    distance = (inputs["logits"].double() - parts["top"][:, None]).abs().nan_to_num(0.0, 0.0)
    exponents = (parts["shares"] * distance).sum(-1)
    sums = (2.0 * math.sqrt(inputs["logits"].shape[-1]) + serial_loss(parts["shares"])[:, 0]) / 4.0
    absolute = exponents + torch.log(parts["total"]) + sums
    scale = torch.where(parts["ignored"], 0.0, sizes)
    return {"loss": (scale, 1.0 + (absolute / sizes).nan_to_num(0.0, 0.0, 0.0))}


def honest(inputs: Tensors, attributes: Attributes) -> Tensors:
    """Float32 throughout."""
    logits = inputs["logits"].float()
    top = logits.amax(-1)
    total = torch.exp(logits - top[:, None]).sum(-1)
    chosen, ignored = _chosen(logits, inputs["target"], attributes["ignore_index"])
    return {"loss": torch.where(ignored, 0.0, torch.log(total) + top - chosen)}


def libraries(inputs: Tensors, attributes: Attributes) -> dict[str, Callable[[], Tensors]]:
    """PyTorch's eager operator on logits in float32, as losses in half precision are no match."""
    logits, target, ignored = inputs["logits"], inputs["target"], int(attributes["ignore_index"])
    return {"torch eager": lambda: {"loss": cross_entropy(logits.float(), target, ignore_index=ignored,
                                                          reduction="none")}}


def relations(inputs: Tensors, attributes: Attributes, generator: torch.Generator) -> list[Relation]:
    """A constant added, classes renamed, rows in another order or given twice, another number for what is ignored."""
    logits, target = inputs["logits"], inputs["target"]
    same, vocab = dict(attributes), logits.shape[-1]
    ignore_index = int(attributes["ignore_index"])
    order = torch.randperm(vocab, generator=generator)
    ignored = target == ignore_index
    renamed = torch.where(ignored, target, order.argsort()[torch.where(ignored, 0, target)])
    # Multiples of 1/8 in [-4, 4) stay exact when a whole number up to 11 is added, in every dtype.
    grid = (torch.randint(-32, 32, tuple(logits.shape), generator=generator) / 8.0).to(logits.dtype)
    shift = float(torch.randint(4, 12, (), generator=generator))
    other = vocab + int(torch.randint(1, 1000, (), generator=generator))
    found = [
        Relation(f"{shift:g} added to every logit changes nothing", {**inputs, "logits": grid + shift}, same,
                 lambda outputs: outputs, exact=False, original={**inputs, "logits": grid}),
        Relation("rows in another order give losses in that order",
                 {"logits": logits.flip(0), "target": target.flip(0)}, same,
                 lambda outputs: {"loss": outputs["loss"].flip(0)}, exact=False),
        Relation("rows given twice give losses twice",
                 {"logits": torch.cat([logits, logits]), "target": torch.cat([target, target])}, same,
                 lambda outputs: {"loss": torch.cat([outputs["loss"], outputs["loss"]])}, exact=False),
        Relation(f"{other} for what is ignored changes nothing",
                 {**inputs, "target": torch.where(ignored, other, target)},
                 {**same, "ignore_index": other}, lambda outputs: outputs, exact=True),
    ]
    if not 0 <= ignore_index < vocab:  # else another class would be ignored
        found.append(Relation("classes in another order, targets with them, change nothing",
                              {"logits": logits[:, order], "target": renamed}, same, lambda outputs: outputs,
                              exact=False))
    return found


def exact_probes(dims: Dims, dtype: torch.dtype, generator: torch.Generator) -> list[ExactProbe]:
    """One logit far above the others: the loss is 0 where it is the target and the distance elsewhere. Some logits of 0
    and the others far below: the loss is the logarithm of their number, and one more or less shows."""
    rows, vocab = dims["rows"], dims["vocab"]
    peak = torch.randint(vocab, (rows,), generator=generator)
    target = torch.where(torch.rand(rows, generator=generator) < 0.5, peak,
                         torch.randint(vocab, (rows,), generator=generator))
    logits = torch.full((rows, vocab), -FAR)
    logits[torch.arange(rows), peak] = 0.0
    loss = torch.where(target == peak, 0.0, FAR)
    nobody: dict[str, float] = {"ignore_index": -100}
    counts = torch.randint(COUNT_COLS // 2, COUNT_COLS + 1, (COUNT_ROWS,), generator=generator)
    ranks = torch.rand(COUNT_ROWS, COUNT_COLS, generator=generator).argsort(-1)
    shared = ranks < counts[:, None]
    return [
        ExactProbe("one logit far above the others", {"logits": logits.to(dtype), "target": target}, nobody,
                   {"loss": loss}),
        ExactProbe("a number of equal logits",
                   {"logits": torch.where(shared, 0.0, -FAR).to(dtype), "target": shared.int().argmax(-1)}, nobody,
                   {"loss": torch.log(counts.double()).float()}, roundings=ROUNDINGS),
    ]
