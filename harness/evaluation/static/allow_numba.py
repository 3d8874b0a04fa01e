"""The allowlist of numba candidates (CONTRACTS section 7)."""

from __future__ import annotations

from harness.evaluation.static.allowed import ATTRIBUTES_OF_CONTAINERS, MATH, Allowed, words

_DTYPES = ("float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ intp uintp")
_CREATE = "empty zeros empty_like zeros_like"
_KERNEL_NUMPY = (
    "ones full ones_like full_like arange abs absolute add all amax amin any arccos arcsin arctan arctan2 argmax "
    "argmin bitwise_and bitwise_or bitwise_xor ceil clip copysign cos cosh cumsum deg2rad divide e equal exp exp2 "
    "expm1 fabs floor floor_divide fmax fmin greater greater_equal heaviside hypot inf invert isfinite isinf isnan "
    "ldexp left_shift less less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor "
    "max maximum mean min minimum mod multiply nan nanmax nanmin nansum negative newaxis nextafter not_equal pi power "
    "prod rad2deg reciprocal remainder right_shift rint round sign signbit sin sinh sqrt square std subtract sum tan "
    "tanh true_divide trunc var where")

_MATH = frozenset(f"math.{name}" for name in MATH)
_THREADS = words("get_num_threads get_thread_id", "numba")

ALLOWED = Allowed(
    modules=frozenset({"numba", "numpy", "math"}),
    host=words(_DTYPES, "numpy") | words(_CREATE, "numpy")
    | words("pi e inf nan newaxis ndarray finfo iinfo", "numpy")
    | _MATH | _THREADS,
    kernel=words(_DTYPES, "numpy") | words(_CREATE, "numpy") | words(_KERNEL_NUMPY, "numpy") | _MATH | _THREADS
    | words("prange literal_unroll", "numba") | words(_DTYPES.replace("bool_", "boolean"), "numba"),
    calls_at_import=_MATH | words(_DTYPES, "numpy"),
    host_attributes=ATTRIBUTES_OF_CONTAINERS | words(
        "shape strides size ndim dtype itemsize nbytes T reshape transpose view eps tiny bits"),
    kernel_attributes=words(
        "shape strides size ndim dtype itemsize T reshape transpose view astype copy ravel flatten fill sum "
        "prod min max mean argmin argmax any all append"),
    kernel_builtins=frozenset({"abs", "bool", "complex", "divmod", "enumerate", "float", "int", "len", "list", "max",
                               "min", "pow", "range", "reversed", "round", "slice", "sum", "tuple", "zip",
                               "AssertionError", "IndexError", "ValueError", "RuntimeError"}),
    decorators=frozenset({"numba.njit", "numba.jit"}),
    decorator_options=frozenset({"parallel", "fastmath", "nogil", "boundscheck", "inline", "error_model", "nopython"}),
    launch_options=frozenset(),
)
