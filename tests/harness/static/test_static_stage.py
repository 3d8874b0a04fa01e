"""The static and admit stages as the pipeline calls them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness.domain.digest import digest_source
from harness.domain.errors import InfrastructureError
from harness.domain.goal import ALWAYS_PROHIBITED, Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, SourceRef
from harness.domain.vocabulary import Backend, Outcome, Purpose, Role, Stage, Tier
from harness.evaluation.admit import admit
from harness.evaluation.run import Refused, Run
from harness.evaluation.static.stage import static
from harness.operators import registry

SPEC = registry.get("rms_norm")
BASELINE = SPEC.baseline(Backend.NUMBA)


def make_run(source: str, *, against: tuple[Opponent, ...] | None = None, purpose: Purpose = Purpose.ROUND,
             grant: Tier = Tier.HEAVY, digest: str | None = None, version: str = SPEC.version,
             prohibited: tuple[str, ...] = (), adjustable: dict[str, tuple[int, int]] | None = None) -> Run:
    goal = Goal(operator="rms_norm", backend=Backend.NUMBA, hardware="cpu-test-1-1t", workload="llm",
                prohibited=(*ALWAYS_PROHIBITED, *prohibited), adjustable=adjustable or {})
    if against is None:
        against = (Opponent(Role.INCUMBENT, digest_source(BASELINE), BASELINE),)
    request = EvaluationRequest(
        job="j", nonce="n", purpose=purpose, operator=OperatorRef("rms_norm", version), backend=Backend.NUMBA,
        hardware="cpu-test-1-1t", workload="llm", goal=goal, against=against, grant=grant,
        candidate=SourceRef(digest or digest_source(source), source))

    def no_worker(mode: str) -> None:
        raise AssertionError(f"a static stage opened a {mode} worker")

    return Run(request=request, spec=SPEC, workload=SPEC.workloads["llm"], open_workers=no_worker,  # type: ignore[arg-type]
               progress=lambda *_: None)


def refusal(run: Run, stage: object = admit) -> Refused:
    with pytest.raises(Refused) as caught:
        stage(run)  # type: ignore[operator]
    return caught.value


def test_admit_sets_tier_and_params() -> None:
    run = make_run(BASELINE.replace('"BLOCK": 8', '"BLOCK": 16'))
    admit(run)
    assert run.step_tier is not None
    assert run.step_tier.tier is Tier.LIGHT
    assert run.params == {"BLOCK": 16}


def test_the_incumbent_resubmitted_is_no_change() -> None:
    refused = refusal(make_run(BASELINE.replace("whole", "covered")))
    assert refused.outcome is Outcome.NO_CHANGE
    assert refused.reasons[0].code == "no_change"


def test_the_baseline_itself_is_evaluated_where_there_is_no_incumbent() -> None:
    run = make_run(BASELINE, against=())
    admit(run)
    assert run.step_tier is not None
    assert run.step_tier.tier is Tier.NONE


def test_a_change_above_the_grant_names_every_cause() -> None:
    source = BASELINE.replace("import math\n", "import math\nimport numba.core\n").replace("np.empty(", "np.zeros(")
    refused = refusal(make_run(source, grant=Tier.MEDIUM))
    assert refused.outcome is Outcome.GRANT_EXCEEDED
    assert len(refused.reasons) == 2
    assert all("heavy" in reason.text and "grants medium" in reason.text for reason in refused.reasons)
    assert {source.split("\n")[(reason.line or 1) - 1].strip() for reason in refused.reasons} == {
        "import numba.core", "partial = np.zeros(block, np.float32)"}


def test_a_narrowed_range_makes_a_value_heavy() -> None:
    source = BASELINE.replace('"BLOCK": 8', '"BLOCK": 64')
    admit(make_run(source, grant=Tier.LIGHT))
    refused = refusal(make_run(source, grant=Tier.LIGHT, adjustable={"BLOCK": (1, 32)}))
    assert refused.outcome is Outcome.GRANT_EXCEEDED


@pytest.mark.parametrize("purpose", [Purpose.PROMOTION, Purpose.CANARY])
def test_rechecks_ask_neither_for_a_grant_nor_for_a_change(purpose: Purpose) -> None:
    admit(make_run(BASELINE, purpose=purpose, grant=Tier.LIGHT))
    admit(make_run(BASELINE.replace("np.empty(", "np.zeros("), purpose=purpose, grant=Tier.LIGHT))


def test_other_bytes_than_the_digest_names_are_an_infrastructure_fault() -> None:
    with pytest.raises(InfrastructureError) as caught:
        admit(make_run(BASELINE + "\n# changed on the way\n", digest=digest_source(BASELINE)))
    assert caught.value.code == "digest_mismatch"


def test_another_operator_version_is_unsupported() -> None:
    assert refusal(make_run(BASELINE, version="0")).outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize(("source", "outcome", "code"), [
    ("def run(:\n", Outcome.COMPILE_ERROR, "syntax_error"),
    ("x = 1\r\n", Outcome.POLICY_VIOLATION, "source_characters"),
    ("(" * 200, Outcome.POLICY_VIOLATION, "source_nesting"),
    ("", Outcome.POLICY_VIOLATION, "source_empty"),
    ("x = '\ud800'\n", Outcome.POLICY_VIOLATION, "source_encoding")])
def test_unreadable_sources_are_refused_before_anything_else(source: str, outcome: Outcome, code: str) -> None:
    refused = refusal(make_run(source, digest="sha256:" + "0" * 64))
    assert (refused.outcome, refused.reasons[0].code) == (outcome, code)


def test_an_unreadable_base_is_not_charged_to_the_candidate() -> None:
    with pytest.raises(InfrastructureError):
        admit(make_run(BASELINE, against=(Opponent(Role.INCUMBENT, "sha256:0", "def f(:"),)))


def test_static_names_every_blocking_finding_with_its_line() -> None:
    source = BASELINE.replace("import math\n", "import math\nimport os\n") + "\nprint(os)\n"
    refused = refusal(make_run(source), static)
    assert refused.outcome is Outcome.POLICY_VIOLATION
    assert {"import_not_allowed", "module_statement", "print_call"} <= {reason.code for reason in refused.reasons}
    assert all(reason.line and reason.stage is Stage.STATIC for reason in refused.reasons)


def test_static_keeps_what_is_only_to_be_looked_at() -> None:
    run = make_run(BASELINE.replace("@numba.njit", "@numba.njit(fastmath=True)"))
    static(run)
    assert [reason.code for reason in run.notes] == ["numeric_mode"]


def test_static_honours_the_goals_prohibitions() -> None:
    source = BASELINE.replace("@numba.njit", "@numba.njit(fastmath=True)")
    refused = refusal(make_run(source, prohibited=("numeric modes",)), static)
    assert [reason.code for reason in refused.reasons] == ["prohibited"]


def test_syntax_errors_are_compile_errors_with_a_line() -> None:
    refused = refusal(make_run(BASELINE + "\nx = = 1\n"), static)
    assert refused.outcome is Outcome.COMPILE_ERROR
    assert refused.reasons[0].line == BASELINE.count("\n") + 2


@pytest.mark.parametrize("spec", registry.all_operators(), ids=lambda spec: spec.name)
@pytest.mark.parametrize("backend", list(Backend))
def test_shipped_baselines_have_no_findings(spec: registry.OperatorSpec, backend: Backend) -> None:
    run = dataclasses.replace(make_run(BASELINE), spec=spec)
    run.request = dataclasses.replace(run.request, backend=backend,
                                      candidate=SourceRef("", spec.baseline(backend)))
    static(run)
    assert run.notes == []


def test_the_static_rooms_load_nothing_heavy(tmp_path: Path) -> None:
    import subprocess
    import sys

    probe = ("import sys, harness.evaluation.static.stage, harness.evaluation.admit, harness.cli.tier\n"
             "heavy = {'torch', 'triton', 'numba', 'numpy', 'openai', 'django'} & set(sys.modules)\n"
             "sys.exit(', '.join(sorted(heavy)) or 0)\n")
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False,
                          cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
