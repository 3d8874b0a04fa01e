"""Tiers as CONTRACTS section 3 lists them; whatever is not listed is heavy."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.errors import SourceError
from harness.domain.vocabulary import Backend, Tier
from harness.evaluation.source.tier import classify
from harness.operators import registry

SPEC = registry.get("rms_norm")
NUMBA, TRITON = Backend.NUMBA, Backend.TRITON
BASE = {backend: SPEC.baseline(backend) for backend in Backend}

KERNEL_LINE = "    rows, cols = x.shape\n    whole = cols - cols % block\n"
RUN_LINE = "    partial = np.empty(block, np.float32)\n"

EDITS: dict[str, tuple[Backend, str, str, Tier]] = {
    "comment": (NUMBA, "import math\n", "import math  # for sqrt\n", Tier.NONE),
    "docstring": (NUMBA, "RMSNorm, two passes", "RMSNorm in two passes", Tier.NONE),
    "local renamed": (NUMBA, "whole", "covered", Tier.NONE),
    "value": (NUMBA, '"BLOCK": 8', '"BLOCK": 16', Tier.LIGHT),
    "scalar to table": (NUMBA, '"BLOCK": 8', '"BLOCK": {"short": 4, "medium": 8, "long": 16}', Tier.LIGHT),
    "declared key added": (TRITON, '"num_warps": 4', '"num_warps": 4, "num_stages": 2', Tier.LIGHT),
    "body": (NUMBA, "total = np.float32(0.0)", "total = np.float32(-0.0)", Tier.MEDIUM),
    "option parallel": (NUMBA, "@numba.njit\n", "@numba.njit(parallel=True)\n", Tier.MEDIUM),
    "option fastmath": (NUMBA, "@numba.njit\n", "@numba.njit(fastmath=True)\n", Tier.MEDIUM),
    "options nogil and boundscheck": (NUMBA, "@numba.njit\n",
                                      "@numba.njit(nogil=True, boundscheck=False)\n", Tier.MEDIUM),
    "value out of range": (NUMBA, '"BLOCK": 8', '"BLOCK": 65536', Tier.HEAVY),
    "value not a power of two": (NUMBA, '"BLOCK": 8', '"BLOCK": 12', Tier.HEAVY),
    "boolean for an integer": (NUMBA, '"BLOCK": 8', '"BLOCK": True', Tier.HEAVY),
    "value not literal": (NUMBA, '"BLOCK": 8', '"BLOCK": 4 * 2', Tier.HEAVY),
    "incomplete table": (NUMBA, '"BLOCK": 8', '"BLOCK": {"short": 4, "long": 16}', Tier.HEAVY),
    "undeclared key": (NUMBA, '"BLOCK": 8', '"BLOCK": 8, "UNROLL": 4', Tier.HEAVY),
    "key removed": (TRITON, ', "num_warps": 4', "", Tier.HEAVY),
    "key twice": (NUMBA, '"BLOCK": 8', '"BLOCK": 8, "BLOCK": 16', Tier.HEAVY),
    "params assigned twice": (NUMBA, "@numba.njit\n", 'PARAMS = {"BLOCK": 16}\n\n\n@numba.njit\n', Tier.HEAVY),
    "params augmented": (NUMBA, "@numba.njit\n", 'PARAMS |= {"BLOCK": 16}\n\n\n@numba.njit\n', Tier.HEAVY),
    "params stored into": (NUMBA, RUN_LINE, '    PARAMS["BLOCK"] = 16\n' + RUN_LINE, Tier.HEAVY),
    "run body": (NUMBA, RUN_LINE, "    partial = np.zeros(block, np.float32)\n", Tier.HEAVY),
    "run signature": (NUMBA, "*, eps):", "*, eps=1e-6):", Tier.HEAVY),
    "import": (NUMBA, "import math\n", "import math\nimport os\n", Tier.HEAVY),
    "import under another name": (NUMBA, "import math\n", "import cmath as math\n", Tier.HEAVY),
    "constant": (NUMBA, "@numba.njit\n", "LIMIT = 4\n\n\n@numba.njit\n", Tier.HEAVY),
    "new kernel": (NUMBA, "@numba.njit\n", "@numba.njit\ndef _extra(x):\n    return x\n\n\n@numba.njit\n", Tier.HEAVY),
    "kernel defined twice": (NUMBA, "def run(",
                             "@numba.njit\ndef _rms_norm(x):\n    return x\n\n\ndef run(", Tier.HEAVY),
    "kernel renamed": (NUMBA, "_rms_norm", "_norm", Tier.HEAVY),
    "kernel signature": (NUMBA, "eps, block):\n", "eps, block, extra=1):\n", Tier.HEAVY),
    "kernel default": (NUMBA, "eps, block):\n", "eps, block=8):\n", Tier.HEAVY),
    "kernel annotation": (TRITON, "x_stride, out", "x_stride: tl.constexpr, out", Tier.HEAVY),
    "decorator removed": (NUMBA, "@numba.njit\n", "", Tier.HEAVY),
    "decorator swapped": (NUMBA, "@numba.njit\n", "@numba.jit\n", Tier.HEAVY),
    "decorator added": (NUMBA, "@numba.njit\n", "@trace\n@numba.njit\n", Tier.HEAVY),
    "cache option": (NUMBA, "@numba.njit\n", "@numba.njit(cache=True)\n", Tier.HEAVY),
    "option not literal": (NUMBA, "@numba.njit\n", "@numba.njit(fastmath=bool(PARAMS))\n", Tier.HEAVY),
    "explicit signature": (NUMBA, "@numba.njit\n", '@numba.njit("void(f4[:,:])")\n', Tier.HEAVY),
    "triton jit option": (TRITON, "@triton.jit\n", "@triton.jit(noinline=True)\n", Tier.HEAVY),
    "nested function": (NUMBA, KERNEL_LINE, "    def inner():\n        return 1\n" + KERNEL_LINE, Tier.HEAVY),
    "lambda in a body": (NUMBA, KERNEL_LINE, "    f = lambda: 1\n" + KERNEL_LINE, Tier.HEAVY),
    "global in a body": (NUMBA, KERNEL_LINE, "    global counter\n" + KERNEL_LINE, Tier.HEAVY),
    "import in a body": (NUMBA, KERNEL_LINE, "    import os\n" + KERNEL_LINE, Tier.HEAVY),
    "try in a body": (NUMBA, KERNEL_LINE,
                      "    try:\n        pass\n    finally:\n        pass\n" + KERNEL_LINE, Tier.HEAVY),
    "wider accumulator": (NUMBA, "total = np.float32(0.0)", "total = np.float64(0.0)", Tier.MEDIUM),
    "narrower accumulator": (TRITON, "tl.zeros([BLOCK], tl.float32)", "tl.zeros([BLOCK], tl.float16)", Tier.HEAVY),
    "accumulator of the input's width": (TRITON, "tl.zeros([BLOCK], tl.float32)",
                                         "tl.zeros([BLOCK], x.dtype.element_ty)", Tier.HEAVY),
    "accumulator narrowed in the loop": (TRITON, "squares += values * values",
                                         "squares = (squares + values * values).to(tl.float16)", Tier.HEAVY),
    "conversions dropped": (TRITON, "other=0.0).to(tl.float32)", "other=0.0)", Tier.MEDIUM),
    "params annotated": (NUMBA, "PARAMS = {", "PARAMS: print() = {", Tier.HEAVY),
    "atomics": (TRITON, "tl.store(out + row * out_stride + offsets, values * scale * gains, mask=mask)",
                "tl.atomic_add(out + row * out_stride + offsets, values * scale * gains, mask=mask)", Tier.HEAVY),
    "atomics by alias": (TRITON, "    lanes = tl.arange(0, BLOCK)\n",
                         "    lanes = tl.arange(0, BLOCK)\n    add = tl.atomic_add\n", Tier.HEAVY),
    "inline assembly": (TRITON, "    lanes = tl.arange(0, BLOCK)\n",
                        "    lanes = tl.arange(0, BLOCK)\n"
                        "    tl.inline_asm_elementwise('', '', [], tl.int32, True, 1)\n", Tier.HEAVY),
    "conditional definition": (NUMBA, "def run(", "if True:\n    def _rms_norm(x):\n        return x\n\n\ndef run(",
                               Tier.HEAVY),
    "class": (NUMBA, "def run(", "class Box:\n    pass\n\n\ndef run(", Tier.HEAVY),
}


def edited(backend: Backend, *names: str) -> str:
    source = BASE[backend]
    for name in names:
        _, old, new, _ = EDITS[name]
        assert old in source, name
        everywhere = name in ("local renamed", "kernel renamed")
        source = source.replace(old, new) if everywhere else source.replace(old, new, 1)
    return source


@pytest.mark.parametrize("name", sorted(EDITS))
def test_each_rule(name: str) -> None:
    backend, _, _, tier = EDITS[name]
    result = classify(BASE[backend], edited(backend, name), SPEC, backend)
    assert result.tier is tier
    assert bool(result.why) == (tier is not Tier.NONE)


@pytest.mark.parametrize("spec", registry.all_operators(), ids=lambda spec: spec.name)
@pytest.mark.parametrize("backend", list(Backend))
def test_a_source_against_itself_is_no_change(spec: object, backend: Backend) -> None:
    source = spec.baseline(backend)  # type: ignore[attr-defined]
    assert classify(source, source, spec, backend).tier is Tier.NONE  # type: ignore[arg-type]


COMPATIBLE = ["docstring", "local renamed", "value", "body", "option fastmath", "run body", "import", "kernel default"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(COMPATIBLE), min_size=1, max_size=4, unique=True))
def test_the_tier_of_several_edits_is_the_highest_of_them(names: list[str]) -> None:
    highest = max((EDITS[name][3] for name in names), key=lambda tier: tier.rank)
    assert classify(BASE[NUMBA], edited(NUMBA, *names), SPEC, NUMBA).tier is highest


@pytest.mark.parametrize(("left", "right"), list(itertools.product(["body", "run body", "import", "value"], repeat=2)))
def test_undoing_a_change_has_the_tier_of_making_it(left: str, right: str) -> None:
    names = [left] if left == right else [left, right]
    forth = classify(BASE[NUMBA], edited(NUMBA, *names), SPEC, NUMBA)
    back = classify(edited(NUMBA, *names), BASE[NUMBA], SPEC, NUMBA)
    assert forth.tier is back.tier


def test_irregular_modules_make_every_change_heavy() -> None:
    twice = edited(NUMBA, "kernel defined twice")
    changed = twice.replace("np.float32(0.0)", "np.float32(-0.0)")
    assert classify(twice, changed, SPEC, NUMBA).tier is Tier.HEAVY
    assert classify(twice, twice + "\n# a comment\n", SPEC, NUMBA).tier is Tier.NONE


def test_run_is_never_a_kernel_body() -> None:
    base = BASE[NUMBA].replace("def run(", "@numba.njit\ndef run(")
    changed = base.replace("np.empty(block", "np.zeros(block")
    assert classify(base, changed, SPEC, NUMBA).tier is Tier.HEAVY


def test_a_decorator_that_only_looks_like_jit_makes_no_kernel() -> None:
    fake = BASE[NUMBA].replace("import numba\n", "").replace("@numba.njit", "@njit").replace(
        "PARAMS =", "def njit(function):\n    return function\n\n\nPARAMS =")
    assert classify(fake, fake.replace("np.float32(0.0)", "np.float32(-0.0)"), SPEC, NUMBA).tier is Tier.HEAVY


def test_reasons_name_lines_of_the_new_source() -> None:
    new = edited(NUMBA, "value", "body")
    lines = new.split("\n")
    why = classify(BASE[NUMBA], new, SPEC, NUMBA).why
    assert [(lines[reason.line - 1].strip()) for reason in why if reason.line] == [
        "for row in range(rows):", 'PARAMS = {"BLOCK": 16}']
    assert "body of _rms_norm changed" in why[0].text
    assert "BLOCK 8 to 16" in why[1].text


def test_an_unreadable_source_is_an_error_not_a_tier() -> None:
    with pytest.raises(SourceError):
        classify(BASE[NUMBA], "def f(:\n", SPEC, NUMBA)


WALKS = BASE[TRITON].replace("PARAMS[\"BLOCK\"]", "list(PARAMS.values())[0]")


@pytest.mark.parametrize(("source", "old", "new", "tier"), [
    (BASE[TRITON], "", "", Tier.NONE),
    (WALKS, "", "", Tier.HEAVY),
    (WALKS, '"num_warps": 4', '"num_warps": 8', Tier.HEAVY),
    (BASE[TRITON], '"num_warps": 4', '"num_warps": 8', Tier.LIGHT),
])
def test_the_order_of_params_counts_where_code_walks_through_them(source: str, old: str, new: str, tier: Tier) -> None:
    left, _, rest = source.partition("PARAMS = {")
    inside, _, right = rest.partition("}")
    turned = ", ".join(reversed(inside.split(", ")))
    assert turned != inside
    assert classify(source, f"{left}PARAMS = {{{turned.replace(old, new)}}}{right}", SPEC, TRITON).tier is tier


def test_the_order_of_a_table_is_no_light_change() -> None:
    table = '"BLOCK": {"short": 4, "medium": 8, "long": 16}'
    turned = '"BLOCK": {"long": 32, "medium": 8, "short": 4}'
    before, after = (BASE[NUMBA].replace('"BLOCK": 8', text) for text in (table, turned))
    assert classify(before, after, SPEC, NUMBA).tier is Tier.HEAVY


SCOPED = """import numba
PARAMS = {"BLOCK": 8}
@numba.njit
def _one(x, out):
    out[0] = x[0]
