"""What an operator must declare before it may register. Pure; reads only the operator's own folder."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping

from harness.domain.errors import HarnessError
from harness.domain.parsing import syntax_tree
from harness.domain.vocabulary import Backend
from harness.operators.base import Dims, OperatorSpec, ShapePoint

CASES_AT_LEAST = 12
WRONG_AT_LEAST = 6
IMPLEMENTATION = ("make_inputs", "reference", "magnitude", "honest", "libraries", "relations", "exact_probes")


class IncompleteOperator(HarnessError):
    """An operator's declaration has gaps; ``missing`` names each of them."""

    code = "operator_incomplete"

    def __init__(self, name: str, missing: tuple[str, ...]) -> None:
        super().__init__(
            f"Operator {name!r} does not register: {'; '.join(missing)}. Complete its spec.py and try again."
        )
        self.missing = missing


def missing_parts(spec: OperatorSpec) -> tuple[str, ...]:
    """Sentences naming every gap of ``spec``; empty when it may register."""
    parts = (_text, _signature, _workloads, _cases, _domain, _tuning, _files)
    return tuple(gap for part in parts for gap in part(spec))


def _text(spec: OperatorSpec) -> Iterator[str]:
    for key in ("name", "version", "title", "formula", "semantics"):
        if not getattr(spec, key).strip():
            yield f"{key} is empty"


def _signature(spec: OperatorSpec) -> Iterator[str]:
    if not spec.inputs:
        yield "no input argument"
    if not spec.outputs:
        yield "no output argument"
    kinds = [argument.kind for argument in spec.arguments]
    if kinds != sorted(kinds):
        yield "outputs come before inputs in the signature"


def _workloads(spec: OperatorSpec) -> Iterator[str]:
    if not spec.workloads:
        yield "no workload"
    for name, workload in spec.workloads.items():
        for backend in Backend:
            shapes = workload.shapes.get(backend, ())
            if not shapes:
                yield f"workload {name} has no shapes for {backend}"
            elif not math.isclose(sum(point.weight for point in shapes), 1.0):
                yield f"weights of workload {name} on {backend} do not sum to 1"
            dtype = workload.dtypes.get(backend)
            if dtype is None:
                yield f"workload {name} has no dtype for {backend}"
            elif dtype not in spec.tolerances:
                yield f"no tolerance for {dtype}"
        if not workload.regimes:
            yield f"workload {name} has no value regimes"
    for dtype, tolerance in spec.tolerances.items():
        if not tolerance.reason.strip():
            yield f"the tolerance for {dtype} has no reason"


def _cases(spec: OperatorSpec) -> Iterator[str]:
    if len(spec.cases) < CASES_AT_LEAST:
        yield f"{len(spec.cases)} correctness cases, at least {CASES_AT_LEAST} are needed"
    for label, cases in (("case", spec.cases), ("interpreted case", spec.interpret_cases)):
        if not any(case.smoke for case in cases):
            yield f"no {label} is marked for smoke"
        names = [case.name for case in cases]
        if len(set(names)) != len(names):
            yield f"two {label}s share a name"
        yield from (f"{label} {case.name} has no reason" for case in cases if not case.reason.strip())
        dtypes = {case.dtype for case in cases if case.dtype} - set(spec.tolerances)
        yield from (f"no tolerance for {dtype}" for dtype in sorted(dtypes))
    if not any(case.layout == "strided" for case in spec.cases) and any(a.strided for a in spec.inputs):
        yield "no strided case although an input may be strided"


def _domain(spec: OperatorSpec) -> Iterator[str]:
    """A dimension that no draw varies is one that only the listed sizes are right for."""
    dims = dict.fromkeys(dim for argument in spec.arguments for dim in argument.dims)
    yield from (f"the domain lacks {dim}" for dim in dims if dim not in spec.domain)
    known: set[str] = set()
    for dim, span in spec.domain.items():
        if not 1 <= span.low <= span.high:
            yield f"the domain of {dim} is empty"
        if span.times is not None and span.times not in known:
            yield f"{dim} is a multiple of {span.times}, which the domain does not name before it"
        if span.within is not None and span.within not in known:
            yield f"{dim} is within {span.within}, which the domain does not name before it"
        known.add(dim)
    sized = [(one.name, one.dim) for one in spec.attributes if one.dim is not None]
    points = [point for workload in spec.workloads.values() for shapes in workload.shapes.values() for point in shapes]
    for name, dim in sized:
        yield from (f"{name} of {place!r} is not its size of {dim}"
                    for place, dims, given in _places(spec, points) if given.get(name) != dims.get(dim))


def _places(spec: OperatorSpec, points: list[ShapePoint]) -> Iterator[tuple[str, Dims, Mapping[str, float]]]:
    yield from ((case.name, case.dims, case.attributes) for case in (*spec.cases, *spec.interpret_cases))
    yield from ((point.label, point.dims, point.attributes) for point in points)


def _tuning(spec: OperatorSpec) -> Iterator[str]:
    for backend in Backend:
        if not any(backend in tunable.backends for tunable in spec.tunables):
            yield f"no tunable key for {backend}"
    for tunable in spec.tunables:
        if not tunable.choices and tunable.low > tunable.high:
            yield f"the range of tunable {tunable.key} is empty"
    if spec.buckets is None:
        yield "no shape buckets"
    elif not spec.buckets.bounds or spec.buckets.bounds[-1][1] is not None:
        yield "the last shape bucket is not open"
    if spec.tile is None:
        yield "no tile formula for feasibility"


def _files(spec: OperatorSpec) -> Iterator[str]:
    implementation = spec.folder / "implementation.py"
    if not implementation.is_file():
        yield "implementation.py is missing"
    else:
        tree = syntax_tree(implementation.read_text("utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        defined |= {name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
        yield from (f"implementation.py lacks {name}()" for name in IMPLEMENTATION if name not in defined)
    for backend in Backend:
        if not (spec.folder / "baselines" / f"{backend}.py").is_file():
            yield f"the {backend} baseline is missing"
        wrong = [kernel for kernel in spec.wrong_kernels if kernel.backend == backend]
        if len({kernel.failure for kernel in wrong}) < WRONG_AT_LEAST:
            yield f"fewer than {WRONG_AT_LEAST} failure classes have a wrong {backend} kernel"
        for kernel in wrong:
            if not (spec.folder / "wrong" / backend / f"{kernel.name}.py").is_file():
                yield f"wrong/{backend}/{kernel.name}.py is missing"
