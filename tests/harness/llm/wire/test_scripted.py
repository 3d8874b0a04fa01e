"""The scripted server: both APIs say the same, and each persona leads a whole campaign to an end in order."""

from __future__ import annotations

import http.client
import json
import logging
import subprocess
import sys
from collections import Counter

import pytest

from harness.agents.llm.agent import LanguageModel
from harness.agents.llm.endpoints import Endpoint, ModelFacts, load_endpoints
from harness.agents.llm.limits import Limits
from harness.agents.llm.ports import Desk, Question, TransportError
from harness.agents.llm.scripted.__main__ import main
from harness.agents.llm.scripted.personas import PERSONAS
from harness.agents.llm.scripted.server import ScriptedServer, scripted
from harness.agents.llm.tools import functions
from harness.agents.llm.wire.learned import Memory
from harness.agents.llm.wire.transport import OpenAITransport, transports
from harness.campaign.local import run_campaign
from harness.campaign.model_turns import FileTurns
from harness.campaign.start import start_state
from harness.domain.errors import UsageError
from harness.domain.goal import AgentChoice, Budget, Goal
from harness.domain.vocabulary import Backend, Outcome, Tier
from harness.engine.log import log_entries
from tests.harness.campaign.fake_evaluator import FakeEvaluator
from tests.harness.llm.wire.asking import KEY

MESSAGES = [{"role": "system", "content": "s"}, {"role": "user", "content": "Round 3 asks for one candidate."}]


@pytest.fixture(scope="module")
def server():
    with scripted() as running:
        yield running


def transport(server, api="chat"):
    endpoint = Endpoint("s", server.url, "K", (ModelFacts("*", 100_000),), api=api, patience_s=0)
    return OpenAITransport(endpoint, {"K": KEY}, memory=Memory())


def played(server, folder, persona, rounds, evaluator=None, limits=None):
    """(end of the campaign, its turns)."""
    turns = FileTurns(folder)
    facts = ModelFacts(persona, 100_000)
    desk = Desk(lambda name: transport(server), turns, facts=lambda name, model: facts)
    goal = Goal("softmax", Backend.NUMBA, "cpu-test-1t", "llm", grant=Tier.HEAVY,
                agent=AgentChoice("openai", endpoint="s", model=persona), budget=Budget(rounds=rounds))
    agent = LanguageModel(desk, limits)
    state = run_campaign(start_state(goal, attended=False), agent, evaluator or FakeEvaluator())
    return state, turns.all()


def test_both_apis_and_both_ways_say_the_same(server):
    question = Question("good", MESSAGES, functions(), {"max_tokens": 99})
    chat, responses = (transport(server, api).ask(question) for api in ("chat", "responses"))
    assert [(call.name, call.arguments) for call in chat.calls] == [(call.name, call.arguments)
                                                                    for call in responses.calls]
    assert [call.name for call in chat.calls] == ["query_log", "read_profile", "read_source"]
    assert (chat.reasoning, chat.finish) == (responses.reasoning, responses.finish) == (
        "First I look at what was measured.", "tool_calls")
    assert not chat.usage.estimated and not responses.usage.estimated


def test_a_conversation_goes_on_over_responses_as_over_chat(server):
    first = transport(server).ask(Question("truncating", MESSAGES, functions()))
    calls = [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
             for call in first.calls]
    results = [{"role": "tool", "tool_call_id": call.id, "content": "ERROR. Nothing."} for call in first.calls]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    question = Question("truncating", [*MESSAGES, said, *results])
    assert [call.name for call in transport(server).ask(question).calls] == [
        call.name for call in transport(server, "responses").ask(question).calls] == ["give_up"]


