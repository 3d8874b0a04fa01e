"""How a candidate's process failed, as an outcome and a sentence."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from typing import Any

from harness.domain.vocabulary import Outcome
from harness.domain.words import QUOTE_KEPT, TEXT_KEPT, plain, quoted
from harness.evaluation.ports import Fault
from harness.evaluation.sandbox import watch

CRASH_SIGNALS = (signal.SIGSEGV, signal.SIGBUS)
OUTCOMES_SAID = (
    Outcome.RUNTIME_ERROR, Outcome.COMPILE_ERROR, Outcome.OUT_OF_BOUNDS, Outcome.OVER_LIMIT, Outcome.POLICY_VIOLATION,
    Outcome.INCORRECT_SHAPE, Outcome.INCORRECT_DTYPE,
)
"""What any candidate's process may report of itself."""
MOST_LINES = 1 << 20
_CANDIDATE_LINE = re.compile(r'File "candidate\.py", line (\d+)')


def late(seconds: float) -> Fault:
    """The deadline passed."""
    text = f"The candidate did not answer within {seconds:g} s and was stopped. Look for a loop that does not end."
    return Fault(Outcome.TIMEOUT, "timeout", text)


def forged(what: str) -> Fault:
    """The candidate used the judge's channel itself."""
    text = f"The candidate tampered with the channel to the judge: {plain(what, 200)}. Only fill the outputs."
    return Fault(Outcome.REWARD_HACK, "forged_answer", text)


def said(document: Any, declines: Sequence[Outcome] = ()) -> Fault:
    """A failure that the process itself reported: an untrusted document, so every part is checked.

    ``declines`` are further outcomes, which are charged to nobody or only in part, that its mode can honestly meet.
    """
    known = document if isinstance(document, dict) else {}
    allowed = (*OUTCOMES_SAID, *declines)
    outcome = next((o for o in allowed if o == known.get("outcome")), Outcome.RUNTIME_ERROR)
    line = known.get("line")
    code = known.get("code")
    text = known.get("text")
    return Fault(
        outcome=outcome,
        code=code if isinstance(code, str) and re.fullmatch(r"[a-z0-9_]{1,40}", code) else str(outcome),
        text=_said(text, outcome),
        line=line if isinstance(line, int) and not isinstance(line, bool) and 0 < line < MOST_LINES else None,
    )


def _said(text: object, outcome: Outcome) -> str:
    """The process's own words, as such: an exception's message is the candidate's, and so may be all the rest."""
    if not isinstance(text, str) or not plain(text):
        return "The candidate failed without a message."
    kept = QUOTE_KEPT if outcome is Outcome.RUNTIME_ERROR else TEXT_KEPT
    return f"The candidate's process says: {quoted(text, kept)}"


EXCESSES = {
    watch.MEMORY: ("memory_limit", "The candidate used more memory than it may, all its processes together, and was "
                   "stopped. Use less scratch."),
    watch.PROCESSES: ("process_limit", "The candidate started too many threads or processes and was stopped. Start "
                      "none."),
    watch.DISK: ("disk_limit", "The candidate wrote too many or too large files and was stopped. Write none."),
    watch.OUTPUT: ("output_limit", "The candidate printed without end and was stopped. Print nothing."),
}


def exceeded(what: str) -> Fault:
    """The keeper ended the candidate, which used too much of something (``watch.excess``)."""
    code, text = EXCESSES[what]
    return Fault(Outcome.OVER_LIMIT, code, text)


def crashed(status: int, output: str, *, in_guard: bool) -> Fault:
    """The process ended with exit code ``status`` (negative: signal) before it had answered."""
    lines = _CANDIDATE_LINE.findall(output)
    line = int(lines[0]) if lines else None
    if status >= 0:
        text = f"The candidate ended its process (exit code {status}) before answering. {_printed(output)}".strip()
        return Fault(Outcome.RUNTIME_ERROR, "early_exit", text, line)
    number = -status
    name = signal.Signals(number).name if number in signal.Signals.__members__.values() else f"signal {number}"
    if number in CRASH_SIGNALS and in_guard:
        text = (f"The kernel read or wrote outside the arrays it was given and was stopped by {name} in the guarded "
                "memory beside one of them. Check the index ranges.")
        return Fault(Outcome.OUT_OF_BOUNDS, "guard_page", text, line)
    if number == signal.SIGKILL:
        text = "The candidate's process was killed by the system, most likely for the memory it used. Use less scratch."
        return Fault(Outcome.OVER_LIMIT, "memory_limit", text, line)
    text = f"The candidate's process crashed with {name}. {_printed(output)}".strip()
    return Fault(Outcome.RUNTIME_ERROR, "crash", text, line)


def _printed(output: str) -> str:
    printed = output.partition("Fatal Python error")[0]  # the interpreter's own report of the crash follows there
    last = plain(printed.strip().rpartition("\n")[2], 200)
    return f"It last printed: {quoted(last)}." if last else ""
