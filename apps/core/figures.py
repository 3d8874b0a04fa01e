"""How measured values are written: one pure function per kind of number, nothing known of Django.

Units and thousands follow a narrow no-break space, minus is ``−``, ranges use an en dash, and what
is missing is a word, never zero. Times come in microseconds or seconds, sizes in bytes, shares and
changes as fractions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

NARROW = "\u202f"
MINUS = "\u2212"
DASH = "\u2013"
NOT_TIMED = "not timed"
UNIT = re.compile(r"(?<=\d)(?: (?=(?:%|[µnm]?s|min|h|[KMG]iB|GB/s)(?![\w/]))|(?=%))")


def decimal(value: float, places: int) -> str:
    """``value`` with thousands apart and a true minus; a rounded zero carries no sign."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("∞" if value > 0 else MINUS + "∞")
    text = f"{abs(value):,.{places}f}".replace(",", NARROW)
    negative = value < 0 and any(digit in "123456789" for digit in text)
    return (MINUS if negative else "") + text


def count(value: int | float | None) -> str:
    """A whole number with thousands apart; ``none`` when there is none."""
    return "none" if value is None else decimal(float(value), 0)


def glued(text: str) -> str:
    """A sentence whose units stay on the line of their number: ``2 %`` and ``12%`` become one word."""
    return UNIT.sub(NARROW, text)


def microseconds(value: float | None, unit: bool = True) -> str:
    """A time given in µs: two decimals, one from 100 up, milliseconds from 10 000 µs up."""
    if value is None:
        return NOT_TIMED
    if unit and abs(value) >= 10_000:
        return decimal(value / 1000, 2 if abs(value) < 100_000 else 1) + NARROW + "ms"
    text = decimal(value, 2 if abs(value) < 100 else 1)
    return text + NARROW + "µs" if unit else text


def ratio(value: float | None) -> str:
    """A speed-up, old over new: ``1.046×``."""
    return NOT_TIMED if value is None else decimal(value, 3) + "×"


def interval(low: float | None, high: float | None) -> str:
    """The bounds of a ratio: ``[1.041, 1.051]``; empty where there is no interval."""
    if low is None or high is None:
        return ""
    return f"[{decimal(low, 3)}, {decimal(high, 3)}]"


def change(value: float | None, places: int = 1) -> str:
    """A ratio as a change: 1.037 is ``+3.7 %``."""
    if value is None:
        return NOT_TIMED
    return signed_percent(value - 1, places)


def signed_percent(value: float, places: int = 1) -> str:
    """A fraction with its sign: 0.037 is ``+3.7 %``."""
    text = decimal(value * 100, places)
    sign = "+" if value > 0 and not text.startswith(MINUS) else ""
    return sign + text + NARROW + "%"


def change_interval(low: float | None, high: float | None) -> str:
    """The bounds of a ratio as changes: ``[3.3, 4.1]``, in per cent."""
    if low is None or high is None:
        return ""
    return f"[{decimal((low - 1) * 100, 1)}, {decimal((high - 1) * 100, 1)}]"


def percent(value: float | None, places: int = 1) -> str:
    """A fraction as a share: 0.91 is ``91.0 %``; above 100 % whole numbers tell enough."""
    if value is None:
        return "unknown"
    return decimal(value * 100, places if abs(value) < 10 else 0) + NARROW + "%"


def gigabytes_per_second(value: float | None) -> str:
    """Bandwidth: ``4 249 GB/s``, with decimals below 100."""
    if value is None:
        return "unknown"
    return decimal(value, 0 if value >= 100 else 1) + NARROW + "GB/s"


def counted(number: int, word: str) -> str:
    """A number with its noun: ``1 round``, ``2 rounds``. For nouns that take an s."""
    return f"{count(number)} {word}" if number == 1 else f"{count(number)} {word}s"


