"""What the engine refuses to fold into a campaign."""

from __future__ import annotations

from harness.domain.errors import HarnessError


class EngineError(HarnessError):
    """A result that cannot follow from the campaign's state, for instance a verdict for a round that never asked for
    one. The state is unchanged; the sentence says what was expected."""

    code = "engine_impossible_result"
