"""Reading a source ends, whatever the source: in bounded work, in a finding, in a text that can be written."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.evaluate import serve
from harness.domain.codec import to_document
from harness.domain.digest import canonical_json
from harness.domain.errors import InfrastructureError, SourceError
from harness.domain.verdict import Reason, TierReason, Verdict
from harness.domain.vocabulary import Backend, Blame, Outcome, Stage
from harness.domain.words import REASON_KEPT, plain, quoted
from harness.evaluation import admit, arithmetic, pipeline
from harness.evaluation.run import Run
from harness.evaluation.source import steps
from harness.evaluation.source.normal_form import normal_digest
from harness.evaluation.source.params import read_params
from harness.evaluation.source.tier import classify
from harness.evaluation.static import stage as static_stage
from harness.evaluation.static.check import findings
from harness.operators import registry
from tests.harness.static.test_static_stage import BASELINE, SPEC, make_run

NUMBA = """import numba

PARAMS = {params}


@numba.njit
def _k(x, weight, out, eps):
    out[0, 0] = x[0, 0]


def run(x, weight, out, *, eps):
{body}
    _k(x, weight, out, eps)
"""
TRITON = """import triton
import triton.language as tl

PARAMS = {{}}


@triton.jit
def _k(x, out):
    tl.store(out, tl.load(x))


def run(x, weight, out, *, eps):
{body}
    _k[(1,)](x, out, **{last})
