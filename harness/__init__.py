"""The optimisation harness: plain Python that knows nothing of the web application.

Importing this package, its ``domain`` and the operator specs loads neither torch, triton,
numba nor openai; the evaluator's processes load them when they need them.
"""

EVALUATOR_VERSION = "2.5"
"""Version of the evaluator. Raising it re-verifies every champion (DESIGN section 6)."""
