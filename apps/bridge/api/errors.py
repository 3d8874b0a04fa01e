"""The bridge's own error, so that no app has to import the harness to catch one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class BridgeError(Exception):
    """The harness refused something; ``text`` says what and what to do, ``key`` or ``line`` say where."""

    def __init__(self, text: str, *, code: str = "harness_error", key: str = "", line: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.code = code
        self.key = key
        self.line = line


@contextmanager
def translated() -> Iterator[None]:
    """Turn the harness's errors into ``BridgeError``.

    An exhausted stack or memory is one of them: what is asked here is asked about texts of unknown origin.
    """
    from harness.domain.errors import HarnessError

    try:
        yield
    except HarnessError as error:
        raise BridgeError(
            error.text, code=error.code, key=getattr(error, "key", ""), line=getattr(error, "line", None)
        ) from error
    except (RecursionError, MemoryError) as error:
        raise BridgeError(f"The harness could not read this: it ended with {type(error).__name__}. Nothing was "
                          "changed. Shorten or flatten what was sent.", code="source_not_analysed") from error
