"""Reading a table of a settings file key by key, with errors that name file, table and key but show no value."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from harness.domain.errors import HarnessError


class EndpointsError(HarnessError):
    """The file of endpoints is wrong; the text names file, table and key."""

    code = "endpoints_invalid"


class Table:
    """One table of the file, read key by key; what nobody read is unknown."""

    def __init__(self, path: Path, name: str, document: Any) -> None:
        self.path, self.name = path, name
        if not isinstance(document, dict):
            raise EndpointsError(f"{path}: {name} has to be a table of keys.")
        self._left = dict(document)

    def wrong(self, key: str, why: str) -> EndpointsError:
        """The error for a key. Its value is not shown: it may be a secret in the wrong place."""
        return EndpointsError(f"{self.path}: {self.name}: {key}: {why}.")

    def text(self, key: str, default: str | None = None) -> str:
        """A text without blanks at its ends; without a default it must be there."""
        value = self._left.pop(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.wrong(key, "it is missing" if value is None else "it has to be a text in quotes")
        return value.strip()

    def words(self, key: str) -> list[str]:
        """A list of texts, empty when absent."""
        value = self.items(key)
        if not all(isinstance(item, str) and item for item in value):
            raise self.wrong(key, "it has to be a list of words in quotes")
        return value

    def items(self, key: str) -> list[Any]:
        """A list, empty when absent."""
        value = self._left.pop(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "it has to be a list")
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """A table, empty when absent."""
        value = self._left.pop(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "it has to be a table")
        return value

    def seconds(self, key: str, default: float, least: float = 0.1) -> float:
        """A time of up to a day."""
        return self._number(key, default, least, 86_400.0)

    def money(self, key: str, default: float | None = None) -> float:
        """An amount that is not negative."""
        return self._number(key, default, 0.0, 1e6)

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self._number(key, default, least, most)
        if value != int(value):
            raise self.wrong(key, "it has to be a whole number")
        return int(value)

    def _number(self, key: str, default: float | None, least: float, most: float) -> float:
        value = self._left.pop(key, default)
        if value is None:
            raise self.wrong(key, "it is missing")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) \
                or not least <= value <= most:
            raise self.wrong(key, f"it has to be a number from {least:g} to {most:g}")
        return float(value)

    def done(self) -> None:
        """Refuse keys that nobody knows: a misspelt limit would not hold."""
        if self._left:
            raise self.wrong(next(iter(self._left)), "no such key is known here; see docs/endpoints.md")
