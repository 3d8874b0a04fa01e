"""Python's parser, one thread at a time.

Python 3.11 counts the depth of the tree that it builds in one place for all threads. Building a tree runs the garbage
collector, which may run Python code and so let another thread build one: then a count is wrong, and ``ast.parse`` ends
with ``SystemError: AST constructor recursion depth mismatch`` on a text that is fine.
"""

from __future__ import annotations

import ast
import threading

_PARSING = threading.RLock()


def syntax_tree(source: str, filename: str = "<unknown>") -> ast.Module:
    """``ast.parse`` with all that it raises."""
    with _PARSING:
        return ast.parse(source, filename=filename)
