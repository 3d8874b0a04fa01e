"""The door between an agent's answer and the campaign: only bounded, plain, storable values pass.

Whatever wrote it (a model, an outside agent, a program), a proposal carries words, numbers and a source and nothing
else: no tier, verdict, approval, budget or policy has a place in it. What is too large, not finite or not text is the
model's fault and is sent back before anything is stored; what is merely ugly is cleaned.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

from harness.agents.errors import AgentError
from harness.domain.errors import SourceError
from harness.domain.goal import MOST_SAMPLES
from harness.domain.proposal import Candidate, Claim, Hypothesis, Proposal
from harness.domain.words import one_line, plain, quoted
from harness.evaluation.source.intake import read_source

MOST_HYPOTHESES = 8
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+@-]{0,31}")
"""The playbook names the second turn of an idea idea@round."""
FUNCTION_KEPT = 100
TEXT_KEPT = 2000
SUMMARY_KEPT = 800
MOST_GAIN = 1000.0
MOST_ROUND = 1_000_000
TRACE_KEPT = 256 * 1024


def admitted(proposal: Proposal) -> Proposal:
    """``proposal`` as it may be stored and shown.

    Raises:
        AgentError: blame ``model``; what is wrong and what to send instead.
    """
    if len(proposal.hypotheses) > MOST_HYPOTHESES:
        raise AgentError(f"The proposal states {len(proposal.hypotheses)} hypotheses; at most {MOST_HYPOTHESES} are "
                         "read. Send the best.")
    return replace(
        proposal,
        hypotheses=tuple(_hypothesis(one) for one in proposal.hypotheses),
        candidate=None if proposal.candidate is None else _candidate(proposal.candidate),
        alternatives=_alternatives(proposal.alternatives), reason=plain(proposal.reason, TEXT_KEPT),
        trace=_trace(proposal.trace),
    )


def _hypothesis(one: Hypothesis) -> Hypothesis:
    return replace(one, id=_id(one.id), function=one_line(one.function, FUNCTION_KEPT) or "run",
                   text=plain(one.text, TEXT_KEPT), evidence=plain(one.evidence, TEXT_KEPT),
                   expected_gain=_gain(one.expected_gain, f"The expected gain of hypothesis {one_line(one.id, 32)}"))


def _candidate(one: Candidate) -> Candidate:
    try:
        source = read_source(one.source.encode("utf-8", "surrogatepass"))
    except SourceError as error:
        raise AgentError(f"The source cannot be a kernel: {error.text}") from error
    if one.retry_of is not None and not 0 <= one.retry_of <= MOST_ROUND:
        raise AgentError("retry_of is no number of a round.")
    claim = one.claim
    if claim is not None:
        gain = None if claim.gain is None else _gain(claim.gain, "The claimed gain")
        claim = Claim(gain, plain(claim.text, SUMMARY_KEPT))
    return Candidate(
        _id(one.hypothesis), source, one_line(one.change_summary, SUMMARY_KEPT), one.retry_of,
        None if one.essential_difference is None else plain(one.essential_difference, TEXT_KEPT), claim)


def _alternatives(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Those that pass; the preferred candidate alone decides whether the answer is sent back."""
    found = []
    for candidate in candidates[:MOST_SAMPLES - 1]:
        try:
            found.append(_candidate(candidate))
        except AgentError:
            continue
    return tuple(found)


def _id(name: str) -> str:
    if not ID.fullmatch(name):
        raise AgentError(f"{quoted(name, 40)} is no id of a hypothesis: 1 to 32 letters, digits, dots, dashes or "
                         "underscores, such as h1.")
    return name


def _gain(value: float, what: str) -> float:
    if not math.isfinite(value) or not -1.0 <= value <= MOST_GAIN:
        raise AgentError(f"{what} is no fraction between -1 and {MOST_GAIN:.0f} (0.35 is 35 %).")
    return value


def _trace(trace: dict[str, Any] | None) -> dict[str, Any] | None:
    """The agent's own record: JSON without anything that a database refuses, or a note that it was too large."""
    if trace is None:
        return None
    try:
        text = json.dumps(_storable(trace), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"left_out": "The agent's record is no JSON document."}
    if len(text) > TRACE_KEPT:
        return {"left_out": f"The agent's record has {len(text):,} characters; at most {TRACE_KEPT:,} are kept."}
    return json.loads(text)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list | tuple) else value
