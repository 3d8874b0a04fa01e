"""Timed outputs compared whole: missing rows are found for certain, and each side answers for its own."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backends.triton.launcher.requests import Apart
from harness.domain.errors import InfrastructureError
from harness.domain.goal import Limits, ToleranceOverride
from harness.domain.vocabulary import Comparison, Outcome, Stage
from harness.evaluation.poison import output_poison
from harness.evaluation.run import Refused
from harness.evaluation.timing.device import closeness
from harness.evaluation.timing.device.apart import MOST_DECIDED, decide, differences
from harness.evaluation.timing.device.closeness import absolute_for
from harness.evaluation.timing.device.contents import Factors
from harness.evaluation.timing.device.problem import problem_of
from harness.evaluation.timing.device.session import measure
from harness.evaluation.timing.device.shape import Shape
from harness.operators.base import ShapePoint
from harness.operators.implementation import load_implementation
from harness.operators.registry import get
from tests.harness.device_timing.device_model import Model, ModelDevice, plan, timed

POINTS = (ShapePoint("50x257", {"rows": 50, "cols": 257}, 0.6), ShapePoint("7x4099", {"rows": 7, "cols": 4099}, 0.4))
CACHES = (ShapePoint("B6", {"batch": 6, "q_heads": 4, "kv_heads": 2, "dim": 16, "max_seq": 70}, 1.0),)
PAIR = {"candidate": "mine", "baseline": "other"}


@pytest.fixture(autouse=True)
def quiet_host(tmp_path, monkeypatch):
    """Roofs and locks of this test alone."""
    monkeypatch.setenv("KERNELOPT_VAR", str(tmp_path / "var"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def model(**more):
    return Model({"mine": 200.0, "other": 250.0, "third": 300.0}, **more)


@pytest.mark.parametrize("operator", ["softmax", "rms_norm", "decode_attention"])
def test_honest_sides_that_round_differently_are_never_apart(operator):
    points = CACHES if operator == "decode_attention" else POINTS
    found = timed(PAIR, model(rounded=True), points=points, operator=operator)
    assert found.refused is None and found.run.comparison is Comparison.FASTER
    assert found.device.asked["compared"] == len(found.device.requests) == 6 * len(points)
    for request in found.device.requests:
        assert request.compared == ("candidate", "baseline") and request.near[0] == 2.0**-5


@pytest.mark.parametrize("instead", ["poison", "zeros", "neighbour"])
@pytest.mark.parametrize("operator", ["softmax", "rms_norm"])
def test_rows_left_out_under_the_clock_alone_are_found_although_none_of_them_is_kept(instead, operator):
    found = timed(PAIR, model(partial="mine", instead=instead), points=POINTS, operator=operator)
    assert found.run.stage is Stage.BENCHMARK  # in the screening already
    assert found.refused.outcome is Outcome.REWARD_HACK
    (reason,) = found.refused.reasons
    assert (reason.code, reason.case) == ("timed_output_wrong", "50x257")
    assert reason.got is not None and reason.expected is not None and len(reason.index) == 2
    assert "element(s) of 'out'" in reason.text and str(list(reason.index)) in reason.text


def test_an_opponent_that_is_wrong_is_its_own_affair():
    for wrong in ({"off": "other"}, {"partial": "other"}):
        with pytest.raises(InfrastructureError, match=r"baseline kernel.*Nothing was recorded against the candidate"):
            timed(PAIR, model(**wrong), points=POINTS)


def test_a_candidate_that_is_wrong_answers_for_it_also_where_the_opponent_is():
    found = timed(PAIR, model(partial="mine", off="other"), points=POINTS)
    assert found.refused.outcome is Outcome.REWARD_HACK


def test_the_opponent_that_counts_is_the_one_compared_with():
    found = timed({"candidate": "mine", "incumbent": "other", "baseline": "third"}, model(rounded=True), points=POINTS)
    assert {request.compared for request in found.device.requests} == {("candidate", "incumbent")}


def test_without_an_opponent_copies_that_differ_are_the_candidates_own():
    found = timed({"candidate": "mine"}, model(partial="mine", copies_differ=True), points=POINTS)
    assert (found.refused.outcome, found.refused.reasons[0].code) == (Outcome.REWARD_HACK, "timed_output_wrong")
    assert {request.compared for request in found.device.requests} == {("candidate", "again")}


def test_inputs_written_under_the_clock_are_charged_to_who_wrote_them():
    for sources in (PAIR, {"candidate": "mine"}):  # what is kept of the input is wrong then, too
        found = timed(sources, model(writes="mine", broken_inputs=True), points=POINTS)
        assert found.refused.outcome is Outcome.POLICY_VIOLATION
        assert [reason.code for reason in found.refused.reasons] == ["input_written"]
        assert "read-only" in found.refused.reasons[0].text
    with pytest.raises(InfrastructureError, match=r"baseline kernel.*wrote to its input"):
        timed(PAIR, model(writes="other"), points=POINTS)


def test_writes_outside_the_outputs_under_the_clock_are_charged_to_who_wrote_them():
    found = timed(PAIR, model(strays="mine"), points=POINTS)
    assert found.refused.outcome is Outcome.OUT_OF_BOUNDS
    assert [reason.code for reason in found.refused.reasons] == ["guard_broken"]
    with pytest.raises(InfrastructureError, match=r"baseline kernel.*wrote outside its arrays"):
        timed(PAIR, model(strays="other"), points=POINTS)


def test_a_session_without_an_evaluation_compares_too():
    device = ModelDevice(get("softmax"), model(partial="mine"))
    with pytest.raises(Refused) as caught:
        measure(device, get("softmax"), POINTS[0], {"candidate": (plan("mine"), ()), "opponent": (plan("other"), ())},
                rounds=1, pairs=4, source=random.Random(3), look=lambda uuid: None)
    assert caught.value.reasons[0].code == "timed_output_wrong"


def test_a_goals_own_tolerance_widens_what_is_close():
    plain = timed(PAIR, model(rounded=True), points=POINTS[:1])
    limits = Limits(tolerance=ToleranceOverride(0.05, "a test"))
    lax = timed(PAIR, model(rounded=True), points=POINTS[:1], limits=limits)
    assert lax.refused is None and lax.device.requests[0].near[1] > plain.device.requests[0].near[1]


@pytest.fixture(scope="module")
def shape():
    made = Shape(get("rms_norm"), ShapePoint("9x64", {"rows": 9, "cols": 64}, 1.0), dtype="bfloat16",
                 regimes=("normal",), seed=1, source=random.Random(1), stage="test")
    closeness.settle([made])
    yield made
    made.close()


@pytest.fixture(scope="module")
def factors():
    made = Factors(5, "apart")
    yield made
    made.close()


def asked(shape, factors):
    request = shape.round(factors, {"candidate": 0, "again": 1}, 2, l2_bytes=1 << 12, memory_bytes=1 << 30,
                          trusted="again")
    number = next(number for number, sweep in enumerate(request.sweeps) if sweep.flush)
    return request, number


class Answer:
    def __init__(self, *apart):
        self.apart = apart


def right_value(shape, factors, sweep, slot, index):
    """What the honest implementation leaves there, by the whole shape's contents."""
    stretches = dict(zip([item.name for item in shape.renewed],
                         shape.starts.stretches(sweep.starts[sweep.slots.index(slot)]), strict=True))
    _, inputs = problem_of(shape, range(9), stretches, factors.values)
    outputs = load_implementation(shape.spec).honest(inputs, shape.attributes)
    return float(outputs["out"].flatten()[index])