@numba.njit
def _two(x, out):
    out[0] = 0
def run(x, weight, out, *, eps):
    _ = [(lambda: ((_one := 1), (_two := 2))) for i in ()]
    _one(x, out)
    _two
"""


def test_names_of_a_lambda_in_a_comprehension_are_not_those_of_the_function() -> None:
    swapped = SCOPED.replace("_one", "_x").replace("_two", "_one").replace("_x", "_two")
    swapped = swapped.replace("def _two", "def _x").replace("def _one", "def _two").replace("def _x", "def _one")
    assert classify(SCOPED, swapped, SPEC, NUMBA).tier is Tier.HEAVY


@pytest.mark.parametrize("reader", ["_first(**PARAMS)", "dict(**PARAMS)", "list({**PARAMS})[0]"])
def test_the_order_of_params_counts_where_anything_but_a_launch_is_given_it(reader: str) -> None:
    base = BASE[TRITON] + f"""

def _first(**given):
    return list(given.values())[0]


def _other():
    return {reader}
"""
    moved = base.replace('"num_warps": 4', '"x": 4').replace("PARAMS = {", 'PARAMS = {"num_warps": 4, ', 1).replace(
        ', "x": 4', "")
    assert moved != base
    assert classify(base, moved, SPEC, TRITON).tier is Tier.HEAVY


def test_a_scope_that_cannot_be_told_is_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.evaluation.source.tier.disagreements", lambda tree: {"eval"})
    assert classify(BASE[NUMBA], BASE[NUMBA] + "# again\n", SPEC, NUMBA).tier is Tier.HEAVY
