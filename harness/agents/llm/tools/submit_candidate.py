"""``submit_candidate``: one kernel for one hypothesis. What the engine or the first stages would send back anyway is
said here, before a round is spent; everything else only the evaluator decides."""

from __future__ import annotations

import re
from typing import Any

from harness.agents.llm.rules import LEAST, closed_problem, elsewhere_problem, forbidden_problem, key_of
from harness.agents.llm.tools.check_feasibility import sums_of
from harness.agents.llm.tools.tool import Refused, Tool, ToolResult, strict
from harness.agents.llm.tools.workbench import Workbench
from harness.agents.protocol import AgentContext
from harness.domain.errors import SourceError
from harness.domain.proposal import Candidate, Claim, Hypothesis, Proposal
from harness.domain.vocabulary import Backend
from harness.evaluation.source.intake import parse, read_source
from harness.evaluation.source.normal_form import normal_digest
from harness.evaluation.source.params import read_params
from harness.evaluation.source.structure import read_structure
from harness.evaluation.source.tier import classify

_KEPT = re.compile(r"KEPT-\d+")


def _run(bench: Workbench, arguments: dict[str, Any]) -> ToolResult:
    context = bench.context
    if not bench.log_read:
        raise Refused("Read the experiment log with query_log first, then propose (R7). Nothing was submitted.")
    idea = _idea(bench, arguments["hypothesis"])
    _check_direction(context, idea, arguments)
    source = _source(bench, arguments["source"])
    _check_source(context, source)
    gain = arguments["claimed_gain"]
    candidate = Candidate(
        idea.id, source, arguments["change_summary"], arguments["retry_of"], arguments["essential_difference"],
        None if gain is None else Claim(float(gain)),
    )
    return ToolResult("Submitted. The evaluator decides; its verdict stands in the log of the next asking.",
                      ends=Proposal("candidate", True, bench.stated, candidate))


def _idea(bench: Workbench, name: str) -> Hypothesis:
    context, known = bench.context, bench.known
    if context.purpose == "diagnosis" and not bench.stated:
        raise Refused(f"This is the diagnosis: state {LEAST} to 5 ranked hypotheses with state_hypotheses first.")
    if context.purpose == "restructure" and not bench.stated:
        raise Refused("This asks for a restructuring: state at least one new hypothesis on algorithm or data layout "
                      "with state_hypotheses first.")
    idea = known.get(name)
    if idea is None:
        raise Refused(f"Nobody stated hypothesis '{name}', or a person struck it. Known: "
                      f"{', '.join(known) or 'none: use state_hypotheses'}.")
    if context.purpose == "diagnosis" and idea is not bench.stated[0]:
        raise Refused(f"The best hypothesis is implemented first: {bench.stated[0].id} leads your list, not {name}.")
    return idea


def _check_direction(context: AgentContext, idea: Hypothesis, arguments: dict[str, Any]) -> None:
    """R7, R16: a closed direction needs the one retry, with the essential difference."""
    forbidden = forbidden_problem(context, idea) or elsewhere_problem(context, idea)
    if forbidden is not None:
        raise Refused(forbidden)
    retry_of, difference = arguments["retry_of"], arguments["essential_difference"]
    rounds = context.closed_directions.get(key_of(idea))
    if rounds is None:
        if retry_of is not None or difference is not None:
            raise Refused("retry_of and essential_difference are for a closed direction; this one is open. Send null "
                          "for both.")
        return
    if not context.retry_available or retry_of is None or not (difference or "").strip():
        raise Refused(closed_problem(context, idea) or "The direction is closed.")
    if retry_of not in rounds:
        raise Refused(f"retry_of is {retry_of}; the rounds that closed the direction are "
                      f"{', '.join(map(str, rounds))}.")


def _source(bench: Workbench, text: str) -> str:
    if _KEPT.fullmatch(text.strip()):
        kept = bench.kept.get(text.strip())
        if kept is None:
            raise Refused(f"No source is kept as {text.strip()}. Kept: {', '.join(bench.kept) or 'none'}.")
        return kept
    if "```" in text:
        raise Refused("'source' contains a code fence. Send the plain text of the file, whole, without ``` marks.")
    return text if text.endswith("\n") else text + "\n"


def _check_source(context: AgentContext, source: str) -> None:
    """Text alone decides here: nothing is compiled or run."""
    spec, backend = context.spec, context.goal.backend
    try:
        tree = parse(read_source(source.encode("utf-8", "surrogatepass")))
        found, digest, params = read_structure(tree, backend), normal_digest(source), read_params(tree)
        _check_new(context, digest)
        if found.run is None or not found.kernels:
            missing = "function run" if found.run is None else f"{_decorator(backend)} kernel function"
            raise Refused(f"The source has no {missing}. Send the whole file: PARAMS, kernel functions and "
                          f"{spec.signature}.")
        tier = classify(context.incumbent.source, source, spec, backend)
    except SourceError as error:
        raise Refused(f"The source cannot be a kernel: {error.text} Nothing was submitted.") from None
    if tier.tier > context.grant:
        why = "; ".join(f"line {r.line}: {r.text}" if r.line else r.text for r in tier.why[:4])
        raise Refused(f"This is a {tier.tier} change from the incumbent and the grant is {context.grant}: {why}. Stay "
                      "within the grant.")
    for label, one in sums_of(context, params):
        if not one.feasible:
            raise Refused(f"Impossible for shape {label}: {one.text}")


def _check_new(context: AgentContext, digest: str) -> None:
    """R7: a tree that was tried before is refused with its round."""
    if digest == context.incumbent_normal:
        raise Refused(f"This is the incumbent (round {context.incumbent_round}) with at most comments and local names "
                      "changed: there is nothing to measure.")
    if digest in context.tried:
        number = context.tried[digest]
        raise Refused(f"The same normalised tree was tried in round {number}; its verdict stands (read_verdict "
                      f"{number}). Propose something else.")


def _decorator(backend: Backend) -> str:
    return "@triton.jit" if backend is Backend.TRITON else "@numba.njit"


SUBMIT_CANDIDATE = Tool(
    "submit_candidate",
    "Submit one whole kernel source for one stated hypothesis. This ends your turn; only the evaluator decides.",
    strict({
        "hypothesis": {"type": "string", "minLength": 1, "maxLength": 80, "description": "the id it implements"},
        "source": {"type": "string", "minLength": 1, "description": "the whole file as plain text, no code fence"},
        "change_summary": {"type": "string", "minLength": 5, "maxLength": 600,
                           "description": "what changed from the incumbent, in a sentence"},
        "claimed_gain": {"type": ["number", "null"], "minimum": -1, "maximum": 1000, "description":
                         "the gain you claim as a fraction, or null; it is stored beside the measurement and flagged "
                         "where the data disagree"},
        "retry_of": {"type": ["integer", "null"], "minimum": 1, "description":
                     "for the one retry of a closed direction: a round that closed it; else null"},
        "essential_difference": {"type": ["string", "null"], "maxLength": 600, "description":
                                 "for that retry: what is essentially different now; else null"},
    }),
    _run, ending=True,
)
