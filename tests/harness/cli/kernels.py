"""Small numba candidates for rms_norm, each wrong in one way."""

from __future__ import annotations

HEAD = """import math

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _row(x, weight, out, eps):
    rows, cols = x.shape
    for row in range(rows):
        total = np.float32(0.0)
        for col in range(cols):
            total += x[row, col] * x[row, col]
        scale = np.float32(1.0) / math.sqrt(total / np.float32(cols) + eps)
        for col in range(cols):
            out[row, col] = x[row, col] * scale * weight[col]
"""
RUN = """

def run(x, weight, out, *, eps):
    _row(x, weight, out, np.float32(eps))
"""
HONEST = HEAD + RUN
WRONG = HONEST.replace(" * weight[col]", "")
HANGING = HONEST.replace("        total = np.float32(0.0)\n", "        total = np.float32(0.0)\n"
                         "        spin = 1\n        while spin > 0:\n            spin = spin % 2 + 1\n")
SLOWER = HONEST.replace("        for col in range(cols):\n            total += x[row, col] * x[row, col]\n",
                        "        for again in range(4):\n"
                        "            part = np.float32(0.0)\n"
                        "            for col in range(cols):\n"
                        "                part += x[row, col] * x[row, col]\n"
                        "            total += part * np.float32(0.25)\n")
BEYOND = HONEST.replace("for col in range(cols):\n            out", "for col in range(cols + 8):\n            out")
CHEATING = HONEST.replace("import math\n", "import math\nimport gc\n")
CRASHING = HONEST.replace("    _row(x", "    assert x.shape[1] > 10**9, 'crashed on purpose'\n    _row(x")
SYNTAX = "def run(x, weight, out, *, eps)\n    pass\n"
NO_RUN = HEAD
ARITY = HONEST.replace("def run(x, weight, out, *, eps)", "def run(x, out, *, eps)")
COOKIE = "# -*- coding: latin-1 -*-\n" + HONEST
CONTROL = HONEST + "# \x07\n"
NESTED = HONEST + "A = " + "(" * 3000 + ")" * 3000 + "\n"
