"""The evaluator's word on what a search found."""

from __future__ import annotations

import os
import uuid

from harness.domain.digest import digest_source
from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
from harness.domain.vocabulary import Backend, Purpose, Role, Tier
from harness.search.configs import Space


def request_for(space: Space, workload: str, hardware: str, source: str, *, deadline_s: float = 600.0
                ) -> EvaluationRequest:
    """A request to judge ``source`` against the starting kernel of the search, as a light change of it."""
    spec = space.spec
    goal = Goal(operator=spec.name, backend=Backend.TRITON, hardware=hardware, workload=workload, grant=Tier.LIGHT)
    start = Opponent(Role.BASELINE, digest_source(space.source), space.source)
    return EvaluationRequest(
        job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.PROBE,
        operator=OperatorRef(spec.name, spec.version), backend=Backend.TRITON, hardware=hardware, workload=workload,
        goal=goal, candidate=SourceRef(digest_source(source), source), against=(start,), grant=Tier.LIGHT,
        required=Required(isolation=0), deadline_s=deadline_s)
