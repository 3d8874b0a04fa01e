"""The local loop and the optimize command with a fake evaluator and scripted agents."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.agents.errors import AgentError
from harness.agents.protocol import AgentContext
from harness.agents.registry import make_agent
from harness.campaign.local import measure_final, run_campaign
from harness.campaign.start import start_state
from harness.cli.optimize import document_of, exit_code, optimize
from harness.domain.codec import check_schema, from_document
from harness.domain.errors import GoalError
from harness.domain.goal import AgentChoice, Budget, Goal, Stop
from harness.domain.proposal import Proposal
from harness.domain.vocabulary import Backend, Comparison, Outcome, Purpose, Role, Tier
from harness.engine.results import result_from_document
from harness.engine.state import Status
from harness.engine.step import replay
from harness.hardware.detect import hardware_name
from tests.harness.campaign.fake_evaluator import FakeEvaluator

FAST = FakeEvaluator(lambda source: 40.0 if "reassoc" in source else 100.0)


def _goal(**more: object) -> Goal:
    settings = {"operator": "rms_norm", "backend": Backend.NUMBA, "hardware": "cpu-test-1t", "workload": "llm",
                "budget": Budget(4), **more}
    return Goal(**settings)  # type: ignore[arg-type]


def test_a_campaign_runs_to_its_end_and_keeps_the_best_verified_kernel() -> None:
    evaluator = FakeEvaluator(FAST.speed)
    state = run_campaign(start_state(_goal(), attended=False), make_agent(AgentChoice()), evaluator)
    assert state.status is Status.FINISHED and state.improved and "reassoc" in state.incumbent.kernel.source
    assert len(state.concluded) == 4
    assert [o.role for o in evaluator.requests[-1].against] == [Role.INCUMBENT, Role.BASELINE]


def test_the_headline_is_a_fresh_paired_measurement_of_final_against_round_zero() -> None:
    evaluator = FakeEvaluator(FAST.speed)
    state = run_campaign(start_state(_goal(), attended=False), make_agent(AgentChoice()), evaluator)
    before = len(evaluator.requests)
    final = measure_final(state, evaluator)
    assert final is not None and len(evaluator.requests) == before + 1
    request, verdict, samples = final
    assert request.purpose is Purpose.PROBE and samples is not None
    assert [(o.role, o.source) for o in request.against] == [(Role.BASELINE, state.baseline.source)]
    assert verdict.comparison is Comparison.FASTER
    nothing = run_campaign(start_state(_goal(), attended=False), make_agent(AgentChoice()),
                           FakeEvaluator(lambda _source: 100.0))
    assert measure_final(nothing, evaluator) is None


def test_an_agents_crash_of_its_provider_pauses_and_exits_with_two() -> None:
    class Broken:
        label = "broken"

        def propose(self, context: AgentContext) -> Proposal:
            raise AgentError("the endpoint does not answer", blame="provider")

    state = run_campaign(start_state(_goal(), attended=False), Broken(), FakeEvaluator())
    assert state.status is Status.PAUSED and "does not answer" in state.cause and exit_code(state, None) == 2


def test_an_agent_that_never_reads_the_log_spends_its_rounds_without_an_evaluation() -> None:
    class Deaf:
        label = "deaf"

        def propose(self, context: AgentContext) -> Proposal:
            return Proposal("candidate", True, (), make_agent(AgentChoice()).propose(context).candidate) \
                if context.log.queries else Proposal("give_up", True, reason="x")

    evaluator = FakeEvaluator()
    state = run_campaign(start_state(_goal(), attended=False), Deaf(), evaluator)
    assert len(evaluator.requests) == 1 and len(state.concluded) == 4
    assert all(r.bounces[0].code == "log_not_queried" for r in state.concluded)


def test_the_seconds_of_the_budget_are_kept() -> None:
    ticks = iter(range(0, 10_000, 50))
    state = run_campaign(start_state(_goal(budget=Budget(None, None, 120.0)), attended=False),
                         make_agent(AgentChoice()), FakeEvaluator(), clock=lambda: float(next(ticks)))
    assert state.code == "budget" and "seconds" in state.cause and len(state.concluded) <= 2


def test_a_refused_baseline_fails_the_campaign_and_exits_with_one() -> None:
    evaluator = FakeEvaluator(refuse={"def run": Outcome.INCORRECT_NUMERIC})
    state = run_campaign(start_state(_goal(), attended=False), make_agent(AgentChoice()), evaluator)
    assert state.status is Status.FAILED and exit_code(state, None) == 1


def test_candidates_above_the_grant_are_refused_and_concluded() -> None:
    class Heavy:
        label = "heavy"

        def propose(self, context: AgentContext) -> Proposal:
            return make_agent(AgentChoice()).propose(replace(context, grant=Tier.HEAVY, closed_directions={
                "vectorisation:_attend": (1,), "tiling:_attend": (1,)}))

    goal = _goal(operator="decode_attention", budget=Budget(1))
    state = run_campaign(start_state(goal, attended=False), Heavy(), FakeEvaluator())
    assert state.concluded[0].verdict is not None
    assert state.concluded[0].verdict.outcome is Outcome.GRANT_EXCEEDED and not state.improved


class Tags(HTMLParser):
    """Collects what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_command_leaves_a_complete_folder_that_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = start_state(_goal(hardware=hardware_name()), attended=False)
    code = optimize(start, make_agent(AgentChoice()), lambda progress: FakeEvaluator(FAST.speed), out=tmp_path,
                    as_json=True, overrides=("--rounds 4 overrides budget.rounds = 20",))
    document = json.loads(capsys.readouterr().out)
    assert code == 0 and document["status"] == "finished" and document["rounds"] == 4
    assert document["overrides"] == ["--rounds 4 overrides budget.rounds = 20"]
    assert document["final"]["against_baseline"]["ratio"] == pytest.approx(2.5)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    assert log == document["log"]
    for entry in log:
        check_schema(entry, "log")
    for path in (tmp_path / "verdicts").glob("???.json"):
        check_schema(json.loads(path.read_text("utf-8")), "verdict")
    for path in (tmp_path / "verdicts").glob("*.samples.json"):
        check_schema(json.loads(path.read_text("utf-8")), "samples")
    assert (tmp_path / "verdicts" / "final.json").exists()
    results = [result_from_document(json.loads(line)) for line in
               (tmp_path / "results.jsonl").read_text("utf-8").splitlines()]
    goal = from_document(json.loads((tmp_path / "goal.json").read_text("utf-8")), Goal)
    assert goal == start.goal
    kernels = {path.read_text("utf-8") for path in (tmp_path / "kernels").glob("*.py")}
    assert document["final"]["source"] in kernels and len(kernels) == 5
    again = document_of(replay(start, results), None, "x", 0.0, ())
    assert (again["log"], again["status"], again["cause"]) == (log, "finished", document["cause"])
    page = (tmp_path / "report.html").read_text("utf-8")
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.names and tags.loads == [] and "2.500x" in page


