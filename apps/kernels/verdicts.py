"""Writing verdicts. Only two ways in: a worker with an open lease, and a marked import."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.db import transaction

from apps.audit.services import audit_record
from apps.bridge import api
from apps.core.errors import Invalid, Refused
from apps.kernels.models import Kernel, Verdict
from apps.kernels.services import blob_store
from apps.teams import policies
from apps.teams.models import Team, User


def verdict_columns(document: dict[str, Any], samples: bytes | None) -> dict[str, Any]:
    """The columns of a verdict row from its document and raw samples, everything recomputed that can be.

    Raises:
        Invalid: the document breaks its schema, names other samples, or claims a comparison that the raw samples
            do not give.
    """
    try:
        facts = api.verdict_check(document)
        if samples is not None and facts.samples != "blob:" + api.digest(samples):
            raise Invalid("The raw samples are not those that the verdict names.", key="samples")
        recomputed = api.recompute(document, json.loads(samples)) if samples is not None else None
    except api.BridgeError as error:
        raise Invalid(error.text, key=error.key, code=error.code) from error
    if recomputed is not None and recomputed.comparison != facts.comparison:
        raise Invalid(
            f"The verdict says '{facts.comparison}', its raw samples say '{recomputed.comparison}'. Not recorded.",
            key="comparison", code="verdict_forged",
        )
    if recomputed is not None and tuple(sorted(recomputed.regressions)) != tuple(sorted(facts.regressions)):
        raise Invalid("The regressions listed are not those of the raw samples. Not recorded.", key="regressions",
                      code="verdict_forged")
    return {
        "outcome": facts.outcome, "comparison": facts.comparison, "compared_with": facts.compared_with,
        "hardware": facts.hardware, "environment_class": facts.environment_class,
        "evaluator_version": facts.evaluator_version, "operator_version": facts.operator_version,
        "isolation": facts.isolation, "evidence": facts.evidence, "score": facts.score,
        "suspicious": bool(facts.suspicious), "regressions": sorted(facts.regressions),
        "recomputed": recomputed is not None and recomputed.evidence_complete,
    }


def verdict_store(
    *, kernel: Kernel, team: Team | None, purpose: str, workload: str, goal_digest: str, against: dict[str, str],
    document: dict[str, Any], columns: dict[str, Any], samples: bytes | None, job_key: uuid.UUID,
) -> Verdict:
    """Write the verdict of a job. Called by ``campaigns.jobs.services.job_complete``, which holds the lease and has
    computed ``columns``; a trigger refuses the row where no job of that key is leased."""
    blob = blob_store(data=samples) if samples is not None else None
    return Verdict.objects.create(
        kernel=kernel, team=team, purpose=purpose, workload=workload, goal_digest=goal_digest, against=against,
        document=document, samples=blob, job_key=job_key, **columns,
    )


def verdict_import(
    *, kernel: Kernel, team: Team, document: dict[str, Any], samples: bytes | None, workload: str, origin: str,
    by: User | None,
) -> Verdict:
    """Keep a verdict made elsewhere. It is ``foreign`` for good: shown on the log, never ranked as ours, never
    evidence for a promotion.

    Raises:
        Refused: the person may not run campaigns in the team.
        Invalid: the document is not a verdict on these bytes.
    """
    why = policies.may_run_campaigns(by, team) if by is not None else None
    if why:
        raise Refused(why)
    if not origin.strip():
        raise Invalid("An imported verdict needs its origin in words.", key="origin")
    if document.get("kernel") != kernel.digest:
        raise Invalid(f"The verdict is about {document.get('kernel')}, not {kernel.digest}.", key="kernel")
    columns = verdict_columns(document, samples)
    with transaction.atomic():
        verdict = foreign_store(kernel=kernel, team=team, document=document, columns=columns, samples=samples,
                                workload=workload, purpose="round", origin=origin)
        audit_record(verb="verdict.imported", subject=verdict, actor=by, team=team, digest=kernel.digest, reason=origin)
    return verdict


def foreign_store(
    *, kernel: Kernel, team: Team | None, document: dict[str, Any], columns: dict[str, Any], samples: bytes | None,
    workload: str, purpose: str, origin: str,
) -> Verdict:
    """Write a verdict made elsewhere, ``foreign`` for good. Called inside the transaction of an import, which has
    computed ``columns``; without a team it belongs to an imported report and to no log."""
    blob = blob_store(data=samples) if samples is not None else None
    return Verdict.objects.create(
        kernel=kernel, team=team, purpose=purpose, workload=workload, document=document, samples=blob, foreign=True,
        foreign_origin=origin, **columns,
    )