def teraflops(value: float | None) -> str:
    """Arithmetic rate: ``650 TFLOP/s``, with a decimal below 100; below 0.1 in ``GFLOP/s``, as a processor has it."""
    if value is None:
        return "unknown"
    if value < 0.1:
        return decimal(1000 * value, 0 if value >= 0.01 else 1) + NARROW + "GFLOP/s"
    return decimal(value, 0 if value >= 100 else 1 if value >= 1 else 2) + NARROW + "TFLOP/s"


def money(value: float | None, currency: str = "") -> str:
    """An amount in its currency: ``12.34 USD``, below one with four decimals; ``no price`` where none is known."""
    if value is None:
        return "no price"
    places = 2 if abs(value) >= 1 or value == 0 else 4
    amount = decimal(value, places)
    if value > 0 and not any(digit in "123456789" for digit in amount):
        amount = "under 0.0001"
    return amount + (NARROW + currency if currency else "")


def size(value: float | None) -> str:
    """Bytes in the largest unit that keeps a digit before the point: ``34 KiB``."""
    if value is None:
        return "unknown"
    amount, units = float(value), ("B", "KiB", "MiB", "GiB", "TiB")
    place = 0
    while abs(amount) >= 1024 and place < len(units) - 1:
        amount, place = amount / 1024, place + 1
    whole = place == 0 or abs(amount - round(amount)) < 0.05 or abs(amount) >= 100
    return decimal(amount, 0 if whole else 1) + NARROW + units[place]


def duration(seconds: float | None) -> str:
    """How long: ``0.02 s``, ``34 s``, ``6 min``, ``5 h 12 min``, ``3 d 4 h``."""
    if seconds is None:
        return "unknown"
    seconds = max(0.0, float(seconds))
    if seconds == 0:
        return f"0{NARROW}s"
    if seconds < 10:
        return decimal(seconds, 2 if seconds < 0.1 else 1) + NARROW + "s"
    if seconds < 90:
        return f"{seconds:.0f}{NARROW}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}{NARROW}min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}{NARROW}h {minutes:02d}{NARROW}min" if minutes else f"{hours}{NARROW}h"
    days, hours = divmod(hours, 24)
    return f"{days}{NARROW}d {hours}{NARROW}h" if hours else f"{days}{NARROW}d"


def bound_share(value: float | None) -> str:
    """An error as a share of its bound: ``0.82``."""
    return "not compared" if value is None else decimal(value, 2)


def scientific(value: float | None) -> str:
    """An absolute error: ``2.4e-6``; exact zero is ``0``."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return decimal(value, 1)
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.replace('-', MINUS)}e{int(exponent)}".replace("e-", "e" + MINUS)


def short_digest(value: str | None) -> str:
    """Eight hex digits of a digest, its algorithm's name left away."""
    return "" if not value else value.removeprefix("sha256:")[:8]


def clock(at: datetime | None, now: datetime) -> str:
    """When, as a reader of the same day says it: ``16:14``, ``yesterday 09:02``, ``26 Nov 16:12``."""
    if at is None:
        return "never"
    local = at.astimezone(now.tzinfo)
    time = f"{local:%H:%M}"
    if local.date() == now.date():
        return time
    if local.date() == now.date() - timedelta(days=1):
        return f"yesterday {time}"
    year = f" {local:%Y}" if local.year != now.year else ""
    return f"{local.day} {local:%b}{year} {time}"


def age_seconds(at: datetime | None, now: datetime | None = None) -> float | None:
    """Seconds since ``at``; ``None`` when it never happened."""
    if at is None:
        return None
    return max(0.0, ((now or datetime.now(UTC)) - at).total_seconds())


UNITS: dict[str, Callable[[float], str]] = {
    "_s": duration, "_us": microseconds, "_bytes": size, "_gbps": gigabytes_per_second, "_tflops": teraflops,
}


def measured(name: str, value: object) -> str:
    """A named fact as words, its unit taken from the end of the name: ``first_call_s`` is ``first call 1.8 s``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{name} {value}"
    for suffix, write in UNITS.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} {write(value)}"
    return f"{name.replace('_', ' ')} {decimal(value, 0 if float(value).is_integer() else 2)}"