def test_a_dry_run_is_not_timed_and_exports_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    goal = _goal(backend=Backend.TRITON, hardware="nvidia-h200", budget=Budget(3))
    code = optimize(start_state(goal, attended=False), make_agent(AgentChoice()),
                    lambda progress: FakeEvaluator(timed=False), out=tmp_path, as_json=False)
    printed = capsys.readouterr().out
    assert code == 0 and "dry run" in printed and "not timed" in printed
    requests = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "requests").glob("*.request.json")]
    assert len(requests) == 4, printed
    assert {request["hardware"] for request in requests} == {"nvidia-h200"}
    for request in requests:
        check_schema(request, "request")
    assert "Nothing was timed" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"workload": "none"}, "workload"),
        ({"adjustable": {"WIDTH": (1, 2)}}, "adjustable.WIDTH"),
        ({"adjustable": {"BLOCK": (65536, 131072)}}, "adjustable.BLOCK"),
        ({"grant": Tier.NONE}, "grant"),
        ({"stop": Stop(plateau_gain=0.001)}, "stop.plateau_gain"),
    ],
)
def test_a_goal_that_contradicts_the_operator_names_its_key(changes: dict, key: str) -> None:
    with pytest.raises(GoalError) as caught:
        start_state(_goal(**changes))
    assert caught.value.key == key
