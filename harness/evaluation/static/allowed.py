"""The shape of an allowlist, one per backend."""

from __future__ import annotations

from dataclasses import dataclass

ATTRIBUTES_OF_CONTAINERS = frozenset({"get", "items", "keys", "values", "append", "extend", "insert", "pop", "update",
                                      "setdefault", "clear", "remove", "add", "sort", "reverse", "index", "join"})
MUTATING_METHODS = frozenset({"append", "extend", "insert", "pop", "update", "setdefault", "clear", "remove", "add",
                              "sort", "reverse"})

HOST_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "max",
    "min", "pow", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip",
    "AssertionError", "IndexError", "NotImplementedError", "RuntimeError", "TypeError", "ValueError",
})
MATH = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "comb", "copysign", "cos", "cosh", "degrees",
    "e", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fmod", "frexp", "gamma", "gcd", "hypot", "inf",
    "isclose", "isfinite", "isinf", "isnan", "isqrt", "lcm", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "modf",
    "nan", "pi", "pow", "prod", "radians", "remainder", "sin", "sinh", "sqrt", "tan", "tanh", "tau", "trunc", "ulp",
})


def words(text: str, prefix: str = "") -> frozenset[str]:
    """The words of ``text`` as a set, each behind ``prefix`` and a dot where one is given."""
    return frozenset(f"{prefix}.{word}" if prefix else word for word in text.split())


@dataclass(frozen=True, slots=True)
class Allowed:
    """What one backend's candidates may name.

    Paths are dotted and full (``triton.language.load``). ``modules`` may be imported; ``host`` paths may be used in
    ``run`` and its helpers, ``kernel`` paths in kernel bodies, both in constants; ``calls_at_import`` may be called at
    module level. ``*_attributes`` are attributes of values that are not modules. ``launch_options`` are keyword
    arguments of a launch beside the kernel's own parameters, ``decorator_options`` those of the jit decorator.
    """

    modules: frozenset[str]
    host: frozenset[str]
    kernel: frozenset[str]
    calls_at_import: frozenset[str]
    host_attributes: frozenset[str]
    kernel_attributes: frozenset[str]
    kernel_builtins: frozenset[str]
    decorators: frozenset[str]
    decorator_options: frozenset[str]
    launch_options: frozenset[str]
