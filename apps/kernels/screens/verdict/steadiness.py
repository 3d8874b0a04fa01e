"""How steady a measurement was, and what the device and the machine did meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.core import figures

EVENT_REASONS = (
    (0x2, "held at the set application clocks"), (0x4, "power limit reached"), (0x8, "slowed by the hardware"),
    (0x10, "held back by another board (sync boost)"), (0x20, "slowed for heat by the driver"),
    (0x40, "slowed for heat by the hardware"), (0x80, "slowed by the power brake"), (0x100, "held by a display clock"),
)
"""Bits of NVML's clock event reasons; bit 0 only says that the device was idle for a moment."""
RANGES = {
    "sm_mhz": ("SM clock", "MHz"), "memory_mhz": ("Memory clock", "MHz"), "power_w": ("Power", "W"),
    "celsius": ("Temperature", "°C"),
}


ROOFS = (
    ("copy_gbps", "Roof, copying", "GB/s", "measured"), ("read_gbps", "Roof, reading", "GB/s", "measured"),
    ("matrix_datasheet_tflops", "Roof, matrix products", "TFLOP/s", "from the data sheet"),
)


@dataclass(frozen=True, slots=True)
class SpreadRow:
    """One shape's spread against the goal's limit; ``share`` of the limit used."""

    shape: str
    cv: float
    limit: float | None
    share: float | None

    @property
    def state(self) -> str:
        """``met``, ``not_met`` or ``not_applicable`` where the goal sets no limit."""
        return "not_applicable" if self.limit is None else ("met" if self.cv <= self.limit else "not_met")


@dataclass(frozen=True, slots=True)
class RoundRow:
    """One round over all shapes: the slowest clock and everything that disturbed it."""

    number: int
    speed: float | None
    mhz: tuple[float, float] | None
    disturbed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A named reading with its value as text; ``tone`` is ``warn`` where a reader should look."""

    name: str
    text: str
    tone: str = ""


def spread_rows(document: Mapping[str, Any], goal: Mapping[str, Any]) -> list[SpreadRow]:
    """Robust variation of every shape beside the limit of the goal."""
    limit = (goal.get("limits") or {}).get("cv")
    return [SpreadRow(shape["shape"], shape["cv"], limit, shape["cv"] / limit if limit else None)
            for shape in (document.get("timing") or {}).get("shapes") or ()]


def round_rows(samples: Mapping[str, Any] | None) -> list[RoundRow]:
    """Clock and disturbances by round; empty where the samples say nothing of either."""
    shapes = (samples or {}).get("shapes") or ()
    count = max((max(len(shape.get(key) or ()) for key in ("speed", "mhz", "disturbed")) for shape in shapes),
                default=0)
    rows = []
    for place in range(count):
        speeds = _at(shapes, "speed", place)
        mhz = _at(shapes, "mhz", place)
        said = [f"{shape['shape']}: {shape['disturbed'][place]}" for shape in shapes
                if len(shape.get("disturbed") or ()) > place and shape["disturbed"][place]]
        rows.append(RoundRow(place + 1, min(speeds, default=None), (min(mhz), max(mhz)) if mhz else None, tuple(said)))
    return rows


def _at(shapes: Sequence[Mapping[str, Any]], key: str, place: int) -> list[float]:
    values = [shape[key][place] for shape in shapes if len(shape.get(key) or ()) > place]
    return [value for value in values if value is not None]


def telemetry(clocks: Mapping[str, Any]) -> list[Fact]:
    """What the evaluator read beside the times, in words; facts it does not know are left to the environment's list."""
    gpu = clocks.get("gpu") or {}
    found = [Fact(name, _range(gpu[key], unit)) for key, (name, unit) in RANGES.items() if gpu.get(key)]
    if gpu:
        reasons = event_reasons(gpu.get("event_reasons"))
        found.append(Fact("Throttle reasons", "not readable here" if reasons is None else ", ".join(reasons) or "none",
                          "warn" if reasons else ""))
        others = gpu.get("other_processes")
        found.append(Fact("Other processes on the device", "not readable here" if others is None else str(others),
                          "warn" if others else ""))
        found += [Fact(name, str(gpu[key]), "warn" if gpu[key] and key == "rounds_capped" else "") for key, name in (
            ("rounds_repeated", "Rounds measured again"), ("rounds_capped", "Rounds under a limit")) if key in gpu]
    roofs = clocks.get("roofs") or {}
    found += [Fact(name, f"{roofs[key]:.0f} {unit}, {how}") for key, name, unit, how in ROOFS if roofs.get(key)]
    native = clocks.get("native") or {}
    if native.get("host_us") is not None:
        walls = ", ".join(native.get("walls") or ()) or "none"
        found.append(Fact("Native parity run", f"{native['host_us']:.1f} µs with host code on {native.get('shape')}, "
                                               f"behind: {walls}"))
    if "speed" in clocks:
        speed = clocks["speed"]
        text = f"{figures.percent(speed, 0)} of the fastest seen"
        found.append(Fact("Slowest clock", text, "warn" if speed < 0.9 else ""))
    if "load" in clocks:
        found.append(Fact("Load average", f"{clocks['load']:.2f}"))
    if "overhead_us" in clocks:
        found.append(Fact("Cost of a request", f"{clocks['overhead_us']:.1f} µs, taken off"))
    library = clocks.get("library")
    if isinstance(library, Mapping):
        found.append(Fact("Best libraries here", ", ".join(
            f"{best['name']} {best['us']:.1f} µs on {shape}" for shape, best in library.items())))
    elif library:
        found.append(Fact("Rules on libraries", str(library)))
    if "verified_samples" in clocks:
        found.append(Fact("Timed outputs verified", f"{clocks['verified_samples']} blocks"))
    return found


def event_reasons(bits: str | None) -> list[str] | None:
    """The set reasons of an NVML bit mask in words; ``None`` where it was not read."""
    if bits is None:
        return None
    value = int(bits, 16)
    return [words for bit, words in EVENT_REASONS if value & bit]


def _range(values: Sequence[float], unit: str) -> str:
    low, high = values
    return f"{low:.0f} {unit}" if low == high else f"{low:.0f}–{high:.0f} {unit}"


@dataclass(frozen=True, slots=True)
class SlopeRow:
    """Microseconds per call of one side by device events, by the judge's clock and by the launcher's."""

    shape: str
    side: str
    events_us: float
    judge_us: float
    launcher_us: float

    @property
    def ratio(self) -> float | None:
        """Events over the judge's slope."""
        return self.events_us / self.judge_us if self.judge_us else None


def slope_rows(clocks: Mapping[str, Any]) -> list[SlopeRow]:
    """The judge's slope beside the device's events, shape by shape."""
    return [SlopeRow(shape, side, row["events_us"], row["judge_us"], row["launcher_us"])
            for shape, sides in (clocks.get("slopes") or {}).items() for side, row in sides.items()]
