"""A verdict document as rows for tables and strips. Pure: documents in, plain objects out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import log
from statistics import median
from typing import Any

from apps.kernels.plots import Density, ShapeSides, density
from apps.kernels.screens.verdict.profile import ProfileSheet, profile_sheet

MARGIN = 0.02
NOISE_FACTOR = 3
CLOSE = 0.75
ROLE_WORDS = {"incumbent": "incumbent", "champion": "champion", "baseline": "baseline", "library": "best library"}
STAGES = (
    "admit",
    "static",
    "arithmetic",
    "plan",
    "resources",
    "smoke",
    "correctness",
    "probes",
    "benchmark",
    "recheck",
    "profile",
)
ROOFS = (("copy", "copy_share"), ("read", "read_share"), ("matmul", "matmul_share"))
HEAT = ((0.75, "h4"), (0.5, "h3"), (0.25, "h2"))


@dataclass(frozen=True, slots=True)
class Versus:
    """One ratio with its interval, and whom it compares with."""

    role: str
    ratio: float
    low: float
    high: float
    rounds_won: int | None = None

    @property
    def word(self) -> str:
        """The opponent in words."""
        return ROLE_WORDS.get(self.role, self.role)

    def says(self, margin: float, rounds: int) -> str:
        """``faster``, ``slower`` or ``cannot_tell`` by the margin and the rounds won (4 of 5)."""
        enough = -(-4 * rounds // 5)
        if self.low > 1 + margin and (self.rounds_won is None or self.rounds_won >= enough):
            return "faster"
        if self.high < 1 / (1 + margin) and (self.rounds_won is None or self.rounds_won <= rounds - enough):
            return "slower"
        return "cannot_tell"


@dataclass(frozen=True, slots=True)
class RatioMark:
    """Places of one interval on the small log axis (0 to 180), for inline SVG."""

    low: float
    at: float
    high: float
    one: float
    band_low: float
    band_width: float


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """One measured shape."""

    shape: str
    weight: float
    median: float
    p10: float
    p90: float
    cv: float
    cold: float | None
    hot: float | None
    first_call: float | None
    host: float | None
    gbps: float | None
    tflops: float | None
    roof_share: float | None
    roofs: tuple[tuple[str, float], ...]  # share of each measured roof: copy, read, matmul
    versus: Versus | None
    other_median: float | None
    says: str
    regressed: bool
    density: Density | None
    mark: RatioMark | None


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One correctness case; ``heat`` is the cell's class."""

    name: str
    regime: str
    dtype: str
    passed: bool
    share: float | None
    error: float | None
    baseline_error: float | None
    library_error: float | None
    heat: str


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One hard limit of the goal against what was measured; ``share`` of the limit used up.

    ``excused``: over the limit in a verdict that passed. The evaluator refuses an unsteady kernel only where the
    other kernel of the session was steady; otherwise the machine was unsteady and nobody is charged.
    """

    name: str
    value: float | None
    allowed: float | None
    unit: str
    share: float | None
    excused: bool = False

    @property
    def state(self) -> str:
        """``met``, ``not_met``, or ``not_applicable`` where nothing was measured."""
        if self.value is None or self.allowed is None or self.excused:
            return "not_applicable"
        return "met" if self.value <= self.allowed else "not_met"


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage of the evaluation: ``state`` is ``done``, ``fail``, ``skipped`` or ``''`` (not reached)."""

    name: str
    seconds: float | None
    state: str


