"""The table of a trust series: what was called what, against what could be expected. Pure; reads JSON lines."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]
WORDS = ("faster", "cannot_tell", "slower", "refused")


def read(path: Path) -> list[Line]:
    """Header and sessions; a last line that was cut short is left out."""
    lines = []
    for text in path.read_text("utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines


def cost_of_a_row(lines: Sequence[Line], rows: int) -> float:
    """What a repeated row costs as a share of a first one: the median over the calibration's sessions."""
    return statistics.median((1 / line["ratio"] - 1) / (line["extra"] / rows)
                             for line in timed([line for line in lines if line.get("series") == "calibration"]))


def timed(found: Sequence[Line]) -> list[Line]:
    """The sessions that ended with a comparison; the others broke the goal's limit on spread."""
    return [line for line in found if line.get("comparison") != "refused"]


def half_width(line: Line) -> float:
    """Half the width of the session's interval, of logarithms."""
    return (math.log(line["high"]) - math.log(line["low"])) / 2


def expected(line: Line) -> bool:
    """Whether detection was to be expected: the true effect exceeds the margin plus the interval's half-width."""
    return math.log(1 + line["effect"]) > math.log(1 + line["margin"]) + half_width(line)


def upper_bound(hits: int, trials: int, confidence: float = 0.95) -> float:
    """The highest rate that ``hits`` of ``trials`` do not contradict (exact, one-sided)."""
    low, high = hits / trials if trials else 0.0, 1.0
    for _ in range(50):
        rate = (low + high) / 2
        chance = sum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(hits + 1))
        low, high = (rate, high) if chance > 1 - confidence else (low, rate)
    return high


def rows_of(lines: Sequence[Line]) -> list[Line]:
    """One row per series, in the order of their effects."""
    sessions: dict[str, list[Line]] = {}
    for line in lines:
        if line.get("series") not in (None, "calibration"):
            sessions.setdefault(line["series"], []).append(line)
    return [_row(name, found) for name, found in sorted(sessions.items(), key=lambda item: item[1][0]["effect"])]


def _row(name: str, found: Sequence[Line]) -> Line:
    every, found = found, timed(found)
    wanted = [line for line in found if line["effect"] and expected(line)]
    other = [line for line in found if line["effect"] and not expected(line)]
    return {
        "series": name, "sessions": len(every), "effect": every[0]["effect"],
        "called": {word: sum(1 for line in every if line["comparison"] == word) for word in WORDS},
        "expected": len(wanted), "detected": sum(1 for line in wanted if line["comparison"] == "slower"),
        "unexpected": len(other), "told": sum(1 for line in other if line["comparison"] == "cannot_tell"),
        "median_slowdown": statistics.median(1 / line["ratio"] for line in found) - 1,
        "noise": statistics.median(line["noise"] for line in found), "noise_most": max(line["noise"] for line in found),
        "half_width": statistics.median(half_width(line) for line in found),
        "longer": sum(1 for line in found if line["longer"]),
        "disturbed": sum(1 for line in found if line["disturbed"]),
        "seconds": statistics.median(line["seconds"] for line in found),
    }


def show(lines: Sequence[Line], *, each: bool = False) -> None:
    """Print calibration, table and what follows from it; with ``each`` also every session."""
    header, *sessions = lines
    print("\n" + ", ".join(f"{key} {value}" for key, value in header.items() if value is not None))
    _show_calibration(sessions)
    if each:
        _show_each(sessions)
    rows = rows_of(sessions)
    print(f"\n{'series':12} {'n':>4} {'true':>7} {'median':>8} {'faster':>7} {'cannot tell':>12} {'slower':>7} "
          f"{'refused':>8} {'expected':>9} {'detected':>9} {'noise':>7} {'(most)':>7} {'+-':>7} "
          f"{'longer':>7} {'disturbed':>10} {'s':>6}")
    for row in rows:
        called = row["called"]
        print(f"{row['series']:12} {row['sessions']:4d} {row['effect']:7.2%} {row['median_slowdown']:8.2%} "
              f"{called['faster']:7d} {called['cannot_tell']:12d} {called['slower']:7d} {called['refused']:8d} "
              f"{row['expected']:9d} {row['detected']:9d} {row['noise']:7.2%} {row['noise_most']:7.2%} "
              f"{row['half_width']:7.2%} {row['longer']:7d} {row['disturbed']:10d} {row['seconds']:6.1f}")
    for row in rows:
        print(_sentence(row))


def _show_calibration(sessions: Sequence[Line]) -> None:
    found = timed([line for line in sessions if line.get("series") == "calibration"])
    for line in found:
        print(f"calibration: {line['extra']} rows twice: {1 / line['ratio'] - 1:.2%} slower "
              f"[{1 / line['high'] - 1:.2%}, {1 / line['low'] - 1:.2%}]")


def _show_each(sessions: Sequence[Line]) -> None:
    print(f"\n{'series':12} {'no.':>4} {'called':12} {'ratio':>7} {'interval':>18} {'noise':>7} {'margin':>7} expected")
    known = timed([line for line in sessions if line.get("series") != "calibration"])
    for line in sorted(known, key=lambda line: (line["effect"], line["number"])):
        word = "-" if not line["effect"] else "detection" if expected(line) else "cannot tell"
        print(f"{line['series']:12} {line['number']:4d} {line['comparison']:12} {line['ratio']:7.4f} "
              f"[{line['low']:8.4f},{line['high']:8.4f}] {line['noise']:7.2%} {line['margin']:7.2%} {word}")


def _sentence(row: Line) -> str:
    if not row["effect"]:
        wrong = row["called"]["faster"] + row["called"]["slower"]
        refused = (f" {row['called']['refused']} of {row['sessions']} refused, since the time varied by more than the "
                   "goal allows." if row["called"]["refused"] else "")
        return (f"{row['series']}: {wrong} of {row['sessions']} called different; the true rate is at most "
                f"{upper_bound(wrong, row['sessions']):.1%} (95 %).{refused}")
    text = f"{row['series']}: detected in {row['detected']} of {row['expected']} sessions where it could be expected"
    if row["unexpected"]:
        text += f"; of the other {row['unexpected']}, {row['told']} were called cannot tell"
    return f"{text}; called faster {row['called']['faster']} times."
