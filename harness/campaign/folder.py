"""The folder of a command-line campaign: everything that happened, readable without this program.

``goal.json``, ``hardware.json``, ``results.jsonl`` (enough to replay the engine), ``log.jsonl``, ``kernels/``,
``verdicts/`` with raw samples beside them, ``requests/`` (dry runs only), ``turns.jsonl`` and ``model.json`` (language
models) and ``report.html``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.backends.triton.export import export_request
from harness.campaign.goal_options import DRY_RUN_TARGET
from harness.campaign.local import Step
from harness.domain.codec import to_document
from harness.domain.digest import canonical_json
from harness.domain.request import EvaluationRequest
from harness.domain.samples import Samples
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Backend
from harness.engine.log import log_entries
from harness.engine.results import result_to_document
from harness.engine.state import CampaignState

HARDWARE = "hardware.json"


class CampaignFolder:
    """Writes as the campaign goes, so that an interrupted one leaves what it had."""

    def __init__(self, path: Path, state: CampaignState, lines: Sequence[str] = ()) -> None:
        """``lines`` are the results that led to ``state`` where an interrupted campaign goes on."""
        self.path = path
        for name in ("kernels", "verdicts"):
            (path / name).mkdir(parents=True, exist_ok=True)
        self._write(path / "goal.json", to_document(state.goal))
        (path / "results.jsonl").write_text("".join(line + "\n" for line in lines), "utf-8")
        self.write_kernel(0, state.baseline.digest, state.baseline.source)

    def record(self, step: Step) -> None:
        """Store what one step brought."""
        if step.result is not None:
            with (self.path / "results.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(result_to_document(step.result)) + "\n")
        if step.verdict is not None and step.request is not None:
            number = step.state.rounds[-1].number if step.state.rounds else 0
            self.write_kernel(number, step.request.candidate.digest, step.request.candidate.source)
            self.write_verdict(f"{number:03d}", step.verdict, step.samples)
            if step.request.backend is Backend.TRITON and step.verdict.passed and step.verdict.timing is None:
                self.export(step.request)
        self.write_log(step.state)

    def write_kernel(self, number: int, digest: str, source: str) -> Path:
        """``kernels/<round>-<first eight digits>.py``."""
        path = self.path / "kernels" / f"{number:03d}-{digest.removeprefix('sha256:')[:8]}.py"
        path.write_text(source, "utf-8", newline="\n")
        return path

    def write_verdict(self, name: str, verdict: Verdict, samples: Samples | None) -> None:
        """``verdicts/<name>.json`` and, where something was timed, its raw samples beside it."""
        self._write(self.path / "verdicts" / f"{name}.json", to_document(verdict))
        if samples is not None:
            blob = canonical_json(to_document(samples))
            (self.path / "verdicts" / f"{name}.json.samples.json").write_bytes(blob)

    def export(self, request: EvaluationRequest) -> None:
        """A request file for a GPU host (dry runs)."""
        named = request.goal.hardware
        target = named if named.startswith("nvidia-") else DRY_RUN_TARGET
        export_request(request, (), self.path / "requests", target=target)

    def write_hardware(self, facts: Mapping[str, object]) -> None:
        """``hardware.json``: the hardware digest as the agent was told it, which a replay needs."""
        self._write(self.path / HARDWARE, dict(facts))

    def write_log(self, state: CampaignState) -> None:
        """The experiment log, one entry a line."""
        lines = [json.dumps(to_document(entry)) + "\n" for entry in log_entries(state)]
        (self.path / "log.jsonl").write_text("".join(lines), "utf-8")

    def _write(self, path: Path, document: Any) -> None:
        path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")
