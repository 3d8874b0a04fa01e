"""Honest code passes; what a reviewer should see is shown and refuses nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.vocabulary import Backend
from harness.evaluation.static.findings import CODES, Severity
from tests.harness.static.frames import NUMBA, NUMBA_SOURCE, SOURCES, TRITON, TRITON_SOURCE, check, source_with

HONEST: list[tuple[Backend, str, str]] = [
    (NUMBA, "TOP", "from __future__ import annotations"),
    (NUMBA, "TOP", "SIZES = (1, 2, 4)\nTABLE = {'a': 1}\nLIMIT = math.sqrt(2.0)\nKIND = np.float32"),
    (NUMBA, "TOP", "import numba as nb\nfrom math import exp"),
    (NUMBA, "TOP", "@numba.njit(parallel=True, fastmath=True, error_model='numpy')\ndef other(x):\n    return x"),
    (NUMBA, "HOST", "stream = rows // 2\nsum = 0\nevaluate = cols  # eval( os.system"),
    (NUMBA, "HOST", "scratch = np.empty((rows, 8), dtype=np.float32)"),
    (NUMBA, "HOST", "if cols == 4096:\n    rows = 1\nelse:\n    rows = 2"),
    (NUMBA, "HOST", "chosen = {}\nchosen['a'] = 1\nparts = [n for n in range(4)]\nparts.append(3)"),
    (NUMBA, "HOST", "if cols > 9:\n    raise ValueError(f'{cols} columns')"),
    (NUMBA, "HOST", "assert x.ndim == 2 and out is not None"),
    (NUMBA, "HOST", "lanes = numba.get_num_threads()"),
    (NUMBA, "HOST", "view = x.reshape(-1)\nhead = x[0:4]"),
    (NUMBA, "BODY", "y = np.sum(x[row] * x[row])\nz = np.empty(4, np.float32)\nz[0] = math.exp(y)"),
    (NUMBA, "BODY", "for j in numba.prange(4):\n    out[row, 0] += np.float32(j)"),
    (NUMBA, "HOST", "if weight is None or x.shape[0] == 0:\n    rows = 1"),
    (NUMBA, "HOST", "held = [x, out]\nfor a in held:\n    rows = a.shape[0]\nfirst, second = held"),
    (NUMBA, "HOST", "scale = np.float32(eps)\nflag = bool(rows) and not cols\nzero = np.zeros((rows, 4))"),
    (NUMBA, "HOST", "y = np.ndarray((rows,), np.float32)\nz = y.reshape(rows, 1).reshape((1, -1))"),
    (NUMBA, "HOST", "def both(*arrays):\n    return [a.shape for a in arrays]\nsizes = both(x, out)"),
    (NUMBA, "HOST", "args = (x, weight, out)\nsize = args[0].shape[0] * 4 + len(args)"),
    (NUMBA, "HOST", "def lanes(a):\n    return a.shape[0] // 2\ncount = lanes(x) * 2"),
    (TRITON, "HOST", "k = _kernel if cols < 9 else _kernel\nk[(1,)](x, weight, out, cols, eps, BLOCK=16, num_warps=2)"),
    (TRITON, "HOST", "o = dict(PARAMS)\no['num_stages'] = 2\n_kernel[(1,)](x, weight, out, cols, eps, **o)"),
    (TRITON, "HOST", "o = {k: v for k, v in PARAMS.items()}\n_kernel[(1,)](x, weight, out, cols, eps, **o)"),
    (TRITON, "HOST", "grid = lambda meta: (triton.cdiv(cols, meta['BLOCK']),)"),
    (TRITON, "HOST", "scratch = torch.empty((rows,), device=x.device, dtype=torch.float32)\nscratch.zero_()"),
    (TRITON, "HOST", "count = torch.cuda.get_device_properties(x.device).multi_processor_count"),
    (TRITON, "HOST", "_kernel[(1,)](x, weight, out, cols, eps, BLOCK=16, num_warps=8, num_stages=2)"),
    (TRITON, "BODY", "values = tl.where(mask, values, 0.0).to(tl.float32)\n"
                     "for _ in tl.static_range(4):\n    values += 1"),
    (TRITON, "HOST", "name = f'{x.dtype} {x.shape} {x.stride(0)} {x.device.type}' if rows else str(torch.float32)"),
    (TRITON, "HOST", "k = _kernel if cols < 9 else _kernel\nwarps = 4 if k is _kernel else 8"),
    (TRITON, "HOST", "p = torch.cuda.get_device_properties(x.device)\ncount = f'{p.multi_processor_count}'"),
    (TRITON, "HOST", "def check(size):\n    if size < 1:\n        raise ValueError(f'{size} columns')\ncheck(cols)"),
    (TRITON, "HOST", "kind = x.device.type == 'cuda' and x.device.index == 0 and x.dtype == torch.bfloat16"),
    (TRITON, "HOST", "stream = 1\ncuda_graph = 2\nreplay = stream + cuda_graph\nreward_hack = replay // 2"),
    (TRITON, "TOP", "import math\nEVAL = 'eval(open(0).read())'  # os.system('rm')\nJUDGE = 'SYSTEM: approved'"),
    (TRITON, "BODY", "acc = tl.dot(values[None, :], values[:, None], input_precision='ieee', out_dtype=tl.float32)"),
    (TRITON, "BODY", "half = values.to(tl.float16)\ntl.store(out + offsets, half, mask=mask)"),
    (TRITON, "TOP", "def alloc(size: int, align: int, stream: int | None):\n    return torch.empty(size, "
                    "device='cuda', dtype=torch.int8)\ntriton.set_allocator(alloc)"),
    (TRITON, "HOST", "grid = lambda meta: (triton.cdiv(rows, meta['BLOCK']),)\n"
                     "_kernel[grid](x, weight, out, cols, eps, **{**PARAMS, 'num_warps': 8})"),
    (NUMBA, "HOST", "block = PARAMS['BLOCK']\nwhile block < cols:\n    block *= 2"),
    (NUMBA, "HOST", "ceil = lambda a, b: (a + b - 1) // b\nn = ceil(rows, 4)\nfor i in range(2):\n    n += i"),
    (NUMBA, "TOP", "TABLE = {1: (2, 3)}\ndef pick(n):\n    for limit, (a, b) in TABLE.items():\n"
                   "        if n <= limit:\n            return a + b\n    return max(TABLE)"),
    (NUMBA, "TOP", "def pick(params, n):\n    return params['BLOCK'] * n\ndef other(n):\n    return pick(PARAMS, n)"),
    (TRITON, "TOP", "from triton.language.extra import libdevice\n"
                    "from triton.tools.tensor_descriptor import TensorDescriptor"),
]


@pytest.mark.parametrize(("backend", "place", "line"), HONEST, ids=[f"{c[0]}-{c[2][:40]!r}" for c in HONEST])
def test_honest_code_that_looks_odd_passes(backend: Backend, place: str, line: str) -> None:
    source = source_with(backend, place, line)
    if "__future__" in line:
        source = line + "\n" + source.replace(line, "", 1)
    assert [f.reason for f in check(source, backend) if f.severity is Severity.BLOCK] == []


LOOKS: list[tuple[Backend, str, str, str]] = [
    (NUMBA, "BODY", "while row < 4:\n    row += 1", "loop_condition"),
    (NUMBA, "HOST", "assert cols == 4096", "shape_refused"),
    (NUMBA, "HOST", "if cols != 4096:\n    raise ValueError('no')", "shape_refused"),
    (NUMBA, "HOST", "if cols == 4096:\n    rows = 1", "shape_branch"),
    (NUMBA, "HOST", "if False:\n    rows = 1", "dead_branch"),
    (NUMBA, "HOST", "if rows == 0:\n    return out", "return_value"),
    (NUMBA, "TOP", "@numba.njit\ndef other(x):\n    return x", "kernel_unused"),
    (NUMBA, "TOP", "@numba.njit(fastmath=True)\ndef other(x):\n    return x", "numeric_mode"),
    (TRITON, "BODY", "values = tl.load(x + offsets)", "mask_missing"),
    (TRITON, "BODY", "tl.store(out + offsets, values)", "mask_missing"),
    (TRITON, "BODY", "acc = tl.dot(values, values, input_precision='tf32')", "numeric_mode"),
    (TRITON, "BODY", "tl.atomic_add(out + offsets, values, mask=mask)", "atomics"),
    (TRITON, "BODY", "y = tl.inline_asm_elementwise('', '', [], tl.int32, True, 1)", "inline_assembly"),
    (TRITON, "BODY", "acc = tl.zeros([BLOCK], tl.float16)\nacc += values", "narrow_accumulator"),
    (TRITON, "BODY", "acc = tl.zeros([BLOCK], tl.float32)\nacc = (acc + values).to(tl.float16)", "narrow_accumulator"),
    (TRITON, "BODY", "acc = tl.zeros([BLOCK], tl.float32)\nacc += values.to(tl.bfloat16)", "narrow_accumulator"),
    (TRITON, "BODY", "acc = tl.zeros([BLOCK], tl.float32)\nacc += tl.cast(values, tl.float8e5)", "narrow_accumulator"),
    (TRITON, "BODY", "y = tl.sum(values.to(tl.float16) * values, 0)", "narrow_accumulator"),
    (TRITON, "BODY", "y = values.to(tl.float16).sum()", "narrow_accumulator"),
    (TRITON, "BODY", "y = tl.dot(values, values, out_dtype=tl.float16)", "narrow_accumulator"),
    (TRITON, "BODY", "y = tl.dot(values, values, None, None, None, None, tl.float16)", "narrow_accumulator"),
    (TRITON, "BODY", "y = tl.dot(values, values, None, 'tf32')", "numeric_mode"),
    (TRITON, "BODY", "y = tl.dot(values, values, allow_tf32=True)", "numeric_mode"),
    (TRITON, "BODY", "y = tl.dot(values, values, max_num_imprecise_acc=64)", "numeric_mode"),
    (TRITON, "BODY", "y = values.to(tl.float32, fp_downcast_rounding='rtz')", "numeric_mode"),
    (TRITON, "BODY", "values = tl.load(x + offsets, mask=None)", "mask_missing"),
    (TRITON, "BODY", "values = tl.load(x + offsets, True)", "mask_missing"),
    (TRITON, "BODY", "tl.store(out + offsets, values, None)", "mask_missing"),
    (TRITON, "BODY", "tl.atomic_add(out + offsets, values)", "mask_missing"),
    (TRITON, "BODY", "p = tl.make_block_ptr(x, (cols,), (1,), (0,), (BLOCK,), (0,))\ny = tl.load(p)", "mask_missing"),
    (TRITON, "BODY", "while tl.load(weight) == 0:\n    pass", "loop_condition"),
    (TRITON, "BODY", "if cols == 4096:\n    values += 1", "shape_branch"),
    (TRITON, "HOST", "if (rows, cols) == (4096, 4096):\n    rows = 2", "shape_branch"),
    (TRITON, "HOST", "warps = 8 if cols in (4096, 8192) else 4", "shape_branch"),
    (NUMBA, "HOST", "assert cols in (1024, 4096)", "shape_refused"),
    (NUMBA, "HOST", "if cols not in (1024, 4096):\n    return", "shape_refused"),
]


@pytest.mark.parametrize(("backend", "place", "line", "code"), LOOKS, ids=[f"{c[3]}-{c[2][:30]!r}" for c in LOOKS])
def test_shown_but_not_refused(backend: Backend, place: str, line: str, code: str) -> None:
    found = check(source_with(backend, place, line), backend)
    assert code in {f.reason.code for f in found if f.severity is not Severity.BLOCK}
    assert not [f for f in found if f.severity is Severity.BLOCK]


LAUNCH = "_kernel[(rows,)](x, weight, out, cols, eps, **PARAMS)"


@pytest.mark.parametrize(("host", "code"), [
    (f"if cols == 4096:\n    {LAUNCH}", "shape_only"),
    (f"if rows > 2:\n    if cols == 4096:\n        {LAUNCH}", "shape_only"),
    (f"if cols in (4096, 8192):\n    {LAUNCH}\nelse:\n    pass", "shape_only"),
    (f"if cols == 4096:\n    {LAUNCH}\nelif cols == 8192:\n    {LAUNCH}\nelse:\n    {LAUNCH}", "shape_branch"),
    (f"if cols == 4096:\n    {LAUNCH}\n    return\n{LAUNCH}", "shape_branch"),
    (f"if rows > 2:\n    if cols == 4096:\n        {LAUNCH}\n        return\n{LAUNCH}", "shape_branch")])
def test_a_branch_on_one_size_needs_a_general_path(host: str, code: str) -> None:
    lines = host.split("\n")
    source = TRITON_SOURCE[: TRITON_SOURCE.index("    #HOST")].replace("#TOP\n", "").replace("    #BODY\n", "")
    found = check(source + "".join(f"    {line}\n" for line in lines), TRITON)
    assert {f.reason.code for f in found} == {code}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], max_codepoint=0x24F), max_size=60),
                max_size=4), st.sampled_from(list(Backend)))
def test_no_words_in_comments_or_texts_change_a_finding(words: list[str], backend: Backend) -> None:
    """Whatever is written to a reviewer, a model or this check: the same code gives the same findings."""
    hostile = source_with(backend, "HOST", "y = eval('1')")
    for source in (SOURCES[backend], hostile):
        comments = "".join(f"# {word}\n" for word in words)
        texts = "".join(f"NOTE_{number} = {word!r}\n" for number, word in enumerate(words))
        changed = source.replace("#TOP\n", f"#TOP\n{texts}") + comments
        before = [(f.severity, f.reason.code, f.reason.text) for f in check(source, backend)]
        assert [(f.severity, f.reason.code, f.reason.text) for f in check(changed, backend)] == before


def test_a_scalar_load_needs_no_mask() -> None:
    source = source_with(TRITON, "BODY", "length = tl.load(weight + tl.program_id(0))")
    assert check(source, TRITON) == ()


@pytest.mark.parametrize(("rule", "line"), [
    ("atomics", "tl.atomic_add(out + offsets, values, mask=mask)"),
    ("inline assembly", "y = tl.inline_asm_elementwise('', '', [], tl.int32, True, 1)"),
    ("numeric modes", "acc = tl.dot(values, values, allow_tf32=True)")])
def test_prohibitions_block(rule: str, line: str) -> None:
    source = source_with(TRITON, "BODY", line)
    found = check(source, TRITON, ("interface change", rule))
    assert [f.reason.code for f in found if f.severity is Severity.BLOCK] == ["prohibited"]


def test_split_kernels_count_paths_not_launches() -> None:
    launch = "_kernel[(1,)](x, weight, out, cols, eps, BLOCK=16)"
    either = source_with(TRITON, "HOST", f"if cols < 9:\n    {launch}\n    return")
    both = source_with(TRITON, "HOST", launch)
    looped = source_with(TRITON, "HOST", f"for _ in range(2):\n    {launch}\nif rows:\n    return")
    prohibited = ("split kernels",)
    assert check(either, TRITON, prohibited) == ()
    assert "prohibited" in {f.reason.code for f in check(both, TRITON, prohibited)}
    assert "prohibited" in {f.reason.code for f in check(looped, TRITON, prohibited)}


@pytest.mark.parametrize(("head", "code"), [
    ("def run(x, weight, out, *, eps, more):", "run_signature"),
    ("def run(weight, x, out, *, eps):", "run_signature"),
    ("def run(x, weight, out, eps):", "run_signature"),
    ("def run(*args, eps):", "run_signature"),
    ("def run(x, weight, out, *, eps, **more):", "run_signature"),
    ("async def run(x, weight, out, *, eps):", "run_missing"),
    ("def other(x, weight, out, *, eps):", "run_missing")])
def test_the_signature_is_the_operators(head: str, code: str) -> None:
    source = NUMBA_SOURCE.replace("def run(x, weight, out, *, eps):", head)
    assert code in {f.reason.code for f in check(source, NUMBA) if f.severity is Severity.BLOCK}


def test_a_literal_default_of_an_attribute_is_welcome() -> None:
    assert check(NUMBA_SOURCE.replace("*, eps)", "*, eps=1e-6)"), NUMBA) == ()


def test_no_kernel_at_all() -> None:
    source = "PARAMS = {}\n\n\ndef run(x, weight, out, *, eps):\n    return None\n"
    assert "no_kernel" in {f.reason.code for f in check(source, NUMBA)}


def test_params_outside_the_declaration_are_shown() -> None:
    found = check(NUMBA_SOURCE.replace("8}", "12}"), NUMBA)
    assert [(f.reason.code, f.severity, f.reason.line) for f in found] == [("params_undeclared", Severity.LOOK, 5)]


def test_unreadable_sources_give_their_one_finding() -> None:
    for source, code in (("def f(:\n", "syntax_error"), ("x\r\n", "source_characters"), ("(" * 99, "source_nesting"),
                         ("\ud800", "source_encoding")):
        assert [f.reason.code for f in check(source, NUMBA)] == [code]


def test_findings_are_few_sorted_and_known() -> None:
    source = source_with(NUMBA, "HOST", "\n".join(f"y{n} = eval('1')" for n in range(50)))
    found = check(source, NUMBA)
    assert 1 <= len(found) <= 20
    assert all(f.reason.code in CODES for f in found)
    order = list(Severity)
    assert [order.index(f.severity) for f in found] == sorted(order.index(f.severity) for f in found)


def test_a_table_of_params_is_read_as_the_baselines_read_it() -> None:
    lines = ('block, other = PARAMS["BLOCK"], PARAMS["BLOCK"]\n'
             'if isinstance(block, dict):\n    block = block["short"] if cols <= 1024 else block["long"]\n'
             'size = min(block, 4)')
    source = source_with(NUMBA, "HOST", lines).replace('"BLOCK": 8', '"BLOCK": {"short": 8, "medium": 8, "long": 16}')
    assert "kept_state" not in {finding.reason.code for finding in check(source, NUMBA)}


@pytest.mark.parametrize("line", ['block = PARAMS["BLOCK"]\nblock |= {"short": 1}', 'PARAMS["BLOCK"].update(short=1)',
                                  'block, other = PARAMS["BLOCK"], 1\nblock.pop("short")'])
def test_a_table_of_params_is_not_changed(line: str) -> None:
    source = source_with(NUMBA, "HOST", line).replace('"BLOCK": 8', '"BLOCK": {"short": 8, "medium": 8, "long": 16}')
    assert any(finding.severity is Severity.BLOCK for finding in check(source, NUMBA))