@dataclass(slots=True)
class Sheet:
    """Everything a page shows of one verdict."""

    document: Mapping[str, Any]
    role: str
    overall: dict[str, Versus]
    shapes: list[ShapeRow]
    cases: list[CaseRow]
    limits: list[LimitRow]
    stages: list[StageRow]
    noise: float | None
    margin: float | None
    rounds: int | None
    pairs: int | None
    evidence: str
    longer: bool
    sides: list[ShapeSides] = field(default_factory=list)
    opponent: str = ""  # who the other side of the comparison is on this page, where the role says less

    @property
    def main(self) -> Versus | None:
        """The comparison that the verdict's word refers to."""
        return self.overall.get(self.role)

    @property
    def role_word(self) -> str:
        """The opponent of the main comparison in words."""
        return self.opponent or ROLE_WORDS.get(self.role, self.role)

    @property
    def round_word(self) -> str:
        """What a round of the clock is: a GPU's are the launcher's, a CPU's have processes of their own."""
        return "launcher" if str(self.document.get("hardware", "")).startswith("nvidia-") else "process"

    @property
    def passed_cases(self) -> int:
        """How many cases passed."""
        return sum(case.passed for case in self.cases)

    @property
    def worst_case(self) -> CaseRow | None:
        """The case that uses up most of its bound; a failed one first."""
        return max(self.cases, key=lambda case: (not case.passed, case.share or 0.0), default=None)

    @property
    def worst_shape(self) -> ShapeRow | None:
        """The shape with the smallest ratio."""
        compared = [row for row in self.shapes if row.versus]
        return min(compared, key=lambda row: row.versus.ratio if row.versus else 0.0, default=None)

    @property
    def roof_share(self) -> float | None:
        """Weighted share of the measured roof over the shapes that have one."""
        known = [(row.weight, row.roof_share) for row in self.shapes if row.roof_share is not None]
        total = sum(weight for weight, _ in known)
        return sum(weight * share for weight, share in known) / total if total else None

    @property
    def cv(self) -> float | None:
        """The largest robust coefficient of variation of a shape."""
        return max((row.cv for row in self.shapes), default=None)

    @property
    def profile(self) -> ProfileSheet | None:
        """What binds the kernel, where it was profiled."""
        return profile_sheet(self.document)

    @property
    def limits_met(self) -> tuple[int, int]:
        """(met, applicable)."""
        states = [row.state for row in self.limits if row.state != "not_applicable"]
        return states.count("met"), len(states)

    @property
    def limits_excused(self) -> int:
        """How many limits were measured above what is allowed and not applied."""
        return sum(row.excused for row in self.limits)


def sheet(
    document: Mapping[str, Any], *, samples: Mapping[str, Any] | None = None, goal: Mapping[str, Any] | None = None
) -> Sheet:
    """Read a verdict document; ``samples`` (the raw samples document) adds distributions, ``goal`` its limits."""
    timing = document.get("timing") or {}
    noise = timing.get("noise")
    margin = max(MARGIN, NOISE_FACTOR * noise) if noise is not None else None
    overall = {role: versus(role, value) for role, value in (timing.get("overall") or {}).items()}
    role = document.get("compared_with") or next(iter(overall), "baseline")
    sides = sides_of(samples, role)
    return Sheet(
        document=document,
        role=role,
        overall=overall,
        noise=noise,
        margin=margin,
        rounds=timing.get("rounds"),
        pairs=timing.get("pairs"),
        evidence=timing.get("evidence") or "",
        longer=bool(timing.get("longer")),
        shapes=shape_rows(timing, role, document.get("regressions") or (), margin or MARGIN, sides),
        cases=[case_row(case) for case in (document.get("correctness") or {}).get("cases", ())],
        limits=limit_rows(document, goal or {}),
        stages=stage_rows(document),
        sides=list(sides.values()),
    )


def versus(role: str, value: Mapping[str, Any]) -> Versus:
    """A ratio of the document."""
    return Versus(role, value["ratio"], value["low"], value["high"], value.get("rounds_won"))


def sides_of(samples: Mapping[str, Any] | None, role: str) -> dict[str, ShapeSides]:
    """All samples by shape for the main opponent, rounds joined."""
    found: dict[str, ShapeSides] = {}
    for shape in (samples or {}).get("shapes", ()):
        rounds = shape.get("versus", {}).get(role) or ()
        found[shape["shape"]] = ShapeSides(
            shape["shape"],
            tuple(value for one in rounds for value in one["other"]),
            tuple(value for one in rounds for value in one["candidate"]),
        )
    return found


