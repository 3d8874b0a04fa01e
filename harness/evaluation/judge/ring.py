"""Fresh inputs for timing and the verification of randomly chosen timed calls."""

from __future__ import annotations

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Stage
from harness.evaluation.judge.checking import check
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.judge.oracle import expect
from harness.operators.base import OperatorSpec, ShapePoint


def fresh_inputs(
    spec: OperatorSpec,
    point: ShapePoint,
    dtype: str,
    regimes: tuple[str, ...],
    seed: int,
    slots: int,
    *labels: object,
) -> list[Lending]:
    """``slots`` lendings of one measured shape, each with its own contents and poisoned outputs.

    The regimes are mixed within every tensor; arguments that do not change per call (a weight) are the same in all
    slots. Equal ``seed`` and ``labels`` give equal contents. Close every lending after use.
    """
    attributes = all_attributes(spec, point.attributes)
    lendings: list[Lending] = []
    try:
        for slot in range(slots):
            inputs = make_inputs(spec, point.dims, regimes, attributes, dtype, seed, "ring", *labels, slot)
            if lendings:
                constant = {a.name: lendings[0].inputs[a.name] for a in spec.inputs if not a.per_call}
                inputs |= constant
            lendings.append(Lending(spec, inputs, attributes, dtype))
    except BaseException:
        for lending in lendings:
            lending.close()
        raise
    return lendings


def verify_outputs(
    lending: Lending, stage: Stage, label: str | None = None, relative: float | None = None
) -> list[Reason]:
    """Judge what a timed call left in its slot, by the same oracle and bound as the correctness stage.

    ``relative`` is a goal's own tolerance. Empty when right. Raises ``InvalidReference`` when the reference
    itself fails.
    """
    dims = {
        dim: size
        for item, argument in zip(lending.lent, lending.spec.arguments, strict=True)
        for dim, size in zip(argument.dims, item.shape, strict=True)
    }
    answers = expect(lending.spec, dims, lending.inputs, lending.attributes, lending.dtype, relative)
    return check(lending, answers, stage, label).reasons
