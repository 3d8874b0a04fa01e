"""``python -m harness report``: operators x agents x libraries on the device at hand, as a document and a page."""

from __future__ import annotations

import argparse
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from harness.backends.present import ensure_present
from harness.cli.numbers import COUNT, MINUTES, SECONDS
from harness.domain.errors import DocumentError, UsageError
from harness.domain.files import read_document
from harness.domain.report import Report
from harness.domain.vocabulary import Backend, Tier
from harness.hardware.detect import hardware_name
from harness.hardware.gpu import gpu_name
from harness.operators import registry
from harness.report.settings import AGENTS, PHASES, USUAL, Folder, Settings, remember, remembered


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--out", type=Path, metavar="DIR", help="a new folder for everything that is measured")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with the report in this folder")
    parser.add_argument("--show", type=Path, metavar="FILE",
                        help="make the page of a stored report.json beside it and print its figures; measures nothing")
    parser.add_argument("--only", metavar="OP,OP", help="operators; all of them by default")
    parser.add_argument("--agents", metavar="AGENT,AGENT", help=f"by default {','.join(AGENTS)}")
    parser.add_argument("--phases", metavar="PHASE,PHASE", help=f"of {', '.join(PHASES)}; by default {','.join(USUAL)}")
    parser.add_argument("--backend", choices=[str(b) for b in Backend], help="triton where a GPU is here, else numba")
    parser.add_argument("--workload", default="llm")
    parser.add_argument("--grant", choices=["light", "medium", "heavy"], default="heavy", help="of the playbook")
    parser.add_argument("--strategy", choices=["halving", "exhaustive"], help="how autotune searches")
    parser.add_argument("--rounds", type=COUNT, default=20, metavar="N", help="of every campaign")
    parser.add_argument("--seconds", type=SECONDS, default=600.0, metavar="S", help="of every campaign")
    parser.add_argument("--budget-minutes", type=MINUTES, metavar="M",
                        help="begin nothing new after so many minutes; --resume goes on later")
    parser.add_argument("--peer-rounds", type=COUNT, metavar="N", help="rounds of a session with libraries")
    parser.add_argument("--pairs", type=COUNT, metavar="N", help="samples of a round of such a session")
    parser.add_argument("--space", type=COUNT, metavar="N",
                        help="configurations of a bulk search for every shape bucket (phase search; default all)")


def run(arguments: argparse.Namespace) -> int:
    """Run, write and print; exit 0 complete, 1 something is missing, 2 usage or environment."""
    from harness.report.page import page
    from harness.report.text import print_report

    if arguments.show is not None:
        report = _stored(arguments.show)
        arguments.show.with_suffix(".html").write_text(page(report), "utf-8")
        print_report(report, arguments.show.with_suffix(".html"))
        return 0 if report.complete else 1
    folder, settings, todo, began = _begun(arguments)
    from harness.cli.optimize import real_evaluator
    from harness.cli.progress import Quiet
    from harness.report.run import ReportRun, write

    budget = None if arguments.budget_minutes is None else 60.0 * arguments.budget_minutes
    signal.signal(signal.SIGTERM, _stopped)
    one = ReportRun(folder, settings, began, real_evaluator(Quiet()), _told, budget, todo)
    try:
        one.run()
    finally:
        report = write(one, page)
    print_report(report, folder.path / "report.html")
    return 0 if report.complete else 1


def _stopped(number: int, frame: object) -> None:
    """Whoever ends this process gets a report of what is there."""
    raise SystemExit(128 + number)


def _begun(arguments: argparse.Namespace) -> tuple[Folder, Settings, Settings, str]:
    """The folder, what the whole report holds, what this run does of it, and when the report was begun."""
    only, agents, phases = (_names(getattr(arguments, name)) for name in ("only", "agents", "phases"))
    _known("operator", only, registry.NAMES)
    _known("agent", agents, AGENTS)
    _known("phase", phases, PHASES)
    if arguments.resume is not None:
        folder = Folder(arguments.resume)
        settings, began = remembered(folder)
        ensure_present(settings.backend)
        _ensure_same_device(settings)
        todo = settings.narrowed(only, agents, phases)
        whole = settings.widened(todo)
        if whole != settings:
            remember(folder, whole, began)
        return folder, whole, todo, began
    if arguments.out is None:
        raise UsageError("report needs --out DIR for a new report, or --resume DIR to go on with one.")
    folder = Folder(arguments.out)
    if folder.read("run.json") is not None:
        raise UsageError(f"{arguments.out} holds a report already. Go on with --resume, or name another folder.")
    gpu = gpu_name()
    backend = Backend(arguments.backend or (Backend.TRITON if gpu else Backend.NUMBA))
    if backend is Backend.TRITON and gpu is None:
        raise UsageError("This host has no GPU that kernels can be launched on. Run the report where one is, or with "
                         "--backend numba.")
    ensure_present(backend)
    for name in only or registry.NAMES:
        workloads = registry.get(name).workloads
        if arguments.workload not in workloads or backend not in workloads[arguments.workload].shapes:
            raise UsageError(f"Operator {name} has no workload '{arguments.workload}' on {backend}. Known: "
                             f"{', '.join(workloads)}.")
    settings = Settings(
        backend, str(gpu) if backend is Backend.TRITON else hardware_name(), arguments.workload,
        only or registry.NAMES, agents or AGENTS, phases or USUAL, Tier(arguments.grant), arguments.strategy,
        arguments.rounds, arguments.seconds, arguments.peer_rounds, arguments.pairs,
        arguments.space)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    remember(folder, settings, began)
    return folder, settings, settings, began


def _ensure_same_device(settings: Settings) -> None:
    here = gpu_name() if settings.backend is Backend.TRITON else hardware_name()
    if here != settings.hardware:
        raise UsageError(f"The report in this folder is of '{settings.hardware}', this host is '{here}'. Figures of "
                         "different devices are never mixed: start another report here.")


def _stored(path: Path) -> Report:
    from harness.domain.codec import check_schema, from_document

    document = read_document(path, "The report", "Nothing was written; give the path of a report.json.")
    try:
        check_schema(document, "report")
        return from_document(document, Report)
    except DocumentError as error:
        raise UsageError(f"{path} is no report: {error.text}. Nothing was written; give a report.json as it was "
                         "made.") from error


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _known(what: str, names: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
    if names == ():
        raise UsageError(f"No {what} is named. Leave the option out for all that are usual, or name some of: "
                         f"{', '.join(known)}.")
    for name in names or ():
        if name not in known:
            raise UsageError(f"There is no {what} '{name}'. Known: {', '.join(known)}.")


def _told(text: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")
    sys.stderr.flush()
