"""What libraries are asked for is what the operators declare: every peer that runs on a CPU, on a small problem."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.timing.device.contents import Starts
from harness.operators import registry
from harness.operators.base import ShapePoint
from harness.peers.base import COMPILE, Peer, Problem
from harness.peers.checks import Checked, check, keep
from harness.peers.registry import CLEAN, PEERS, here, peers_of
from harness.peers.ring import Contents
from tests.harness.peers.stub import table

SIZES = {
    "rows": 4, "cols": 96, "vocab": 200, "batch": 2, "max_seq": 40, "q_heads": 4, "kv_heads": 2, "dim": 32, "seq": 6,
    "half": 16, "m": 16, "k": 48, "n": 24,
}
NEEDS_GPU = ("cuDNN", "cuBLAS")
ON_CPU = [(name, peer) for name in registry.NAMES for peer in peers_of(name)
          if peer.package == "torch" and peer.name != COMPILE and not peer.name.startswith(NEEDS_GPU)]


def contents(name: str, dtype: str, regime: str | None = None) -> Contents:
    spec = registry.get(name)
    dims = {dim: SIZES.get(dim, 8) for dim in spec.domain} | ({"k": 8} if name == "topk" else {})
    attributes = all_attributes(spec, {"k": 8} if name == "topk" else {})
    regimes = (regime,) if regime else spec.workloads["llm"].regimes
    inputs = make_inputs(spec, dims, regimes, attributes, dtype, 23)
    inputs = CLEAN.get(name, lambda one: one)(inputs)
    renewed = tuple(one.name for one in spec.inputs if one.per_call and inputs[one.name].dtype.is_floating_point)
    starts = Starts([inputs[one].numel() for one in renewed], random.Random(1))
    return Contents(spec, ShapePoint("small", dims, 1.0), dtype, attributes, inputs, starts, renewed)


def asked(peer: Peer, made: Contents) -> Checked:
    kinds = {attribute.name: attribute.kind for attribute in made.spec.attributes}
    attributes: dict[str, Any] = {name: int(value) if kinds[name] == "int" else value
                                  for name, value in made.attributes.items()}
    inputs = {name: values.clone() for name, values in made.inputs.items()}
    factors = torch.ones_like(table())
    function = peer.build(Problem(made.point.dims, attributes, inputs, "cpu"))
    arranged = peer.arrange(inputs) if peer.arrange else inputs
    outputs = function({name: values.contiguous() for name, values in arranged.items()})
    return check(keep(outputs, range(0), 0), made, factors, peer)


@pytest.mark.parametrize(("name", "peer"), ON_CPU, ids=[f"{name}-{peer.name}" for name, peer in ON_CPU])
def test_a_library_computes_the_operator(name: str, peer: Peer) -> None:
    found = asked(peer, contents(name, "float32"))
    assert found.right, found.why


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_small_problem_compiles_to_the_same_answer(name: str) -> None:
    """torch.compile's own front end without its code generator, which takes seconds per operator."""
    peer = next(one for one in peers_of(name) if one.name == COMPILE)
    original = torch.compile
    try:
        torch.compile = lambda function, **_: original(function, backend="eager", dynamic=False)  # type: ignore[assignment]
        found = asked(peer, contents(name, "float32"))
    finally:
        torch.compile = original
    assert found.right, found.why


def test_every_operator_has_libraries_and_no_library_an_unknown_operator() -> None:
    assert set(registry.NAMES) <= set(PEERS)
    for peers in PEERS.values():
        assert len({peer.name for peer in peers}) == len(peers)
        assert all(here(peer, Backend.TRITON) is None for peer in peers)


def test_caches_for_libraries_hold_no_nan_and_are_full_where_they_nearly_are() -> None:
    nearly = {"k_cache": torch.full((2, 20, 1, 4), torch.nan), "v_cache": torch.ones(2, 20, 1, 4),
              "seq_lens": torch.tensor([18, 20], dtype=torch.int32), "q": torch.ones(2, 1, 4)}
    ragged = {**nearly, "seq_lens": torch.tensor([3, 20], dtype=torch.int32)}
    clean = CLEAN["decode_attention"]
    assert clean(nearly)["seq_lens"].tolist() == [20, 20]
    assert clean(ragged)["seq_lens"].tolist() == [3, 20]
    assert not clean(nearly)["k_cache"].isnan().any()
