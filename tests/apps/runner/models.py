"""Campaigns of a language model whose answers a test writes down, over the real desk, rows and engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.bridge import api
from apps.bridge.runner.campaign_loop import CampaignRunner, Step
from apps.bridge.runner.responses import Response
from apps.bridge.runner.worker import EvaluationWorker
from apps.campaigns.models import Campaign
from apps.teams.models import User
from harness.domain.codec import from_document, to_document
from harness.domain.digest import canonical_json, digest_bytes
from harness.domain.request import EvaluationRequest
from harness.domain.turn import Answer
from tests.crash.campaigns import begin_campaign
from tests.crash.fake_evaluator import samples_of, verdict_of
from tests.harness.llm.mind.fakes import LOG, calls, submits

KEY = "key-of-the-tests-4f9a7c21"
VARIABLE = "A_KEY_OF_THE_TESTS"
ENDPOINTS = f"""
[endpoint.here]
url = "http://127.0.0.1:9/v1"
key_variable = "{VARIABLE}"
models = ["model-a", {{name = "model-b", efforts = ["low", "high"]}}, "free"]
[endpoint.here.price.model-a]
input = 1.0
cached = 0.1
output = 4.0
currency = "EUR"
date = "2026-11-29"
[endpoint.here.price.model-b]
input = 2.0
output = 8.0
currency = "USD"
date = "2026-11-29"
"""
TURN_TOKENS, TURN_COST = 1100, 0.0014
"""What one answer of ``calls`` counts and costs at the price above."""
IDEAS = ("state_hypotheses", {"hypotheses": [
    {"id": f"h{n}", "direction": direction, "function": "_rms_norm", "text": f"An idea about {direction}.",
     "evidence": "profile: bytes", "expected_gain": 0.3 - n / 20}
    for n, direction in enumerate(("tiling", "vectorisation", "fusion"), start=1)]})


def endpoints_file(folder: Path) -> Path:
    """The server's settings of endpoints."""
    path = folder / "endpoints.toml"
    path.write_text(ENDPOINTS, "utf-8")
    return path


def begin(person: User, rounds: int = 2, **more: Any) -> Campaign:
    """A running campaign of ``model-a``."""
    choice = {"endpoint": "here", "model": "model-a"} | more.pop("choice", {})
    return begin_campaign(person, rounds=rounds, agent="openai", choice=choice, **more)


def kernel(block: int) -> str:
    """The baseline with another block."""
    source = api.baseline_source("rms_norm", "numba").decode()
    head, found, tail = source.partition('"BLOCK": ')
    assert found
    return head + found + str(block) + tail[tail.index("}"):]


def diagnosis(block: int = 16) -> list[Answer]:
    """Three turns to a first candidate."""
    return [calls(LOG), calls(IDEAS), calls(submits(kernel(block), "h1"))]


def another(block: int, hypothesis: str = "h2") -> list[Answer]:
    """Two turns to another candidate."""
    return [calls(LOG), calls(submits(kernel(block), hypothesis))]


class Quick:
    """An evaluator in this process: the stand-in's verdicts without its process."""

    def evaluate(self, request: dict[str, Any], **_: Any) -> Response:
        """The verdict on ``request`` with its samples."""
        asked = from_document(request, EvaluationRequest)
        samples = samples_of(asked)
        data = canonical_json(to_document(samples))
        return Response(to_document(verdict_of(asked, samples, "blob:" + digest_bytes(data))), data)

    def close(self) -> None:
        """Nothing is open."""


def measure(runner: CampaignRunner) -> None:
    """Have the baseline measured in this process."""
    assert runner.step() is Step.WAITS
    EvaluationWorker(evaluator=Quick(), hardware=api.hardware_here(),  # type: ignore[arg-type]
                     backends=["numba"], beat=lambda verdict: True).work_once()
    assert runner.step() is Step.MOVED
