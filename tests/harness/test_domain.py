"""Every document: schema, committed example and dataclass agree."""

from __future__ import annotations

import copy

import jsonschema
import pytest

from harness.domain.codec import check_schema, from_document, schema, to_document
from harness.domain.digest import canonical_json, digest_document
from harness.domain.errors import DocumentError, GoalError
from harness.domain.event import Event
from harness.domain.goal import Goal, goal_from_document
from harness.domain.log import LogEntry
from harness.domain.peers import Peers
from harness.domain.plan import LaunchPlan
from harness.domain.proposal import Proposal
from harness.domain.report import Report
from harness.domain.request import EvaluationRequest
from harness.domain.samples import Samples
from harness.domain.verdict import Verdict

DOCUMENTS = {
    "goal": Goal, "request": EvaluationRequest, "plan": LaunchPlan, "verdict": Verdict,
    "proposal": Proposal, "log": LogEntry, "event": Event, "samples": Samples,
    "peers": Peers, "report": Report,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schema_example_and_dataclass_agree(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    for example in schema(name)["examples"]:
        check_schema(example, name)
        value = from_document(example, DOCUMENTS[name])
        assert canonical_json(to_document(value)) == canonical_json(example)
        check_schema(to_document(value), name)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_unknown_key_is_refused_by_name(name: str) -> None:
    document = copy.deepcopy(schema(name)["examples"][0])
    document["surprise"] = 1
    with pytest.raises(DocumentError, match="surprise"):
        check_schema(document, name)
    with pytest.raises(DocumentError, match="surprise"):
        from_document(document, DOCUMENTS[name])


def _goal(**changes: object) -> dict:
    document = copy.deepcopy(schema("goal")["examples"][0])
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = document
        for parent in parents:
            target = target[parent]
        target[last] = value
    return document


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"objective__weights__latency": 0.9}, "objective.weights"),
        ({"budget": {"rounds": None, "evaluations": None, "seconds": None}}, "budget"),
        ({"budget__rounds": 0}, "budget.rounds"),
        ({"stop__plateau_gain": 0.001}, "stop.plateau_gain"),
        ({"prohibited": ["atomics"]}, "prohibited"),
        ({"adjustable__BLOCK": [512, 256]}, "adjustable.BLOCK"),
        ({"limits__tolerance": {"relative": 0.1, "reason": " "}}, "limits.tolerance.reason"),
        ({"grant": "none"}, "grant"),
        ({"backend": "cobol"}, "backend"),
    ],
)
def test_contradictions_name_the_key(changes: dict, key: str) -> None:
    with pytest.raises(GoalError) as caught:
        goal_from_document(_goal(**changes))
    assert caught.value.key == key


def test_digest_ignores_key_order() -> None:
    assert digest_document({"a": 1, "b": 2}) == digest_document({"b": 2, "a": 1})


def test_a_refused_verdict_cannot_carry_a_time() -> None:
    document = copy.deepcopy(schema("verdict")["examples"][0])
    document["outcome"], document["blame"] = "incorrect_numeric", "candidate"
    with pytest.raises(DocumentError, match="timing"):
        check_schema(document, "verdict")
    with pytest.raises(DocumentError, match="timing"):
        from_document(document, Verdict)


@pytest.mark.parametrize(("value", "key", "said"), [
    (-1, "limits.cv", "-1 is less than or equal to the minimum of 0"),
    ("much", "limits.cv", "'much' is not valid under any"),
    ({"relative": 0.1}, "limits.tolerance", "'reason' is a required property"),
    ({"relative": -2, "reason": "x"}, "limits.tolerance", "-2 is less than or equal to the minimum of 0"),
])
def test_of_several_forms_the_one_that_was_meant_is_told(value: object, key: str, said: str) -> None:
    document = copy.deepcopy(schema("goal")["examples"][0])
    document.setdefault("limits", {})[key.rpartition(".")[2]] = value
    with pytest.raises(DocumentError) as caught:
        check_schema(document, "goal")
    assert said in caught.value.text
    assert caught.value.key == key + (".relative" if said.startswith("-2") else "")
