"""What the static checks found: findings with a severity, each under a code with a troubleshooting entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.domain.verdict import Reason
from harness.domain.vocabulary import Stage


class Severity(StrEnum):
    """``block`` refuses the candidate, ``look`` asks a reviewer to look, ``note`` informs."""

    BLOCK = "block"
    LOOK = "look"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; ``reason`` carries code, sentence and line."""

    severity: Severity
    reason: Reason


BLOCK, LOOK, NOTE = Severity.BLOCK, Severity.LOOK, Severity.NOTE

CODES: dict[str, Severity] = {
    # the file as a whole
    "source_unreadable": BLOCK, "source_too_large": BLOCK, "source_encoding": BLOCK, "source_empty": BLOCK,
    "source_too_complex": BLOCK, "source_not_analysed": BLOCK,
    "source_characters": BLOCK, "source_nesting": BLOCK, "source_identifier": BLOCK, "syntax_error": BLOCK,
    "params_not_literal": BLOCK, "params_rebound": BLOCK, "params_undeclared": LOOK,
    # module level
    "run_missing": BLOCK, "run_signature": BLOCK, "import_not_allowed": BLOCK, "redefinition": BLOCK,
    "module_statement": BLOCK, "module_state": BLOCK, "decorator_not_allowed": BLOCK, "decorator_option": BLOCK,
    "autotune": BLOCK, "numba_cache": BLOCK, "explicit_signature": BLOCK, "object_mode": BLOCK,
    "no_kernel": BLOCK, "kernel_unused": LOOK, "output_unused": LOOK, "dead_branch": LOOK,
    # names and syntax
    "name_not_allowed": BLOCK, "forbidden_builtin": BLOCK, "private_name": BLOCK, "attribute_not_allowed": BLOCK,
    "kernel_attribute": BLOCK, "module_as_value": BLOCK, "shadows_import": BLOCK, "syntax_not_allowed": BLOCK,
    "exception_handling": BLOCK, "nested_import": BLOCK, "undefined_name": BLOCK, "scope_unclear": BLOCK,
    "shadows_builtin": BLOCK, "callee": BLOCK, "annotation": BLOCK,
    # state, reading, computing on the host
    "global_state": BLOCK, "default_argument": BLOCK, "attribute_store": BLOCK, "kept_state": BLOCK,
    "library_compute": BLOCK, "host_array_math": BLOCK, "host_read": BLOCK, "address": BLOCK, "print_call": BLOCK,
    "launch_option": BLOCK, "return_value": LOOK,
    # for the reviewer
    "unbounded_loop": BLOCK, "parallel_race": BLOCK, "loop_condition": LOOK, "mask_missing": LOOK, "numeric_mode": LOOK,
    "narrow_accumulator": LOOK, "atomics": LOOK, "inline_assembly": LOOK, "shape_branch": NOTE, "shape_refused": LOOK,
    "shape_only": LOOK, "type_branch": BLOCK, "second_opinion": NOTE,
    "prohibited": BLOCK,
}
"""Every code of the static stage with its severity."""


@dataclass
class Report:
    """Collects findings; the same code is reported once per line and at most ``limit`` times in all."""

    limit: int = 8
    _found: dict[tuple[str, int | None], Finding] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def add(self, code: str, text: str, line: int | None = None) -> None:
        """Record a finding under ``code``; ``text`` is a sentence or two: what and what to do."""
        key = (code, line)
        if key in self._found or self._counts.get(code, 0) >= self.limit:
            return
        self._counts[code] = self._counts.get(code, 0) + 1
        self._found[key] = Finding(CODES[code], Reason(code=code, stage=Stage.STATIC, text=text, line=line))

    def findings(self) -> tuple[Finding, ...]:
        """All findings, blocking ones first, then by line."""
        order = list(Severity)
        return tuple(sorted(self._found.values(),
                            key=lambda f: (order.index(f.severity), f.reason.line or 0, f.reason.code)))