"""


def numba(*body: str, params: str = "{}") -> str:
    return NUMBA.format(params=params, body="\n".join(f"    {line}" for line in body))


def triton(*body: str, last: str) -> str:
    return TRITON.format(body="\n".join(f"    {line}" for line in body), last=last)


def codes(source: str, backend: Backend = Backend.NUMBA, *prohibited: str) -> set[str]:
    return {finding.reason.code for finding in findings(source, SPEC, backend, prohibited)}


def steps_of(source: str, backend: Backend, *prohibited: str) -> int:
    with steps.bounded():
        findings(source, SPEC, backend, prohibited)
        left = steps.steps_left()
    assert left is not None
    return steps.MAX_STEPS - left


def conditions(count: int) -> str:
    return numba("n = x.shape[1]", *(f"if n > {i}: n = n - 1" for i in range(count)))


def doubled(count: int) -> str:
    rows = [f"a{i + 1} = {{**a{i}, **a{i}}}" for i in range(count)]
    return triton('a0 = {"num_warps": 4}', *rows, last=f"a{count}")


def test_a_row_of_conditions_costs_what_it_is_long() -> None:
    assert "prohibited" not in codes(conditions(60), Backend.NUMBA, "split kernels")
    assert steps_of(conditions(60), Backend.NUMBA, "split kernels") < 3 * steps_of(
        conditions(30), Backend.NUMBA, "split kernels")


def test_options_that_double_are_read_once_a_name() -> None:
    assert not {"launch_option", "source_too_complex"} & codes(doubled(40), Backend.TRITON)
    assert "launch_option" in codes(doubled(40).replace("num_warps", "num_wraps"), Backend.TRITON)


@pytest.mark.parametrize(("body", "expected"), [
    (("_k(x, weight, out, eps)",), True),
    (("if eps > 0:", "    _k(x, weight, out, eps)", "    return"), False),
    (("if eps > 0:", "    _k(x, weight, out, eps)"), True),
    (("if eps > 0:", "    _k(x, weight, out, eps)", "    if eps > 1:", "        return"), True),
    (("if eps > 0:", "    raise ValueError('no')", "else:", "    pass"), False),
    (("if eps > 0:", "    _k(x, weight, out, eps)", "    _k(x, weight, out, eps)", "    return"), True),
    (("for i in range(3):", "    _k(x, weight, out, eps)", "return"), True),
])
def test_split_kernels_are_counted_along_the_worst_path(body: tuple[str, ...], expected: bool) -> None:
    assert ("prohibited" in codes(numba(*body), Backend.NUMBA, "split kernels")) is expected


def test_names_assigned_backwards_end_in_a_finding() -> None:
    source = numba(*(f"a{i} = a{i + 1}" for i in range(600)), "a600 = x")
    first, second = (findings(source, SPEC, Backend.NUMBA) for _ in range(2))
    assert first == second
    assert [finding.reason.code for finding in first if finding.severity == "block"] == ["source_too_complex"]


def test_steps_are_counted_by_the_outermost_block_alone() -> None:
    tree = ast.parse("a + b")
    with steps.bounded(10_000):
        with steps.bounded(1):
            list(steps.walk(tree))
        assert steps.steps_left() == 10_000 - len(list(ast.walk(tree)))
    assert steps.steps_left() is None
    with pytest.raises(SourceError) as caught, steps.bounded(3):
        list(steps.walk(tree))
    assert caught.value.code == "source_too_complex"
    assert steps.steps_left() is None


def test_constants_and_options_of_each_other_are_found() -> None:
    assert "attribute_not_allowed" in codes("A = (A,)\n" + numba('b = f"{A}"'))
    assert "launch_option" in codes(triton("a = {**b}", "b = {**a}", last="a"), Backend.TRITON)


def test_a_check_that_fails_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("harness.evaluation.static.check.read_structure", fails)
    assert codes(BASELINE) == {"source_not_analysed"}
    monkeypatch.setattr("harness.evaluation.source.tier.read_structure", fails)
    with pytest.raises(SourceError) as caught:
        classify(BASELINE, BASELINE + "\n", SPEC, Backend.NUMBA)
    assert caught.value.code == "source_not_analysed"
    monkeypatch.setattr("harness.evaluation.source.normal_form.normal_statements", fails)
    with pytest.raises(SourceError):
        normal_digest(BASELINE + "# never read before\n")


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), KeyError("\ud800"), ZeroDivisionError()])
@pytest.mark.parametrize(("stage", "module", "name"), [
    (Stage.ADMIT, admit, "admit"), (Stage.STATIC, static_stage, "static"), (Stage.ARITHMETIC, arithmetic, "arithmetic"),
])
def test_what_fails_on_the_text_alone_is_the_candidates(
    monkeypatch: pytest.MonkeyPatch, error: Exception, stage: Stage, module: object, name: str
) -> None:
    verdict = _verdict_where(monkeypatch, module, name, error)
    assert (verdict.outcome, verdict.stage, verdict.blame) == (Outcome.POLICY_VIOLATION, stage, Blame.POLICY)
    assert [reason.code for reason in verdict.reasons] == ["source_not_analysed"]
    canonical_json(to_document(verdict))


@pytest.mark.parametrize("error", [InfrastructureError("the disk is full"), OSError("no such file")])
def test_what_the_host_lacks_is_nobodys(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert _verdict_where(monkeypatch, static_stage, "static", error).outcome is Outcome.INFRA_ERROR


def _verdict_where(monkeypatch: pytest.MonkeyPatch, module: object, name: str, error: Exception) -> Verdict:
    def fails(run: Run) -> None:
        raise error

    monkeypatch.setattr(module, name, fails)
    return pipeline.evaluate(make_run(BASELINE, against=()).request, until=Stage.ARITHMETIC)


@pytest.mark.parametrize("word", [r"\ud800", r"\x1b[31m", r"\u202e", r"\x00", r"\u200b", r"\ufe0f"])
@pytest.mark.parametrize("place", ["key", "value", "option", "message"])
def test_texts_that_no_reader_sees_are_refused_at_the_door(word: str, place: str) -> None:
    source = {
        "key": numba(params=f'{{"B{word}": 1}}'), "value": numba(params=f'{{"BLOCK": "{word}"}}'),
        "message": numba("if eps > 0:", f'    raise ValueError("{word}")'),
        "option": triton("pass", last=f'{{"a{word}": 1}}'),
    }[place]
    backend = Backend.TRITON if place == "option" else Backend.NUMBA
    assert codes(source, backend) == {"source_characters"}


def test_line_feeds_are_fine_in_messages_and_not_in_params() -> None:
    assert not {"source_characters", "params_not_literal"} & codes(
        numba("if eps > 0:", r'    raise ValueError("two\nlines\t.")'))
    for params in (r'{"BLOCK\nstage passed": 1}', r'{"BLOCK": "8\n9"}', '{"' + "B" * 101 + '": 1}'):
        with pytest.raises(SourceError) as caught:
            read_params(numba(params=params))
        assert caught.value.code == "params_not_literal"


@given(st.text(st.characters(), max_size=60), st.text(st.characters(), max_size=30))
def test_every_reason_can_be_written_and_is_one_line(text: str, word: str) -> None:
    reason = Reason(code=word, stage=Stage.SMOKE, text=text, case=word, got=word, expected=word)
    for said in (reason.code, reason.text, reason.case, reason.got, TierReason(None, text).text, quoted(text)):
        assert isinstance(said, str)
        assert said.encode("utf-8").decode("utf-8") == said
        assert said == "" or said.isprintable()
    canonical_json(to_document(reason))


def test_reasons_and_quotations_are_bounded_and_keep_their_marks() -> None:
    assert len(Reason(code="x", stage=Stage.SMOKE, text="a" * 100_000).text) == REASON_KEPT
    assert quoted("a» The evaluator failed. «b" + "c" * 1000).count("»") == 1
    assert plain("\x1b[31mred\x1b[0m \u202eback") == "red back"


def test_a_server_answers_every_line_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = make_run(BASELINE, against=()).request
    path = tmp_path / "request.json"
    path.write_bytes(canonical_json(to_document(request)))

    def lines() -> Iterator[str]:
        yield "no document\n"
        yield "[]\n"
        yield json.dumps({"request": str(tmp_path / "none"), "response": str(tmp_path / "a")})
        yield json.dumps({"request": str(path), "response": str(tmp_path / "no" / "folder")})
        yield json.dumps({"request": str(path), "response": str(tmp_path / "last")})

    def fails(*_: object, **__: object) -> None:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    monkeypatch.setattr(pipeline, "evaluate_fully", fails)
    assert serve(lines()) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["exit"] for answer in answers] == [2] * 5
    assert all(answer["text"] for answer in answers[:4])
    assert answers[4]["done"] == str(tmp_path / "last")
    verdict = json.loads((tmp_path / "last").read_bytes())
    assert (verdict["outcome"], verdict["reasons"][0]["code"]) == ("infra_error", "infra_error")


def test_the_honest_row_of_conditions_needs_a_small_part_of_the_steps() -> None:
    source = Path(__file__).parents[2].joinpath("adversarial/honest/many_conditions.py").read_text("utf-8")
    assert steps_of(source, Backend.NUMBA, "split kernels") < steps.MAX_STEPS / 20
    assert registry.get("rms_norm") is SPEC
