"""Small candidates with places to put a construct, and what the static stage says about them."""

from __future__ import annotations

from harness.domain.vocabulary import Backend
from harness.evaluation.static.check import findings
from harness.evaluation.static.findings import Finding
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
