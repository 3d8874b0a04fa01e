"""A quick stand-in for ``python -m harness evaluate --serve``: the right documents, invented times.

A kernel's time follows from its digest, so every run of a campaign takes the same course. Each stage lasts
``HARNESS_FAKE_STAGE_S`` seconds, so that a test can hit a process in any of them; the stage whose name stands in the
file ``HARNESS_FAKE_HOLD`` lasts for as long as the file is there (of candidates only, not of the baseline). With
``HARNESS_FAKE_LOSS`` set there is a small second shape, on which candidates are slower in verifications alone. Only
tests run it.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from harness import EVALUATOR_VERSION
from harness.domain.codec import from_document, to_document
from harness.domain.digest import canonical_json, digest_bytes, digest_source
from harness.domain.request import EvaluationRequest
from harness.domain.samples import PairedRound, Samples, ShapeSamples
from harness.domain.verdict import Correctness, Evaluator, Isolation, ShapeTiming, Timing, Verdict
from harness.domain.vocabulary import Comparison, Evidence, Outcome, Purpose, Role, Stage
from harness.evaluation.source.tier import classify
from harness.evaluation.timing.comparison import compare
from harness.hardware.detect import environment
from harness.operators.registry import get

ROUNDS, PAIRS = 5, 6
STAGES = (Stage.ADMIT, Stage.STATIC, Stage.PLAN, Stage.SMOKE, Stage.CORRECTNESS, Stage.BENCHMARK, Stage.RECHECK)
ORDER = (Role.INCUMBENT, Role.CHAMPION, Role.BASELINE)


BASELINE_US = 150.0
"""The shipped baseline is slower than whatever a campaign tries, so that every campaign finds something."""


def microseconds(digest: str, request: EvaluationRequest) -> float:
    """The invented time of a kernel: 60 to 120, from its digest."""
    if digest == digest_source(get(request.operator.name).baseline(request.backend)):
        return BASELINE_US
    return 60.0 + int(hashlib.sha256(digest.encode()).hexdigest()[:8], 16) % 6000 / 100.0


def _round(source: random.Random, other: float, mine: float) -> PairedRound:
    return PairedRound(tuple(other * source.uniform(0.998, 1.002) for _ in range(PAIRS)),
                       tuple(mine * source.uniform(0.998, 1.002) for _ in range(PAIRS)))


def samples_of(request: EvaluationRequest) -> Samples:
    """Paired samples against every opponent, deterministic in the kernels."""
    shapes = (_shape(request, "64x64", 1.0),)
    if os.environ.get("HARNESS_FAKE_LOSS"):
        loss = 3.0 if request.purpose is Purpose.PROMOTION else 1.0
        shapes = (_shape(request, "64x64", 0.9), _shape(request, "8x8", 0.1, loss))
    return Samples(shapes)


def _shape(request: EvaluationRequest, label: str, weight: float, loss: float = 1.0) -> ShapeSamples:
    mine = microseconds(request.candidate.digest, request)
    source = random.Random(request.candidate.digest)
    versus = {str(side.role): tuple(_round(source, microseconds(side.digest, request), loss * mine)
                                    for _ in range(ROUNDS)) for side in request.against}
    control = tuple(_round(source, mine, mine) for _ in range(ROUNDS))
    return ShapeSamples(label, weight, versus, control)


def verdict_of(request: EvaluationRequest, samples: Samples, blob: str) -> Verdict:
    """A verdict that follows from ``samples``."""
    roles = [side.role for side in request.against]
    compared = {str(role): compare(samples, str(role)) for role in roles}
    role = next((role for role in ORDER if role in roles), None)
    mine = microseconds(request.candidate.digest, request)
    base = next((side.source for side in request.against if side.role is role), request.candidate.source)
    shapes = tuple(ShapeTiming(one.shape, one.weight, mine, mine, mine, 0.01,
                               versus={name: result.overall for name, result in compared.items()})
                   for one in samples.shapes)
    return Verdict(
        kernel=request.candidate.digest, operator=request.operator, backend=request.backend, hardware=request.hardware,
        target=None, environment=environment(request.backend),
        evaluator=Evaluator(EVALUATOR_VERSION, Isolation(3, ("landlock", "netns", "pidns", "uid"))),
        outcome=Outcome.PASSED, stage=Stage.RECHECK, blame=None,
        step_tier=classify(base, request.candidate.source, get(request.operator.name), request.backend),
        correctness=Correctness(),
        timing=Timing(Evidence.BOUNDED, 0.001, ROUNDS, shapes, {n: r.overall for n, r in compared.items()}),
        comparison=compared[str(role)].comparison if role else Comparison.NONE,
        compared_with=str(role) if role else None, regressions=compared[str(role)].regressions if role else (),
        seed="0" * 32, samples=blob)


def say(document: dict[str, Any]) -> None:
    """One line of output."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def hold(stage: str, request: EvaluationRequest) -> None:
    """Stay in ``stage`` while the test asks for it."""
    path = Path(os.environ.get("HARNESS_FAKE_HOLD", ""))
    while request.against and path.is_file() and path.read_text("utf-8") == stage:
        time.sleep(0.01)


def main() -> None:
    """Answer requests line by line."""
    pause = float(os.environ.get("HARNESS_FAKE_STAGE_S", "0.02"))
    for line in sys.stdin:
        asked = json.loads(line)
        request = from_document(json.loads(Path(asked["request"]).read_text("utf-8")), EvaluationRequest)
        for stage in STAGES:
            for done in range(2):
                say({"stage": stage, "done": done, "total": 2, "text": f"{stage} {done} of 2"})
                time.sleep(pause / 2)
            hold(stage, request)
        samples = samples_of(request)
        data, response = canonical_json(to_document(samples)), Path(asked["response"])
        response.with_name(response.name + ".samples.json").write_bytes(data)
        verdict = verdict_of(request, samples, "blob:" + digest_bytes(data))
        response.write_bytes(canonical_json(to_document(verdict)))
        say({"done": asked["response"], "exit": 0})


if __name__ == "__main__":
    main()
