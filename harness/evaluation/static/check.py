"""All static checks in one call."""

from __future__ import annotations

from harness.domain.errors import SourceError
from harness.domain.vocabulary import Backend
from harness.evaluation.source.intake import parse, read_source
from harness.evaluation.source.params import key_lines, problems, read_params
from harness.evaluation.source.steps import analysed, bounded
from harness.evaluation.source.structure import read_structure
from harness.evaluation.static.bindings import check_bindings
from harness.evaluation.static.calls import check_calls
from harness.evaluation.static.candidate import Candidate
from harness.evaluation.static.compiled import check_compiled
from harness.evaluation.static.findings import CODES, Finding, Report
from harness.evaluation.static.hostdata import check_host_data
from harness.evaluation.static.launches import check_launches
from harness.evaluation.static.loops import check_loops
from harness.evaluation.static.memory import check_masks
from harness.evaluation.static.modules import check_modules
from harness.evaluation.static.names import check_names
from harness.evaluation.static.numeric import check_numeric
from harness.evaluation.static.objects import check_objects
from harness.evaluation.static.races import check_races
from harness.evaluation.static.shapes import check_shapes
from harness.evaluation.static.shared_objects import check_shared_objects
from harness.evaluation.static.signature import check_signature
from harness.evaluation.static.state import check_state
from harness.evaluation.static.syntax import check_syntax
from harness.operators.base import OperatorSpec

_CHECKS = (check_modules, check_signature, check_syntax, check_bindings, check_names, check_state,
           check_shared_objects, check_calls, check_launches, check_host_data,
           check_objects, check_loops, check_races, check_masks, check_numeric, check_shapes, check_compiled)


def findings(source: str, spec: OperatorSpec, backend: Backend,
             prohibited: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Everything the static checks have to say about ``source``, blocking findings first.

    ``prohibited`` are the goal's prohibitions. A source that cannot be read or parsed gives its one finding, and so
    does one whose analysis takes too many steps or fails: nothing but the text decides about that, so it blocks.
    """
    report = Report()
    try:
        with bounded(), analysed():
            _read(source, spec, backend, prohibited, report)
    except SourceError as error:
        report.add(error.code if error.code in CODES else "source_unreadable", error.text, error.line)
    return report.findings()


def _read(source: str, spec: OperatorSpec, backend: Backend, prohibited: tuple[str, ...], report: Report) -> None:
    tree = parse(read_source(source.encode("utf-8", "surrogatepass")))
    found = read_structure(tree, backend)
    try:
        params = read_params(tree)
    except SourceError as error:
        report.add(error.code, error.text, error.line)
    else:
        for problem in problems(params, spec, backend, key_lines(tree)):
            report.add("params_undeclared", f"{problem.text} Such a change is heavy.", problem.line)
    candidate = Candidate(found, spec, tuple(prohibited), report)
    for check in _CHECKS:
        check(candidate)
