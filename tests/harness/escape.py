"""How tests let a candidate take back all of Python, as code that fooled every check before would: the walls around
its process must hold without the static stage and without the builtins that candidates are given."""

from __future__ import annotations

import re

PYTHON = "import __future__; __builtins__.update(__future__.__builtins__)\n"
"""The first line of such a candidate."""
_REACHING = re.compile(r"import (?:ctypes|os|socket|threading|sys|time)|\b(?:open|print|__import__|SystemExit)\(")


def where_needed(source: str) -> str:
    """``source``, with all of Python where it uses more than a candidate has; others keep their lines."""
    return PYTHON + source if _REACHING.search(source) else source
