"""Each rule of the static stage, pinned to its code and line; honest code passes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.vocabulary import Backend
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import CODES, Finding, Severity
from harness.operators import registry

SPEC = registry.get("rms_norm")
NUMBA, TRITON = Backend.NUMBA, Backend.TRITON

NUMBA_SOURCE = '''import math
import numba
import numpy as np
#TOP
PARAMS = {"BLOCK": 8}


@numba.njit
def _kernel(x, weight, out, eps):
    for row in range(x.shape[0]):
        out[row, 0] = x[row, 0]
        #BODY


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    #HOST
    _kernel(x, weight, out, np.float32(eps))
'''
TRITON_SOURCE = '''import torch
import triton
import triton.language as tl
#TOP
PARAMS = {"BLOCK": 256, "num_warps": 4}


@triton.jit
def _kernel(x, weight, out, cols, eps, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    values = tl.load(x + offsets, mask=mask)
    #BODY
    tl.store(out + offsets, values, mask=mask)


def run(x, weight, out, *, eps):
    rows, cols = x.shape
    #HOST
    _kernel[(rows,)](x, weight, out, cols, eps, **PARAMS)
'''
SOURCES = {NUMBA: NUMBA_SOURCE, TRITON: TRITON_SOURCE}


def source_with(backend: Backend, place: str, line: str) -> str:
    text = SOURCES[backend]
    row = next(row for row in text.split("\n") if row.strip() == f"#{place}")
    indent = row[: len(row) - len(row.lstrip())]
    return text.replace(row, "\n".join(indent + part for part in line.split("\n")))


def check(source: str, backend: Backend, prohibited: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    return findings(source, SPEC, backend, prohibited)


CASES: list[tuple[Backend, str, str, str]] = [
    (NUMBA, "TOP", "import os", "import_not_allowed"),
    (NUMBA, "TOP", "from os import path", "import_not_allowed"),
    (NUMBA, "TOP", "from numba import *", "import_not_allowed"),
    (NUMBA, "TOP", "from . import other", "import_not_allowed"),
    (NUMBA, "TOP", "import numpy.linalg", "library_compute"),
    (NUMBA, "TOP", "from numba import objmode", "object_mode"),
    (NUMBA, "TOP", "import torch", "import_not_allowed"),
    (NUMBA, "TOP", "import numpy as numba", "redefinition"),
    (NUMBA, "TOP", "x = []\nx.append(1)", "module_statement"),
    (NUMBA, "TOP", "if True:\n    y = 1", "module_statement"),
    (NUMBA, "TOP", "class Box:\n    pass", "module_statement"),
    (NUMBA, "TOP", "buffer = np.zeros(4)", "module_state"),
    (NUMBA, "TOP", "ticks = iter(range(9))", "module_state"),
    (NUMBA, "TOP", "ticks = (n for n in (1, 2))", "module_state"),
    (NUMBA, "TOP", "pick = lambda: 1", "module_state"),
    (NUMBA, "TOP", "__builtins__ = {}", "private_name"),
    (NUMBA, "TOP", "async def other():\n    pass", "module_statement"),
    (NUMBA, "TOP", "@numba.vectorize\ndef other(x):\n    return x", "decorator_not_allowed"),
    (NUMBA, "TOP", "@numba.njit(cache=True)\ndef other(x):\n    return x", "numba_cache"),
    (NUMBA, "TOP", "@numba.njit('f4(f4)')\ndef other(x):\n    return x", "explicit_signature"),
    (NUMBA, "TOP", "@numba.jit(nopython=False)\ndef other(x):\n    return x", "object_mode"),
    (NUMBA, "TOP", "@numba.jit(forceobj=True)\ndef other(x):\n    return x", "object_mode"),
    (NUMBA, "TOP", "@numba.njit(locals={})\ndef other(x):\n    return x", "decorator_option"),
    (NUMBA, "TOP", "@numba.njit(**PARAMS)\ndef other(x):\n    return x", "decorator_option"),
    (NUMBA, "TOP", "def other(box=[]):\n    return box", "default_argument"),
    (NUMBA, "TOP", "def other(*, box={}):\n    return box", "default_argument"),
    (NUMBA, "HOST", "eval('1')", "forbidden_builtin"),
    (NUMBA, "HOST", "y = getattr(x, 'T')", "forbidden_builtin"),
    (NUMBA, "HOST", "y = globals()", "forbidden_builtin"),
    (NUMBA, "HOST", "y = [open(p) for p in ()]", "forbidden_builtin"),
    (NUMBA, "HOST", "y = type(x)", "forbidden_builtin"),
    (NUMBA, "HOST", "y = __builtins__", "private_name"),
    (NUMBA, "HOST", "y = x.__class__", "private_name"),
    (NUMBA, "HOST", "y = f'{x.__class__}'", "private_name"),
    (NUMBA, "HOST", "y = '{0.__class__}'.format(x)", "attribute_not_allowed"),
    (NUMBA, "HOST", "y = np", "module_as_value"),
    (NUMBA, "HOST", "y = x.base", "attribute_not_allowed"),
    (NUMBA, "HOST", "y = x.ctypes", "address"),
    (NUMBA, "HOST", "y = np.dot(x, x)", "library_compute"),
    (NUMBA, "HOST", "y = np.random.rand()", "name_not_allowed"),
    (NUMBA, "HOST", "y = np.load('a')", "name_not_allowed"),
    (NUMBA, "HOST", "y = x * 2", "host_array_math"),
    (NUMBA, "HOST", "y = -x[1:]", "host_array_math"),
    (NUMBA, "HOST", "x += 1", "host_array_math"),
    (NUMBA, "HOST", "out[:] = x", "host_array_math"),
    (NUMBA, "HOST", "z = out[0]\nz[...] = 1.0", "host_array_math"),
    (NUMBA, "HOST", "y = x @ x", "library_compute"),
    (NUMBA, "HOST", "y = x[0, 0]", "host_read"),
    (NUMBA, "HOST", "y = weight[0]", "host_read"),
    (NUMBA, "HOST", "y = float(x[0, 0])", "host_read"),
    (NUMBA, "HOST", "y = sum(weight)", "host_read"),
    (NUMBA, "HOST", "for value in weight:\n    pass", "host_read"),
    (NUMBA, "HOST", "y = x.item()", "host_read"),
    (NUMBA, "HOST", "run.calls = 1", "attribute_store"),
    (NUMBA, "HOST", "PARAMS['BLOCK'] = 1", "params_rebound"),
    (NUMBA, "HOST", "p = PARAMS\np['BLOCK'] = 1", "host_array_math"),
    (NUMBA, "HOST", "p = PARAMS\np.update(BLOCK=1)", "kept_state"),
    (NUMBA, "HOST", "global counter", "global_state"),
    (NUMBA, "HOST", "def inner():\n    nonlocal rows\n    rows = 1", "global_state"),
    (NUMBA, "HOST", "def inner(box=[]):\n    return box", "default_argument"),
    (NUMBA, "HOST", "pick = lambda box=[]: box", "default_argument"),
    (NUMBA, "HOST", "import os", "nested_import"),
    (NUMBA, "HOST", "try:\n    pass\nexcept ValueError:\n    pass", "exception_handling"),
    (NUMBA, "HOST", "with x:\n    pass", "syntax_not_allowed"),
    (NUMBA, "HOST", "yield", "kept_state"),
    (NUMBA, "HOST", "while True:\n    pass", "unbounded_loop"),
    (NUMBA, "HOST", "while rows > 0:\n    cols = 1", "unbounded_loop"),
    (NUMBA, "HOST", "print(rows)", "print_call"),
    (NUMBA, "HOST", "np = 1", "shadows_import"),
    (NUMBA, "HOST", "pick = lambda math: math", "shadows_import"),
    (NUMBA, "HOST", "_kernel.py_func(x, weight, out, eps)", "kernel_attribute"),
    (NUMBA, "HOST", "match rows:\n    case 1:\n        pass", "syntax_not_allowed"),
    (NUMBA, "HOST", "@numba.njit\ndef inner():\n    pass", "decorator_not_allowed"),
    (NUMBA, "BODY", "y = np.dot(x, x)", "library_compute"),
    (NUMBA, "BODY", "y = np.linalg.norm(x)", "library_compute"),
    (NUMBA, "BODY", "y = x @ x", "library_compute"),
    (NUMBA, "BODY", "with numba.objmode():\n    pass", "object_mode"),
    (NUMBA, "BODY", "y = numba.carray(x, 1)", "name_not_allowed"),
    (NUMBA, "BODY", "y = open('a')", "forbidden_builtin"),
    (NUMBA, "BODY", "y = x.ctypes", "address"),
    (NUMBA, "BODY", "y = lambda: 1", "syntax_not_allowed"),
    (NUMBA, "BODY", "print(row)", "print_call"),
    (NUMBA, "BODY", "while True:\n    row += 1", "unbounded_loop"),
    (TRITON, "TOP", "import os", "import_not_allowed"),
    (TRITON, "TOP", "import numpy as np", "import_not_allowed"),
    (TRITON, "TOP", "import torch.nn.functional as F", "library_compute"),
    (TRITON, "TOP", "from torch import nn", "library_compute"),
    (TRITON, "TOP", "from triton import autotune", "autotune"),
    (TRITON, "TOP", "from triton.language import core", "import_not_allowed"),
    (TRITON, "TOP", "torch.backends.cuda.matmul.allow_tf32 = True", "attribute_store"),
    (TRITON, "TOP", "@triton.jit(debug=True)\ndef other(x):\n    pass", "decorator_option"),
    (TRITON, "TOP", "@triton.heuristics(PARAMS)\n@triton.jit\ndef other(x):\n    pass", "decorator_option"),
    (TRITON, "TOP", "@triton.heuristics({'A': lambda args: open('x')})\n@triton.jit\ndef other(x, A):\n    pass",
     "forbidden_builtin"),
    (TRITON, "HOST", "y = torch.softmax(x, -1)", "library_compute"),
    (TRITON, "HOST", "y = torch.matmul", "library_compute"),
    (TRITON, "HOST", "y = torch.cuda.Stream()", "name_not_allowed"),
    (TRITON, "HOST", "y = torch.cuda.CUDAGraph()", "name_not_allowed"),
    (TRITON, "HOST", "y = x.data_ptr()", "address"),
    (TRITON, "HOST", "y = x.sum()", "library_compute"),
    (TRITON, "HOST", "y = x.to(torch.float32)", "library_compute"),
    (TRITON, "HOST", "y = x.cpu()", "host_read"),
    (TRITON, "HOST", "y = x.max().item()", "library_compute"),
    (TRITON, "HOST", "out.copy_(x)", "library_compute"),
    (TRITON, "HOST", "y = tl.load", "name_not_allowed"),
    (TRITON, "HOST", "y = triton.testing.do_bench(run)", "name_not_allowed"),
    (TRITON, "HOST", "_kernel.warmup(x, grid=(1,))", "kernel_attribute"),
    (TRITON, "HOST", "_kernel[(1,)](x, weight, out, cols, eps, BLOCK=16, extern_libs={})", "launch_option"),
    (TRITON, "HOST", "y = triton.jit(run)", "name_not_allowed"),
    (TRITON, "HOST", "k = _kernel\nk[(1,)](x, weight, out, cols, eps, BLOCK=16, ir_override='a')", "launch_option"),
    (TRITON, "HOST", "k = _kernel[(1,)]", "launch_option"),
    (TRITON, "HOST", "(lambda k: k)(_kernel)[(1,)](x, ir_override='a')", "launch_option"),
    (TRITON, "HOST", "o = {'ir_override': 'a'}\n_kernel[(1,)](x, weight, out, cols, eps, **o)", "launch_option"),
    (TRITON, "HOST", "o = {}\no['debug'] = True\n_kernel[(1,)](x, weight, out, cols, eps, **o)", "launch_option"),
    (TRITON, "HOST", "o = {str(rows): 1}\n_kernel[(1,)](x, weight, out, cols, eps, **o)", "launch_option"),
    (TRITON, "HOST", "o = {}\no |= {'debug': True}\n_kernel[(1,)](x, weight, out, cols, eps, **o)", "launch_option"),
    (TRITON, "HOST", "o = {}\no, p = PARAMS, 1\n_kernel[(1,)](x, weight, out, cols, eps, **o)", "launch_option"),
    (TRITON, "HOST", "o = {v: 1 for v in PARAMS.values()}\n_kernel[(1,)](x, weight, out, cols, eps, **o)",
     "launch_option"),
    (TRITON, "HOST", "o = {b: 1 for a in PARAMS for b in ('debug',)}\n"
                     "_kernel[(1,)](x, weight, out, cols, eps, **o)", "launch_option"),
    (TRITON, "HOST", "y = x.type('torch.HalfTensor')", "library_compute"),
    (TRITON, "TOP", "@triton.heuristics({'A': lambda args: \"\"\"\ndef other(x, A):\n    pass\n\"\"\"})\n"
                    "@triton.jit\ndef other(x, A):\n    pass", "decorator_option"),
    (NUMBA, "HOST", "a, b = x, out\na += b", "host_array_math"),
    (NUMBA, "HOST", "for a in (x, out):\n    a *= 2", "host_array_math"),
    (NUMBA, "HOST", "def scale(a):\n    return a * 2\nscale(x)", "host_array_math"),
    (NUMBA, "HOST", "scale = lambda a: a * 2\nscale(x)", "host_array_math"),
    (NUMBA, "HOST", "y = [x, 1]\nz = y[0] * 2", "host_array_math"),
    (NUMBA, "HOST", "y = []\ny.append(x)\nz = y[0] * 2", "host_array_math"),
    (NUMBA, "HOST", "y = x if rows else out\ny *= 2", "host_array_math"),
    (NUMBA, "HOST", "y = [a * 2 for a in (x,)]", "host_array_math"),
    (NUMBA, "HOST", "y = math.prod(weight)", "host_read"),
    (NUMBA, "HOST", "y = f'{x}'", "host_read"),
    (TRITON, "BODY", "tl.core.inspect.os.system('true')", "name_not_allowed"),
    (TRITON, "BODY", "y = tl.core", "name_not_allowed"),
    (TRITON, "BODY", "y = tl.math", "module_as_value"),
    (TRITON, "BODY", "y = tl.load.__globals__", "private_name"),
    (TRITON, "BODY", "y = values.handle", "attribute_not_allowed"),
    (TRITON, "BODY", "y = torch.empty(1)", "name_not_allowed"),
    (TRITON, "BODY", "tl.device_print('x', values)", "print_call"),
    (TRITON, "BODY", "y = __import__('os')", "private_name"),
    (TRITON, "BODY", "y = {1: 2}", "syntax_not_allowed"),
    # what would tell a stand-in from a tensor, or a patched function from the original
    (TRITON, "HOST", "y = x.type()", "attribute_not_allowed"),
    (TRITON, "HOST", "y = torch.empty(1, device=x.device).type()", "attribute_not_allowed"),
    (TRITON, "HOST", "f = x.type", "attribute_not_allowed"),
    (TRITON, "HOST", "y = 'StandIn' in f'{x.stride}'", "attribute_not_allowed"),
    (TRITON, "HOST", "y = len(str(x.index))", "attribute_not_allowed"),
    (TRITON, "HOST", "y = '%s' % torch.empty", "attribute_not_allowed"),
    (TRITON, "HOST", "y = f'{torch.cuda.get_device_properties}'", "attribute_not_allowed"),
    (TRITON, "HOST", "e = torch.empty\ny = str(e)", "attribute_not_allowed"),
    (TRITON, "HOST", "y = [str(e) for e in (torch.empty, torch.zeros)]", "attribute_not_allowed"),
    (TRITON, "HOST", "y = f'{run} {_kernel}'", "attribute_not_allowed"),
    (NUMBA, "HOST", "y = str(x.reshape)", "attribute_not_allowed"),
    (TRITON, "BODY", "y = isinstance(BLOCK, tl.constexpr)", "type_branch"),
    (TRITON, "HOST", "y = str(torch.cuda.get_device_properties(x.device))", "attribute_not_allowed"),
    (TRITON, "HOST", "p = torch.cuda.get_device_properties(0)\ny = f'{p}'", "attribute_not_allowed"),
    (TRITON, "HOST", "p = torch.cuda.get_device_properties(0)\nq = p\ny = p == q", "attribute_not_allowed"),
    (TRITON, "HOST", "y = triton.cdiv is triton.next_power_of_2", "attribute_not_allowed"),
    (TRITON, "HOST", "grid = lambda meta: (len(str(meta['x'])),)", "attribute_not_allowed"),
    (TRITON, "HOST", "grid = lambda meta: (len(f'{meta}'),)", "attribute_not_allowed"),
    (TRITON, "HOST", "def grid(meta):\n    return (len(str(meta['x'])),)\ng = grid", "attribute_not_allowed"),
    (TRITON, "HOST", "y = _kernel[(1,)](x, weight, out, cols, eps, **PARAMS)", "launch_option"),
    (TRITON, "HOST", "if _kernel[(1,)](x, weight, out, cols, eps, **PARAMS) is None:\n    rows = 1", "launch_option"),
    # reading values, or computing, in other words
    (NUMBA, "HOST", "w = weight\ny = tuple(w)", "host_read"),
    (NUMBA, "HOST", "w = weight[1:]\nfor value in w:\n    pass", "host_read"),
    (NUMBA, "HOST", "def first(a):\n    return [v for v in a]\nfirst(weight)", "host_read"),
    (NUMBA, "HOST", "a, *b = weight", "host_read"),
    (NUMBA, "HOST", "y = [*weight]", "host_read"),
    (NUMBA, "HOST", "y = max(*weight)", "host_read"),
    (NUMBA, "HOST", "if weight:\n    rows = 1", "host_read"),
    (NUMBA, "HOST", "y = 1 if weight else 2", "host_read"),
    (NUMBA, "HOST", "y = not weight", "host_read"),
    (NUMBA, "HOST", "y = weight[1:2] and 3", "host_read"),
    (NUMBA, "HOST", "y = np.empty(weight).shape", "host_read"),
    (NUMBA, "HOST", "y = np.zeros(shape=weight).shape", "host_read"),
    (NUMBA, "HOST", "y = x.reshape(weight).shape", "host_read"),
    (NUMBA, "HOST", "y = np.ndarray(weight).shape", "host_read"),
    (NUMBA, "HOST", "y = np.int32(x)", "library_compute"),
    (NUMBA, "HOST", "y = np.bool_(x[1:])", "library_compute"),
    (TRITON, "HOST", "y = torch.Size(weight)", "host_read"),
    (TRITON, "HOST", "y = torch.empty(weight)", "host_read"),
    (TRITON, "HOST", "y = torch.Tensor(weight)", "host_read"),
    # library compute under other names
    (TRITON, "TOP", "from torch import softmax as helper", "import_not_allowed"),
    (TRITON, "TOP", "from torch.nn.functional import rms_norm", "library_compute"),
    (TRITON, "TOP", "COMPUTE = torch.softmax", "library_compute"),
    (TRITON, "TOP", "COMPUTE = {'a': torch.ops.aten.mm}", "library_compute"),
    (TRITON, "HOST", "y = torch.Tensor.softmax(x, -1)", "library_compute"),
    (TRITON, "HOST", "y = torch.Tensor.__matmul__(x, x)", "private_name"),
    (TRITON, "HOST", "y = x.mT @ x", "library_compute"),
    (TRITON, "HOST", "out[:] = x", "host_array_math"),
    (TRITON, "HOST", "torch.add(x, x, out=out)", "library_compute"),
    (NUMBA, "TOP", "COMPUTE = np.linalg.norm", "library_compute"),
    (NUMBA, "HOST", "y = np.add.reduce(x)", "name_not_allowed"),
    (NUMBA, "BODY", "y = np.matmul(x, x)", "library_compute"),
    # numeric state of the process
    (TRITON, "HOST", "torch.set_float32_matmul_precision('high')", "name_not_allowed"),
    (TRITON, "HOST", "torch.backends.cudnn.allow_tf32 = True", "attribute_store"),
    (TRITON, "HOST", "torch.set_default_dtype(torch.float16)", "name_not_allowed"),
    (TRITON, "HOST", "torch.use_deterministic_algorithms(False)", "name_not_allowed"),
    (NUMBA, "HOST", "np.seterr(all='ignore')", "library_compute"),
]


@pytest.mark.parametrize(("backend", "place", "line", "code"), CASES,
                         ids=[f"{c[0]}-{c[1]}-{c[2][:40]!r}" for c in CASES])
def test_blocked(backend: Backend, place: str, line: str, code: str) -> None:
    source = source_with(backend, place, line)
    found = [f.reason for f in check(source, backend) if f.severity is Severity.BLOCK]
    assert code in {reason.code for reason in found}
    first = [row.strip() for row in SOURCES[backend].split("\n")].index(f"#{place}") + 1
    lines = [reason.line for reason in found if reason.code == code]
    assert any(first <= (number or 0) <= first + line.count("\n") + (2 if code == "redefinition" else 0)
               for number in lines)


@pytest.mark.parametrize("backend", list(Backend))
def test_the_frames_of_these_cases_are_clean(backend: Backend) -> None:
    assert check(SOURCES[backend], backend) == ()


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
    (NUMBA, "HOST", "y = no_such_name", "undefined_name"),
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
