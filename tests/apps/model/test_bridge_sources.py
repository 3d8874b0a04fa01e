"""What the site asks about a source ends in an answer or in an error of the bridge, whatever the text is."""

from __future__ import annotations

import pytest

from apps.bridge import api
from apps.bridge.api import sources
from apps.bridge.api.errors import BridgeError
from harness.evaluation.source import normal_form, tier
from harness.evaluation.static import check

SOURCE = b"import numba\n\n\n@numba.njit\ndef _k(x):\n    x[0] = 1\n\n\ndef run(x):\n    _k(x)\n"
_CHAIN = b"".join(b"    a%d = a%d\n" % (i, i + 1) for i in range(1_000))
BACKWARDS = SOURCE.replace(b"    _k(x)\n", _CHAIN + b"    a1000 = x\n    _k(a0)\n")


@pytest.mark.parametrize("error", [RecursionError(), MemoryError(), KeyError("x")])
def test_a_failing_analysis_is_an_error_of_the_bridge(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: object) -> None:
        raise error

    for module in (normal_form, tier, check):
        monkeypatch.setattr(module, "parse" if module is normal_form else "read_structure", fails)
    sources.normal_digest.cache_clear()
    sources.classify.cache_clear()
    for asked in (lambda: api.normal_digest(SOURCE),
                  lambda: api.classify(SOURCE, SOURCE + b"\n", "rms_norm", "numba")):
        with pytest.raises(BridgeError) as caught:
            asked()
        assert caught.value.code == "source_not_analysed"
    assert [finding.code for finding in sources.findings(SOURCE, "rms_norm", "numba")] == ["source_not_analysed"]


def test_a_text_made_to_be_analysed_for_minutes_is_a_finding() -> None:
    blocking = [f.code for f in sources.findings(BACKWARDS, "rms_norm", "numba") if f.severity == "block"]
    assert "source_too_complex" in blocking


def test_a_half_pair_is_an_error_with_its_line() -> None:
    with pytest.raises(BridgeError) as caught:
        api.normal_digest(SOURCE + b'A = "\\ud800"\n')
    assert (caught.value.code, caught.value.line) == ("source_characters", 11)