@settings(max_examples=25, deadline=None)
@given(index=st.integers(0, 9 * 64 - 1), judged=st.sampled_from(["right", "off", "nan", "poison"]),
       trusted=st.sampled_from(["right", "off", "nan"]), own=st.booleans())
def test_only_the_oracle_decides(shape, factors, index, judged, trusted, own):
    request, number = asked(shape, factors)
    sweep = request.sweeps[number]
    slot = sweep.slots[0]
    right = right_value(shape, factors, sweep, slot, index)
    raw = torch.tensor([output_poison("bfloat16", sweep.poison)], dtype=torch.int16)
    values = {"right": right, "off": right * 2 + 1, "nan": math.nan, "poison": float(raw.view(torch.bfloat16))}
    one = Apart(number, "out", slot, 3, index, values[judged], values[trusted])
    found = differences(shape, request, Answer(one))
    before = shape.near

    def decided():
        decide(found, factors.values, Stage.RECHECK, "baseline", own=own)

    if judged != "right" or (own and trusted != "right"):
        with pytest.raises(Refused) as caught:
            decided()
        (reason,) = caught.value.reasons
        assert caught.value.outcome is Outcome.REWARD_HACK and reason.index == (index // 64, index % 64)
        assert (reason.got == "not written") is (judged == "poison")
    elif trusted != "right":
        with pytest.raises(InfrastructureError, match="baseline"):
            decided()
    else:
        decided()
        assert shape.near >= before


def test_what_the_oracle_accepts_is_close_from_then_on(shape, factors):
    known, shape.near = shape.near, (0.0, 0.0)
    request, number = asked(shape, factors)
    slot = request.sweeps[number].slots[0]
    right = right_value(shape, factors, request.sweeps[number], slot, 70)
    one = Apart(number, "out", slot, 1, 70, right * (1 + 2.0**-9), right)
    shape.near = (closeness.RELATIVE["bfloat16"], 0.0)
    decide(differences(shape, request, Answer(one)), factors.values, Stage.RECHECK, "baseline", own=False)
    allowed = shape.near[0] * abs(right) + shape.near[1]
    assert abs(one.judged - one.trusted) <= allowed
    shape.near = known


def test_the_worst_few_of_a_round_are_decided(shape, factors):
    request, number = asked(shape, factors)
    slot = request.sweeps[number].slots[0]
    many = [Apart(number, "out", slot, count, 0, 0.0, 0.0) for count in (1, 9, 3, 7, 5)]
    assert [one.found.count for one in differences(shape, request, Answer(*many))] == [9, 7, 5][:MOST_DECIDED]


@pytest.mark.parametrize("wrong", [{"sweep": 99}, {"sweep": -1}, {"output": "x"}, {"slot": 10_000}, {"count": 0},
                                   {"count": 577}, {"index": 576}, {"index": -1}])
def test_elements_that_do_not_exist_are_the_launchers_fault(shape, factors, wrong):
    request, number = asked(shape, factors)
    good = {"sweep": number, "output": "out", "slot": request.sweeps[number].slots[0], "count": 1, "index": 0,
            "judged": 0.0, "trusted": 0.0}
    differences(shape, request, Answer(Apart(**good)))
    with pytest.raises(InfrastructureError):
        differences(shape, request, Answer(Apart(**{**good, **wrong})))
    unasked = shape.round(factors, {"candidate": 0}, 2, l2_bytes=1 << 12, memory_bytes=1 << 30, trusted="again")
    with pytest.raises(InfrastructureError):
        differences(shape, unasked, Answer(Apart(**good)))


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0, 10)), min_size=1, max_size=20),
       st.sampled_from(sorted(closeness.RELATIVE.values())))
def test_two_values_inside_the_bound_are_never_apart(elements, relative):
    values, bound = (torch.tensor(part, dtype=torch.float64) for part in zip(*elements, strict=True))
    absolute = absolute_for(values, bound, relative)
    for low, high in ((values - bound, values + bound), (values, values + bound)):
        size = torch.maximum(low.abs(), high.abs())
        assert bool(((high - low).abs() <= (relative * size + absolute) * (1 + 1e-12) + 1e-12).all())
    assert absolute <= 2 * float(bound.max())
