"""Python's parser, one thread at a time.

Python 3.11 counts the depth of the tree that it builds in one place for all threads. Building a tree runs the garbage
collector, which may run Python code and so let another thread build one: then a count is wrong, and ``ast.parse`` ends
with ``SystemError: AST constructor recursion depth mismatch`` on a text that is fine.
"""

from __future__ import annotations

import ast
import threading

_PARSING = threading.RLock()


def children(node: ast.AST) -> list[ast.AST]:
    """``ast.iter_child_nodes`` at once, in a third of its time: every analysis goes through whole trees."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


def all_nodes(tree: ast.AST) -> list[ast.AST]:
    """``ast.walk`` at once, in its order."""
    found = [tree]
    for node in found:  # grows meanwhile
        found += children(node)
    return found


def syntax_tree(source: str, filename: str = "<unknown>") -> ast.Module:
    """``ast.parse`` with all that it raises."""
    with _PARSING:
        return ast.parse(source, filename=filename)
