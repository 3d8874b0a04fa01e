"""Two sources as a side-by-side diff: pure functions from text to rows, nothing known of Django's models.

``split_diff`` is the entry: line opcodes, alignment of changed lines, marks inside them, folds of
unchanged stretches, Pygments classes, and what is pinned to lines.
"""

from __future__ import annotations

from apps.reviews.diffing.rows import Diff, Fold, Row, Side, split_diff
from apps.reviews.diffing.tokens import Piece, highlight

__all__ = ["Diff", "Fold", "Piece", "Row", "Side", "highlight", "split_diff"]
