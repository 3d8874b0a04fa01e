"""What no report may hold, whatever it says: refused before anything of it is believed, computed or shown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.bridge.api.errors import BridgeError

LARGEST, LONGEST, LONGEST_SOURCE = 1e15, 4000, 65_536
"""Numbers (counts of bytes and operations among them), texts and sources beyond these are nobody's measurement."""
LARGEST_VALUE = 1e80
"""Elements of outputs, and by how much they are off: cases take values to the ends of float32, and bounds refer to
sums and products of them."""
OF_ELEMENTS = re.compile(r"operators\[\d+\]\.kernels\[\d+\]\.verdict\.(correctness\.|reasons\[|notes\[)")
"""Where a verdict speaks of elements, from the root on: elsewhere names are free, and one may be spelled like a way."""
OLDEST = datetime(2024, 1, 1, tzinfo=UTC)
AHEAD = timedelta(days=366)
"""A host's clock may be wrong by months; centuries are no mistake."""
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def ensure_plain(document: Any) -> None:
    """Refuse numbers, texts, names and moments that are none.

    Raises:
        BridgeError: with the key of the first of them.
    """
    for key, value in _values(document, ""):
        if isinstance(value, float | int) and not isinstance(value, bool) and not abs(value) <= _largest(key):
            raise _invalid("A number there is beyond anything that is measured.", key)
        if isinstance(value, str):
            _text(key, value)


def _largest(key: str) -> float:
    return LARGEST_VALUE if OF_ELEMENTS.match(key) else LARGEST


def ensure_header(document: dict[str, Any]) -> None:
    """Hold the names and moments of the head against their forms; raises as ``ensure_plain`` does."""
    for key, form in (("hardware", NAME), ("workload", NAME), ("evaluator", VERSION)):
        if not form.fullmatch(str(document[key])):
            raise _invalid(f"'{str(document[key])[:60]}' is no {key}.", key)
    if document["backend"] not in ("triton", "numba"):
        raise _invalid("Only kernels of triton and numba are known.", "backend")
    for key in ("began", "finished"):
        if document.get(key) is not None:
            _moment(str(document[key]), key)
    told = {str(kernel["verdict"]["evaluator"]["version"]) for operator in document["operators"]
            for kernel in operator["kernels"] if kernel["verdict"] is not None}
    if told - {document["evaluator"]}:
        raise _invalid(f"Verdicts are of evaluator {', '.join(sorted(told))}, the report of {document['evaluator']}.",
                       "evaluator")


def ensure_contract(operator: str, backend: str, digest: str, source: str) -> None:
    """A source must have the ``run`` of its operator: bytes belong to one operator for good, so that a report cannot
    claim another one's kernels; raises as ``ensure_plain`` does."""
    from apps.bridge.api.sources import findings

    wrong = [one.text for one in findings(source.encode("utf-8"), operator, backend)
             if one.code in ("run_missing", "run_signature")]
    if wrong:
        raise _invalid(f"The source {digest[:19]} is no kernel of {operator}: {wrong[0]}", "sources")


def _values(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    todo = [(key, value)]
    while todo:
        key, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{key}.{name}" if key else str(name), item) for name, item in value.items()]
            yield from ((key, name) for name in value)
        elif isinstance(value, list):
            todo += [(f"{key}[{place}]", item) for place, item in enumerate(value)]
        else:
            yield key, value


def _text(key: str, value: str) -> None:
    if CONTROL.search(value):
        raise _invalid("A text there holds control or invisible characters.", key)
    if len(value) > (LONGEST_SOURCE if ".sources." in key else LONGEST):
        raise _invalid("A text there is longer than any report writes.", key)


def _moment(text: str, key: str) -> None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise _invalid("That is no moment.", key) from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not OLDEST <= moment <= datetime.now(UTC) + AHEAD:
        raise _invalid("That moment is not in the time that reports come from.", key)


def _invalid(text: str, key: str) -> BridgeError:
    return BridgeError(f"{text} Nothing was imported.", code="report_invalid", key=key[:200])


def ratio_of(pair: dict[str, Any]) -> float:
    """How many times as fast as the library the two medians of a best pair say that the kernel is."""
    return float(pair["peer_us"]) / float(pair["ours_us"])


def is_interval(ratio: dict[str, Any]) -> bool:
    """Whether a ratio is positive and lies inside its interval."""
    low, middle, high = (float(ratio[name]) for name in ("low", "ratio", "high"))
    return 0 < low <= middle <= high and math.isfinite(high)