def shape_rows(
    timing: Mapping[str, Any],
    role: str,
    regressions: tuple[str, ...] | list[str],
    margin: float,
    sides: Mapping[str, ShapeSides],
) -> list[ShapeRow]:
    """Rows of the timing table, all on one ratio axis."""
    shapes = timing.get("shapes") or ()
    found = [versus(role, shape["versus"][role]) if role in shape.get("versus", {}) else None for shape in shapes]
    present = [one for one in found if one]
    low = min([one.low for one in present] + [1 - 1.5 * margin])
    high = max([one.high for one in present] + [1 + 1.5 * margin])
    rows = []
    for shape, one in zip(shapes, found, strict=True):
        side = sides.get(shape["shape"])
        other = median(side.other) if side and side.other else (shape["median_us"] * one.ratio if one else None)
        rows.append(
            ShapeRow(
                shape["shape"],
                shape["weight"],
                shape["median_us"],
                shape["p10"],
                shape["p90"],
                shape["cv"],
                shape.get("cold_us"),
                shape.get("hot_us"),
                shape.get("first_call_us"),
                shape.get("host_us"),
                shape.get("gbps"),
                shape.get("tflops"),
                shape.get("roof_share"),
                tuple((name, shape[key]) for name, key in ROOFS if shape.get(key) is not None),
                one,
                other,
                one.says(margin, timing.get("rounds") or 5) if one else "alone",
                shape["shape"] in regressions,
                density(side.other, side.candidate) if side else None,
                ratio_mark(one, low, high, margin) if one else None,
            )
        )
    return rows


def ratio_mark(one: Versus, low: float, high: float, margin: float) -> RatioMark:
    """Places on an axis of 180 units from ``low`` to ``high`` (logarithmic), 8 units of padding."""

    def x_of(value: float) -> float:
        return round(8 + 164 * (log(value) - log(low)) / ((log(high) - log(low)) or 1.0), 1)

    band_low, band_high = x_of(1 / (1 + margin)), x_of(1 + margin)
    return RatioMark(
        x_of(one.low), x_of(one.ratio), x_of(one.high), x_of(1.0), band_low, round(band_high - band_low, 1)
    )


def case_row(case: Mapping[str, Any]) -> CaseRow:
    """One case with its heat class."""
    share = case.get("worst_ratio")
    heat = "h1" if share is None else next((css for bound, css in HEAT if share >= bound), "h1")
    return CaseRow(
        case["name"],
        case["regime"],
        case["dtype"],
        case["passed"],
        share,
        case.get("error"),
        case.get("baseline_error"),
        case.get("library_error"),
        heat,
    )


def limit_rows(document: Mapping[str, Any], goal: Mapping[str, Any]) -> list[LimitRow]:
    """The goal's hard limits beside what the verdict measured."""
    limits = goal.get("limits") or {}
    resources = document.get("resources") or {}
    launches = resources.get("launches") or ()
    timing = document.get("timing") or {}
    cases = (document.get("correctness") or {}).get("cases") or ()

    def largest(key: str) -> float | None:
        return max((launch[key] for launch in launches if launch.get(key) is not None), default=None)

    def row(name: str, value: float | None, allowed: float | None, unit: str) -> LimitRow:
        share = value / allowed if value is not None and allowed else (0.0 if value == 0 and allowed == 0 else None)
        return LimitRow(name, value, allowed, unit, share)

    rows = []
    if launches:
        rows += [
            row("Registers/thread", largest("registers"), limits.get("registers"), ""),
            row("Shared/block", largest("shared_bytes"), limits.get("shared_bytes"), "bytes"),
            row("Spills", largest("spill_bytes"), limits.get("spill_bytes"), "bytes"),
        ]
    rows.append(
        row(
            "Error/bound",
            max((case["worst_ratio"] for case in cases if case.get("worst_ratio") is not None), default=None),
            1.0,
            "share",
        )
    )
    spread = row(
        "Spread (cv)",
        max((shape["cv"] for shape in timing.get("shapes") or ()), default=None),
        limits.get("cv"),
        "percent",
    )
    if spread.state == "not_met" and document.get("outcome") == "passed":
        spread = replace(spread, excused=True)
    rows.append(spread)
    return [one for one in rows if one.allowed is not None or one.value is not None]


def stage_rows(document: Mapping[str, Any]) -> list[StageRow]:
    """All stages in order with their own clocks; the one that refused is marked."""
    seconds = document.get("stages") or {}
    passed = document.get("outcome") == "passed"
    rows = []
    for name in STAGES:
        refused = not passed and name == document.get("stage")
        state = "fail" if refused else ("done" if name in seconds else ("skipped" if passed else ""))
        rows.append(StageRow(name, seconds.get(name), state))
    return rows
