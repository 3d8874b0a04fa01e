"""Records small candidates in the real sandbox, one fresh process each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from triton_candidates import ARGUMENTS

from harness.backends.triton.check import read_plan
from harness.domain.plan import LaunchPlan
from harness.evaluation.sandbox import opener


@pytest.fixture(scope="session")
def record() -> Callable[..., LaunchPlan]:
    """``record(source, arguments=..., attributes=...)``: the validated plan; raises what the worker raises."""
    workers = opener("triton-plan")

    def run(
        source: str, arguments: list[dict[str, Any]] | None = None, attributes: dict[str, float] | None = None
    ) -> LaunchPlan:
        given = arguments or ARGUMENTS
        worker = workers.open(deadline_s=60.0, options={"target": "nvidia-h200"})
        try:
            worker.load(source)
            answer = worker.ask({"op": "record", "arguments": given, "attributes": attributes or {}})
        finally:
            worker.close()
        return read_plan(answer["plan"], given, "cuda:90")

    return run
