"""Evaluation request documents that the web side itself orders: re-verifications and probes."""

from __future__ import annotations

import secrets
from typing import Any

from apps.bridge.api.errors import translated

DEADLINE_S = 300.0


def verification_request(
    *, job: str, goal: dict[str, Any], operator_version: str, candidate: bytes, against: dict[str, bytes],
    purpose: str = "promotion", isolation: int = 2, deadline_s: float = DEADLINE_S,
) -> dict[str, Any]:
    """The request for one fresh measurement of ``candidate``; ``against`` maps roles to sources.

    Raises:
        BridgeError: a source or the goal is invalid.
    """
    with translated():
        from harness.domain.codec import to_document
        from harness.domain.digest import digest_bytes
        from harness.domain.goal import goal_from_document
        from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
        from harness.domain.vocabulary import Purpose, Role, Tier
        from harness.evaluation.source.intake import read_source

        frozen = goal_from_document(goal)
        request = EvaluationRequest(
            job=job, nonce=secrets.token_hex(16), purpose=Purpose(purpose),
            operator=OperatorRef(frozen.operator, operator_version), backend=frozen.backend, hardware=frozen.hardware,
            workload=frozen.workload, goal=frozen, candidate=SourceRef(digest_bytes(candidate), read_source(candidate)),
            against=tuple(Opponent(Role(r), digest_bytes(data), read_source(data)) for r, data in against.items()),
            grant=Tier.HEAVY, required=Required(isolation=isolation), deadline_s=deadline_s,
        )
        return to_document(request)


def request_check(document: Any) -> dict[str, Any]:
    """A request document, checked against the schema and its own digests.

    Raises:
        BridgeError: with the key, or when a digest is not that of its source.
    """
    with translated():
        from harness.domain.codec import check_schema, from_document, to_document
        from harness.domain.digest import digest_source
        from harness.domain.errors import DocumentError
        from harness.domain.request import EvaluationRequest

        check_schema(document, "request")
        request = from_document(document, EvaluationRequest)
        sides = [(request.candidate.digest, request.candidate.source)]
        sides += [(opponent.digest, opponent.source) for opponent in request.against]
        for digest, source in sides:
            if digest_source(source) != digest:
                raise DocumentError(f"{digest} is not the digest of the source beside it.", key="candidate.digest")
        return to_document(request)
