"""What the tests of the web side share: comparisons of equal samples are computed once.

``compare`` and ``noise_of`` are pure and resample thousands of times; the tests' samples are made by one seed, so most
verdicts of the suite rest on the same few documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.domain.codec import to_document
from harness.domain.digest import canonical_json
from harness.evaluation.timing import comparison


@pytest.fixture(autouse=True, scope="session")
def _comparisons_once() -> Iterator[None]:
    known: dict[tuple[Any, ...], Any] = {}

    def once(function: Callable[..., Any]) -> Callable[..., Any]:
        def answer(samples: Any, *more: Any) -> Any:
            key = (function.__name__, canonical_json(to_document(samples)), *more)
            if key not in known:
                known[key] = function(samples, *more)
            return known[key]
        return answer

    names = ("compare", "noise_of")
    real = {name: getattr(comparison, name) for name in names}
    for name in names:
        setattr(comparison, name, once(real[name]))
    yield
    for name in names:
        setattr(comparison, name, real[name])
