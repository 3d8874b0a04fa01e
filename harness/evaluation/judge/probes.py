"""Stage ``probes``: experiments that a kernel which merely looks right does not survive.

Bitwise repeats, sensitivity (a spike in every input must show, and only where it should), exact problems (no
tolerance), metamorphic relations, fresh contents for shapes already seen (a remembered answer is then a wrong one),
special values at large sizes and in every dtype, and sizes that no list names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.domain.vocabulary import Stage
from harness.evaluation.judge.exactness import exact_problems, relations
from harness.evaluation.judge.repeats import fresh_contents, repeats
from harness.evaluation.judge.sensitivity import sensitivity
from harness.evaluation.judge.session import Session, end_session, session_of
from harness.evaluation.judge.sizes import drawn_sizes
from harness.evaluation.judge.specials import special_values
from harness.evaluation.judge.trials import Trial, conduct, problems_of
from harness.evaluation.run import Place, Run

EXPERIMENTS: tuple[tuple[str, Callable[[Run, Session], Iterator[Trial]]], ...] = (
    ("repeat", repeats),  # first: bits that move by themselves say nothing about spikes
    ("sensitivity", sensitivity),
    ("exact problems", exact_problems),
    ("relations", relations),
    ("fresh contents", fresh_contents),
    ("special values", special_values),
    ("drawn sizes", drawn_sizes),
)


def probes(run: Run) -> None:
    """Run all probes; the first failure ends the stage. The session is closed at the end either way.

    A CPU worker's problems are made one at a time; those of a device all at once, before it is held.
    Raises ``Refused`` or ``CandidateFault``.
    """
    total = len(EXPERIMENTS)
    try:
        session = session_of(run)
        planned = [(name, experiment(run, session)) for name, experiment in EXPERIMENTS]
        if run.place is Place.DEVICE:
            planned = _prepared(run, session, planned)
        for done, (name, trials) in enumerate(planned):
            run.progress(Stage.PROBES, done, total, name)
            for trial in trials:
                conduct(session, trial)
    finally:
        end_session(run)
    run.progress(Stage.PROBES, total, total, "all probes passed")


def _prepared(
    run: Run, session: Session, planned: list[tuple[str, Iterator[Trial]]]
) -> list[tuple[str, Iterator[Trial]]]:
    """The same trials after plans, binaries and answers of all of them were made."""
    run.progress(Stage.PROBES, 0, len(planned), "preparing")
    known = [(name, list(trials)) for name, trials in planned]
    session.prepare(problems_of(trial for _, trials in known for trial in trials))
    return [(name, iter(trials)) for name, trials in known]
