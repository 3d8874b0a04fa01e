"""``python -m harness evaluate``: judge one kernel, from options or from a request document."""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path

from harness.cli.numbers import SECONDS
from harness.cli.progress import JsonLines, Line, Quiet
from harness.cli.sources import read_kernel
from harness.cli.targets import ensure_writable
from harness.cli.verdict_text import print_verdict
from harness.domain.codec import check_schema, from_document, to_document
from harness.domain.digest import canonical_json, digest_source
from harness.domain.errors import DocumentError, HarnessError, UsageError
from harness.domain.files import read_document
from harness.domain.goal import Goal
from harness.domain.request import EvaluationRequest, OperatorRef, Opponent, Required, SourceRef
from harness.domain.verdict import Verdict
from harness.domain.vocabulary import Backend, Comparison, Outcome, Purpose, Role, Tier
from harness.domain.words import one_line
from harness.hardware.detect import hardware_name
from harness.operators import registry

REFUSED_HERE = (Outcome.INFRA_ERROR, Outcome.UNSUPPORTED_HERE)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", nargs="?", type=Path, help="the candidate")
    parser.add_argument("--operator")
    parser.add_argument("--backend", choices=[str(b) for b in Backend])
    parser.add_argument("--hardware", help="defaults to this machine's; a Triton plan is compiled for it, and judged "
                                           "on it where it is here")
    parser.add_argument("--workload", default="llm")
    parser.add_argument("--incumbent", type=Path, help="the kernel to compare with; the baseline where absent")
    parser.add_argument("--grant", choices=["light", "medium", "heavy"], default="heavy")
    parser.add_argument("--require-faster", action="store_true", help="exit 0 only where the comparison is 'faster'")
    parser.add_argument("--sanitize", action="store_true",
                        help="also run the smallest case under compute-sanitizer (on a GPU; promotions always do)")
    parser.add_argument("--profile", action="store_true",
                        help="also profile the kernel once it was timed on a GPU (Nsight Compute, where permitted)")
    parser.add_argument("--deadline", type=SECONDS, default=120.0, metavar="SECONDS")
    parser.add_argument("--request", type=Path, help="a request document instead of the options above")
    parser.add_argument("--response", type=Path, help="where the verdict document goes")
    parser.add_argument("--serve", action="store_true",
                        help="stay warm: read lines {\"request\": path, \"response\": path} from standard input")
    parser.add_argument("--json", action="store_true", help="print the verdict document")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print; exit 0 passed, 1 refused, 2 usage or environment."""
    if arguments.serve:
        return serve(sys.stdin)
    ensure_writable(arguments.response, "--response")
    by_document = arguments.request is not None
    request = _read_request(arguments.request) if by_document else _request_of(arguments)
    progress = JsonLines() if by_document else Quiet() if arguments.json else Line()
    verdict = _answer(request, arguments.response, progress)
    if arguments.json:
        sys.stdout.write(json.dumps(to_document(verdict), indent=1) + "\n")
    elif not by_document:
        print_verdict(verdict)
    return exit_code(verdict, require_faster=arguments.require_faster)


def serve(lines: Iterable[str]) -> int:
    """Evaluate one request per line until the input ends; the sandbox servers stay warm in between.

    Each answer ends with the line ``{"done": <response path>, "exit": <code>}``; a request that cannot be
    read, or fails in whatever way, answers with exit 2 and ``text``, and the next one is read. The judge holds no
    candidate code, so nothing carries over.
    """
    for line in lines:
        answer: dict[str, object] = {"done": "", "exit": 2}
        try:
            asked = json.loads(line)
            response = Path(asked["response"])
            answer["done"] = str(response)
            answer["exit"] = exit_code(_answer(_read_request(Path(asked["request"])), response, JsonLines()))
        except HarnessError as error:
            answer["text"] = error.text
        except Exception as error:  # noqa: BLE001 - one request never takes the next one's answer away
            answer["text"] = one_line(f"This request was not answered: {type(error).__name__}: {error}. Nothing was "
                                      "judged; mend the request, or send it again.")
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


def _answer(request: EvaluationRequest, response: Path | None, progress: JsonLines | Line | Quiet) -> Verdict:
    """Evaluate and, where a response path is given, write samples first and the verdict last."""
    from harness.evaluation.pipeline import evaluate_fully, failed

    try:
        evaluation = evaluate_fully(request, progress=progress)
        verdict, samples = evaluation.verdict, evaluation.samples
        document = canonical_json(to_document(verdict))
        measured = None if samples is None else canonical_json(to_document(samples))
    except HarnessError:
        raise
    except Exception as error:  # noqa: BLE001 - whoever waits for a document gets one
        verdict, measured = failed(request, error), None
        document = canonical_json(to_document(verdict))
    progress.close()
    if response is not None:
        if measured is not None:
            _write(samples_path(response), measured)
        _write(response, document)
    return verdict


def samples_path(response: Path) -> Path:
    """Where the raw samples of a verdict lie: beside it."""
    return response.with_name(response.name + ".samples.json")


def exit_code(verdict: Verdict, *, require_faster: bool = False) -> int:
    """0 passed (and faster where required), 1 refused, 2 where the evaluator could not judge."""
    if verdict.outcome in REFUSED_HERE:
        return 2
    if not verdict.passed or (require_faster and verdict.comparison is not Comparison.FASTER):
        return 1
    return 0


def _read_request(path: Path) -> EvaluationRequest:
    document = read_document(path, "The request", "Nothing was judged; give the path of a request document.")
    try:
        check_schema(document, "request")
        return from_document(document, EvaluationRequest)
    except DocumentError as error:
        raise UsageError(f"The request {path} is not valid: {error.text}. Nothing was judged; mend that "
                         "value.") from error


def _request_of(arguments: argparse.Namespace) -> EvaluationRequest:
    for name in ("file", "operator", "backend"):
        if getattr(arguments, name) is None:
            option = "a kernel file" if name == "file" else f"--{name}"
            raise UsageError(f"evaluate needs {option} (or --request with --response).")
    spec, backend = registry.get(arguments.operator), Backend(arguments.backend)
    source = read_kernel(arguments.file)
    baseline = spec.baseline(backend)
    against = [Opponent(Role.BASELINE, digest_source(baseline), baseline)]
    if arguments.incumbent is not None:
        incumbent = read_kernel(arguments.incumbent)
        against.insert(0, Opponent(Role.INCUMBENT, digest_source(incumbent), incumbent))
    hardware = _hardware(arguments.hardware, backend)
    if arguments.profile:
        _ensure_profiled(hardware)
    goal = Goal(operator=spec.name, backend=backend, hardware=hardware, workload=arguments.workload)
    return EvaluationRequest(
        job=uuid.uuid4().hex, nonce=os.urandom(8).hex(), purpose=Purpose.PROBE,
        operator=OperatorRef(spec.name, spec.version), backend=backend, hardware=hardware,
        workload=arguments.workload, goal=goal, candidate=SourceRef(digest_source(source), source),
        against=tuple(against), grant=Tier(arguments.grant), required=Required(isolation=0),
        deadline_s=arguments.deadline, sanitize=arguments.sanitize, profile=arguments.profile,
    )


def _hardware(asked: str | None, backend: Backend) -> str:
    from harness.backends.triton.targets import find_target
    from harness.hardware.digests import digest
    from harness.hardware.gpu import gpu_name

    here = hardware_name()
    if asked is None:
        return here if backend is Backend.NUMBA else _known_gpu(gpu_name())
    if backend is Backend.NUMBA and asked != here:
        raise UsageError(f"Numba kernels are timed on this machine, which is '{here}', not '{asked}'.")
    if backend is Backend.TRITON and asked != "interpreter":
        digest(asked)  # raises UsageError with the names known
        find_target(asked)  # raises UsageError where no plan can be compiled for it
    return asked


def _ensure_profiled(hardware: str) -> None:
    """Raises ``UsageError`` where no GPU of this host would be profiled."""
    from harness.hardware.gpu import present

    if not present(hardware):
        raise UsageError(f"--profile needs a GPU that judges the kernel here; '{hardware}' is none. Leave it out, or "
                         "run this on a host with that GPU.")


def _known_gpu(here: str | None) -> str:
    """This host's GPU where plans can be compiled for it, else the interpreter."""
    from harness.backends.triton.targets import TARGETS

    return here if here in TARGETS else "interpreter"


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all: a killed evaluation leaves no half document."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)
