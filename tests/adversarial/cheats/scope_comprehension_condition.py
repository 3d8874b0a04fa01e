"""The same in a condition of a comprehension."""

import numba
import numpy as np

PARAMS = {}


@numba.njit
def _touch(x, out):
    if x.shape[0] < 0:
        out[0, 0] = x[0, 0]


def run(x, out):
    _ = {0: 0 for i in range(0) if (lambda a: (exec := a))(1)}
    exec("import numpy; globals()['NP'] = numpy")
    _touch(x, out)
