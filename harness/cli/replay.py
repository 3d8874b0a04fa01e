"""``python -m harness replay``: a stored campaign of a language model once more, without a network."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.campaign.replay import Replayed, replay
from harness.cli.numbers import COUNT
from harness.domain.codec import to_document
from harness.domain.errors import UsageError
from harness.domain.turn import Turn
from harness.domain.words import one_line, plain


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `optimize --agent openai --out DIR` wrote")
    parser.add_argument("--round", type=COUNT, metavar="N", help="print the conversation of this round")
    parser.add_argument("--json", action="store_true", help="print one document with every turn")


def run(arguments: argparse.Namespace) -> int:
    """Replay; exit 0 every proposal came out as recorded, 1 some did not, 2 no such campaign."""
    askings = list(replay(arguments.folder))
    if arguments.round is not None:
        _ensure_asked(arguments.round, askings)
    if arguments.json:
        sys.stdout.write(json.dumps({"version": 1, "askings": [to_document(one) for one in askings]}, indent=1) + "\n")
    else:
        for one in askings:
            _line(one)
        if arguments.round is not None:
            for turn in next((one.turns for one in askings if one.round == arguments.round), ()):
                _conversation(turn)
    return 1 if any(one.differs for one in askings) else 0


def _ensure_asked(wanted: int, askings: list[Replayed]) -> None:
    """Raises ``UsageError`` where the model was not asked in that round."""
    known = sorted({one.round for one in askings})
    if wanted not in known:
        rounds = ", ".join(map(str, known)) or "none"
        raise UsageError(f"The model was not asked in round {wanted}, so there is no conversation to print. Rounds "
                         f"with one: {rounds}.")


def _line(one: Replayed) -> None:
    tokens = sum(turn.answer.usage.total for turn in one.turns if turn.answer is not None)
    sys.stdout.write(f"round {one.round} {one.purpose}: {one_line(one.came, 200)} ({len(one.turns)} turns, {tokens:,} "
                     f"tokens){'' if not one.differs else ' DIFFERS: ' + one_line(one.differs, 400)}\n")


def _conversation(turn: Turn) -> None:
    """A turn as text; what a model or a kernel wrote is printed without control characters."""
    out = sys.stdout.write
    out(f"\n== round {turn.round}, asking {turn.attempt}, sample {turn.sample}, turn {turn.number}: {turn.status}"
        f"{f', {turn.blame} at fault' if turn.blame else ''} ==\n")
    for message in turn.messages:
        out(f"-- {message.get('role')}:\n{_said(message)}\n")
    if turn.answer is not None:
        for title, text in (("thought", turn.answer.reasoning), ("said", turn.answer.text),
                            ("refused", turn.answer.refusal)):
            if text:
                out(f"-- model {title}:\n{plain(text, 100_000)}\n")
        for call in turn.answer.calls:
            out(f"-- model calls {one_line(call.name, 80)}: {plain(call.arguments, 100_000)}\n")
    if turn.error:
        out(f"-- {one_line(turn.error, 800)}\n")


def _said(message: Mapping[str, Any]) -> str:
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls", ())]
    return plain("\n".join([str(message.get("content") or ""), *calls]), 100_000)
