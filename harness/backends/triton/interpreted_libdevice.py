"""The usual functions of libdevice for Triton's interpreter, which has none; the others say that they are missing.

float32 arguments are computed in float64 and rounded once, which is at least as exact as the device's functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime.interpreter import TensorHandle

UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log1p": np.log1p, "log10": np.log10, "sqrt": np.sqrt, "rsqrt": lambda x: 1.0 / np.sqrt(x), "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "abs": np.abs, "floor": np.floor, "ceil": np.ceil,
    "rint": np.rint, "trunc": np.trunc, "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]), "fast_expf": np.exp, "fast_logf": np.log,
    "fast_tanhf": np.tanh, "fast_sinf": np.sin, "fast_cosf": np.cos,
}
BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "pow": np.power, "fmod": np.fmod, "atan2": np.arctan2, "div_rn": np.divide,
    "fdim": lambda a, b: np.maximum(a - b, 0.0),
}


def install() -> None:
    """Fill the module that candidates import. Every public function becomes an implementation or says it is missing."""
    for name in [name for name in vars(libdevice) if not name.startswith("_")]:
        if callable(getattr(libdevice, name)):
            setattr(libdevice, name, _missing(name))
    functions: dict[str, Callable[..., np.ndarray]] = {**UNARY, **BINARY}
    for name, function in functions.items():
        if hasattr(libdevice, name):
            setattr(libdevice, name, _applied(name, function))


def _missing(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"libdevice.{name} is not interpreted")
    return refuse


def _applied(name: str, function: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def apply(*args: Any, _semantic: Any = None, **_: Any) -> Any:
        tensors = [arg for arg in args if isinstance(arg, tl.tensor)]
        if not tensors or any(t.dtype not in (tl.float32, tl.float64) for t in tensors):
            raise NotImplementedError(f"libdevice.{name} is interpreted on float32 and float64 tensors only")
        first = tensors[0]
        values = [np.asarray(arg.handle.data if isinstance(arg, tl.tensor) else getattr(arg, "value", arg), np.float64)
                  for arg in args]
        with np.errstate(all="ignore"):
            result = np.asarray(function(*values)).astype(first.handle.data.dtype)
        return tl.tensor(TensorHandle(result, first.dtype), first.type)
    return apply
