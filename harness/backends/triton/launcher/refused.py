"""Why a launcher does not run a plan."""

from __future__ import annotations


class PlanRefused(Exception):
    """A plan that the launcher will not run. ``code``: ``unsupported`` (``text`` names the feature), ``forged``,
    ``binary``, ``shared``, ``arguments``."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text
