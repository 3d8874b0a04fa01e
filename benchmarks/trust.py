"""Can the comparison be trusted? Identical kernels (A/A), and kernels slower by a known 2, 5 and 10 %, by sessions.

Run from the repository root: ``python benchmarks/trust.py --place cpu --aa 100 --power 30``. A killed series goes on
where it stopped. ``--table`` prints what the file holds and measures nothing.

Every session is what a recheck does: fresh rounds of candidate, opponent and a second copy of the opponent, pairs fixed
beforehand, one longer measurement where "cannot tell" promises more. Sessions of all kinds are mixed at random, so that
drift of the machine meets all of them. A slowed kernel computes some rows twice; what a repeated row costs is measured
first, with amounts of 25, 50 and 100 %, so that the true slow-down is known from the work.
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import trust_table
from benchmarks.series import OtherSeries, Series, facts
from harness import EVALUATOR_VERSION
from harness.evaluation.run import Refused
from harness.hardware import telemetry

AIMS = (0.02, 0.05, 0.10)
CALIBRATION_SHARES = (0.25, 0.5, 1.0)
CALIBRATIONS = 2
"""Sessions per share of the calibration."""
SEED = 7


def main() -> None:
    """Measure what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--aa", type=int, default=100, help="sessions of identical kernels")
    parser.add_argument("--power", type=int, default=30, help="sessions per slow-down")
    parser.add_argument("--shape", help="a measured shape of rms_norm; the one with most rows by default")
    parser.add_argument("--sessions", type=int, help="stop after so many new sessions; the next call goes on")
    parser.add_argument("--out", type=Path, help="JSON lines; default benchmarks/results/trust-<place>.jsonl")
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    parser.add_argument("--each", action="store_true", help="also print every session: noise, interval, expectation")
    chosen = parser.parse_args()
    path = chosen.out or Path(__file__).parent / "results" / f"trust-{chosen.place}.jsonl"
    if not chosen.table:
        try:
            _measure(chosen, path)
        except OtherSeries as error:
            raise SystemExit(str(error)) from error
    elif not path.exists():
        raise SystemExit(f"{path} is not there; measure first, without --table.")
    trust_table.show(trust_table.read(path), each=chosen.each)


def _measure(chosen: argparse.Namespace, path: Path) -> None:
    from benchmarks.places import place_of

    left = chosen.sessions if chosen.sessions is not None else 1 << 30
    with place_of(chosen.place, chosen.shape) as place:
        series = Series(path, facts(place.packages, kind="trust", evaluator=EVALUATOR_VERSION, place=chosen.place,
                                    operator="rms_norm", **place.facts))
        rows = place.point.dims["rows"]
        for share in CALIBRATION_SHARES:
            extra = round(share * rows)
            for number in range(len(series.of(series="calibration", extra=extra)), CALIBRATIONS):
                if left <= 0:
                    return
                left -= 1
                _add(series, place, {"series": "calibration", "extra": extra, "number": number})
        cost = trust_table.cost_of_a_row(series.lines, rows)
        for name, aim, number in schedule(chosen.aa, chosen.power):
            if series.of(series=name, number=number):
                continue
            if left <= 0:
                return
            left -= 1
            extra = 0 if aim == 0 else max(1, round(aim / cost * rows))
            _add(series, place, {"series": name, "extra": extra, "number": number, "effect": cost * extra / rows})


def schedule(aa: int, power: int) -> list[tuple[str, float, int]]:
    """All sessions, (series, slow-down, number), in one random order that is the same for every call."""
    wanted = [("A/A", 0.0, number) for number in range(aa)]
    wanted += [(f"{aim:.0%} slower", aim, number) for aim in AIMS for number in range(power)]
    return sorted(wanted, key=lambda one: random.Random(f"{SEED} {one[0]} {one[2]}").random())


def _add(series: Series, place: Any, known: dict[str, Any]) -> None:
    """Measure one session and keep it."""
    try:
        measured = place.session(known["extra"])
    except Refused as refused:  # the goal's limit on spread: neither faster nor slower nor "cannot tell"
        line = {**known, "comparison": "refused", "reason": refused.reasons[0].text, "load": telemetry.load_average(),
                "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}
        series.add(_rounded(line))
        print(f"{line['series']:12} {known['number']:4d} refused: {refused}", flush=True)
        return
    compared, (shape,) = measured.compared, measured.samples.shapes
    overall = compared.overall
    line = {
        **known, "comparison": str(compared.comparison), "ratio": overall.ratio, "low": overall.low,
        "high": overall.high, "rounds_won": overall.rounds_won, "rounds": compared.rounds, "noise": compared.noise,
        "margin": compared.margin, "longer": measured.longer, "seconds": round(measured.seconds, 3),
        "load": telemetry.load_average(), "disturbed": sum(1 for text in shape.disturbed if text),
        "speed": min(shape.speed, default=None), "mhz": list(shape.mhz),
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "us": {"other": [list(one.other) for rounds in shape.versus.values() for one in rounds],
               "candidate": [list(one.candidate) for rounds in shape.versus.values() for one in rounds],
               "aa": [[list(one.other), list(one.candidate)] for one in shape.aa]},
    }
    series.add(_rounded(line))
    print(f"{line['series']:12} {known['number']:4d} {line['comparison']:12} {overall.ratio:.4f} "
          f"[{overall.low:.4f}, {overall.high:.4f}] noise {compared.noise:.2%} {measured.seconds:.1f} s", flush=True)


def _rounded(value: Any) -> Any:
    """Figures with seven significant digits: far below what any clock resolves."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
