"""The first stage: is this the kernel the request speaks of, and is the change within the grant?"""

from __future__ import annotations

from harness.backends.present import CODE, absent
from harness.domain.digest import digest_source
from harness.domain.errors import InfrastructureError, SourceError
from harness.domain.verdict import Reason, TierResult
from harness.domain.vocabulary import Outcome, Purpose, Role, Stage, Tier
from harness.evaluation.run import Refused, Run
from harness.evaluation.source.intake import parse, read_source
from harness.evaluation.source.params import narrowed, read_params
from harness.evaluation.source.tier import classify

RECHECKS = (Purpose.PROMOTION, Purpose.CANARY)
"""Fresh looks at a kernel that was already admitted: neither grant nor `no_change` applies."""


def admit(run: Run) -> None:
    """Check operator, backend and digest, set ``run.step_tier`` and ``run.params``, enforce the grant.

    The step tier is taken against the incumbent, or the baseline where there is none. Whether the kernel was tried
    before in this campaign is the engine's question, asked with ``source.normal_form.normal_digest``.

    Raises:
        Refused: ``unsupported``, ``unsupported_here``, ``no_change``, ``grant_exceeded``, or what an unreadable source
            amounts to.
        InfrastructureError: the candidate's bytes are not those its digest names.
    """
    _check_request(run)
    try:
        parse(read_source(run.source.encode("utf-8", "surrogatepass")))
    except SourceError as error:
        outcome = Outcome.COMPILE_ERROR if error.code == "syntax_error" else Outcome.POLICY_VIOLATION
        raise Refused(outcome, Reason(code=error.code, stage=Stage.ADMIT, text=error.text, line=error.line)) from error
    _check_digest(run)
    try:
        run.params = read_params(run.source)
    except SourceError:
        run.params = {}  # the static stage refuses such a source and names the line
    run.step_tier = step_tier(run)
    if run.request.purpose in RECHECKS:
        return
    if run.step_tier.tier is Tier.NONE and run.opponent(Role.INCUMBENT) is not None:
        raise Refused(Outcome.NO_CHANGE, Reason(
            code="no_change", stage=Stage.ADMIT, text="The candidate differs from the kernel it builds on in comments, "
            "blank lines or local names only. Change what it computes, or a value of PARAMS."))
    if run.step_tier.tier > run.request.grant:
        raise Refused(Outcome.GRANT_EXCEEDED, *_grant_reasons(run, run.step_tier))


def step_tier(run: Run) -> TierResult:
    """How far the candidate goes from the incumbent, within the ranges that the goal narrows."""
    base = run.opponent(Role.INCUMBENT) or run.opponent(Role.BASELINE) or run.spec.baseline(run.request.backend)
    spec = narrowed(run.spec, run.request.goal.adjustable)
    try:
        return classify(base, run.source, spec, run.request.backend)
    except SourceError as error:
        if error.code in ("source_too_complex", "source_not_analysed"):
            raise  # the base was judged before; it is the candidate that made it so
        # the candidate parsed before, so it is the base that does not
        raise InfrastructureError(f"The kernel that the candidate builds on cannot be read: {error.text}") from error


def _check_request(run: Run) -> None:
    request, spec = run.request, run.spec
    if request.operator.version != spec.version:
        raise Refused(Outcome.UNSUPPORTED, Reason(
            code="operator_version", stage=Stage.ADMIT, text=f"The request is for {spec.name} version "
            f"{request.operator.version}; this evaluator has version {spec.version}. Send the request again."))
    if request.backend not in run.workload.shapes:
        raise Refused(Outcome.UNSUPPORTED, Reason(
            code="backend_unsupported", stage=Stage.ADMIT, text=f"Workload {run.workload.name} of {spec.name} has no "
            f"shapes for {request.backend}. Choose another backend."))
    why = absent(request.backend)
    if why is not None:
        raise Refused(Outcome.UNSUPPORTED_HERE, Reason(code=CODE, stage=Stage.ADMIT, text=why))


def _check_digest(run: Run) -> None:
    named, actual = run.request.candidate.digest, digest_source(run.source)
    if actual != named:
        raise InfrastructureError(f"The request names kernel {named[:19]}... but carries {actual[:19]}...; nothing was "
                                  "evaluated. Send the request again.", code="digest_mismatch")


def _grant_reasons(run: Run, result: TierResult) -> list[Reason]:
    """The causes that exceed the grant; the first sentence says what the campaign allows."""
    grant = run.request.grant
    reasons = [Reason(code="grant_exceeded", stage=Stage.ADMIT, line=why.line,
                      text=f"This change is {result.tier}, and the campaign grants {grant}: {why.text}.")
               for why in result.why[:8]]
    return reasons or [Reason(code="grant_exceeded", stage=Stage.ADMIT,
                              text=f"This change is {result.tier}, and the campaign grants {grant}.")]