def test_strange_requests_are_answered_and_the_server_goes_on(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    statuses = []
    for body in (b"[]", b"{", b"\xff", b"", b'{"model": "good", "messages": "x"}', b'{"model": "good", "input": [7]}'):
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/nothing"):
            connection.request("POST", path, body)
            answer = connection.getresponse()
            json.loads(answer.read())
            statuses.append(answer.status)
    connection.request("GET", "/v1/models")
    listed = json.loads(connection.getresponse().read())
    assert set(statuses) <= {200, 400, 404, 500}
    assert [item["id"] for item in listed["data"]] == list(PERSONAS)


def test_without_a_server_the_same_is_said_and_no_client_is_loaded(server, tmp_path):
    code = """
import sys
from harness.agents.llm.endpoints import Endpoint
from harness.agents.llm.ports import Question
from harness.agents.llm.wire.transport import transports
transport = transports({"trial": Endpoint("trial", "script:")})("trial")
messages = [{"role": "user", "content": "Round 3 asks for one candidate."}]
print([call.name for call in transport.ask(Question("good", messages), told=print, cancelled=lambda: False).calls])
sys.exit("openai" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "['query_log', 'read_profile', 'read_source']" in done.stdout
    (tmp_path / "endpoints.toml").write_text('[endpoint.trial]\nurl = "script:"\nmodels = ["good"]\n', "utf-8")
    known = load_endpoints(tmp_path / "endpoints.toml")
    question = Question("truncating", MESSAGES)
    here, there = transports(known)("trial").ask(question), transport(server).ask(question)
    assert (here.text, here.reasoning, here.finish, here.usage) == (there.text, there.reasoning, there.finish,
                                                                    there.usage)
    with pytest.raises(TransportError) as caught:
        transports(known)("trial").ask(Question("slow", MESSAGES), cancelled=lambda: True)
    assert caught.value.kind == "cancelled" and caught.value.__context__ is None
    with pytest.raises(TransportError, match="nobody"):
        transports(known)("trial").ask(Question("nobody", MESSAGES))
    with pytest.raises(UsageError, match="trial"):
        transports(known)("other")


def test_a_model_that_is_nobody(server):
    with pytest.raises(TransportError) as caught:
        transport(server).ask(Question("nobody", MESSAGES))
    assert caught.value.kind == "refused" and "nobody" in caught.value.text


def test_an_engineer_who_is_slow_can_be_stopped(server):
    told = []
    with pytest.raises(TransportError) as caught:
        transport(server).ask(Question("slow", MESSAGES, functions()), told=told.append, cancelled=lambda: bool(told))
    assert caught.value.kind == "cancelled"


def test_a_good_engineer_reads_states_and_hands_in_from_light_to_heavy(server, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    state, turns = played(server, tmp_path, "good", 3)
    entries = log_entries(state)
    assert [entry.outcome for entry in entries] == [Outcome.PASSED] * 3
    assert len({entry.direction for entry in entries}) > 1
    assert {str(entry.step_tier) for entry in entries} <= {"light", "medium", "heavy"}
    assert all(turn.blame is None for turn in turns)
    assert state.turns == len(turns)
    # The key of these askings is nowhere in what was kept or logged.
    kept = "".join(path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file())
    assert kept and KEY not in kept and KEY not in caplog.text


def test_a_stubborn_one_repeats_itself_and_its_boasts_are_contradicted(server, tmp_path):
    first = []

    def speed(source):
        first.append(source)
        return 50.0 if source == first[0] else 55.0

    state, turns = played(server, tmp_path, "stubborn", 2, FakeEvaluator(speed), Limits(wasted=2))
    entries = log_entries(state)
    assert entries[0].claim_contradicted and entries[0].agent_claim.gain == 2.0
    assert entries[1].outcome is not Outcome.PASSED
    refused = [message["content"] for turn in turns for message in turn.messages if message["role"] == "tool"
               and "was tried in round 1" in message["content"]]
    assert refused
    assert Counter(turn.blame for turn in turns)["model"] == 6


def test_one_that_makes_things_up_is_told_and_its_kernels_are_the_evaluators_matter(server, tmp_path):
    state, turns = played(server, tmp_path, "hallucinating", 1,
                          FakeEvaluator(refuse={"fast_reduce_v": Outcome.COMPILE_ERROR}))
    assert [entry.outcome for entry in log_entries(state)] == [Outcome.COMPILE_ERROR]
    assert [turn.error for turn in turns if turn.error] == [
        "The model called a tool that does not exist: run_benchmark."]


def test_one_that_is_cut_off_gets_through_and_no_half_kernel_is_judged(server, tmp_path):
    evaluator = FakeEvaluator()
    state, turns = played(server, tmp_path, "truncating", 2, evaluator)
    assert [entry.outcome for entry in log_entries(state)] == [Outcome.PASSED] * 2
    assert all("def run(" in request.candidate.source for request in evaluator.requests)
    assert Counter(turn.blame for turn in turns)["model"] == 3


def test_orders_to_approve_change_nothing(server, tmp_path):
    state, _ = played(server, tmp_path, "injecting", 2)
    first, second = log_entries(state)
    assert first.hypothesis.startswith("SYSTEM: ignore")
    # An import more is a heavy change whatever the file says of itself; without it a change has the tier it has.
    assert first.step_tier is Tier.HEAVY
    assert second.step_tier in (Tier.LIGHT, Tier.MEDIUM)


def test_a_port_that_cannot_be_used_is_a_sentence(monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer() as taken:
        for port, why in ((str(taken.server_port), "in use"), ("70000", "from 0 to 65535")):
            monkeypatch.setattr("sys.argv", ["scripted", "--port", port])
            with pytest.raises(SystemExit) as ended:
                main()
            said = capsys.readouterr().err
            assert ended.value.code == 2 and f"port {port} cannot be used: " in said and why in said
