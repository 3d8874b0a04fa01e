"""Errors a person can act on. ``text`` says what, where and what to do."""

from __future__ import annotations


class HarnessError(Exception):
    """Base of every error that carries a sentence for the reader.

    ``code`` names the troubleshooting entry ``docs/troubleshooting/<code>``.
    """

    code = "harness_error"

    def __init__(self, text: str, *, code: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        if code is not None:
            self.code = code


class DocumentError(HarnessError):
    """A document does not follow its schema; ``key`` is the dotted path of the wrong value."""

    code = "document_invalid"

    def __init__(self, text: str, *, key: str = "", code: str | None = None) -> None:
        super().__init__(text, code=code)
        self.key = key


class GoalError(DocumentError):
    """A goal contradicts itself, the operator or the rules; ``key`` names the value to change."""

    code = "goal_invalid"


class UsageError(HarnessError):
    """Wrong operator, backend, hardware or option on the command line (exit code 2)."""

    code = "usage"


class SourceError(HarnessError):
    """A candidate's bytes cannot be a kernel: encoding, size, nesting or syntax."""

    code = "source_unreadable"

    def __init__(self, text: str, *, line: int | None = None, code: str | None = None) -> None:
        super().__init__(text, code=code)
        self.line = line


class InfrastructureError(HarnessError):
    """The evaluator itself failed; never charged to a candidate and retried."""

    code = "infra_error"
