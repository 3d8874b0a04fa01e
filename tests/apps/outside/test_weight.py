"""What the web process loads for outside agents: nothing before the first of them calls, and never a compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CODE = """
import json, sys
import kernelopt_site.asgi
before = [name for name in ("mcp", "mcp_types", "pydantic", "uvicorn") if name in sys.modules]
from apps.bridge.mcp import server
server.tools.offered()
heavy = [name for name in ("torch", "triton", "numba", "numpy", "openai") if name in sys.modules]
print(json.dumps({"before": before, "heavy": heavy}))
"""


def test_the_sdk_waits_for_the_first_caller_and_compilers_stay_out() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=Path(__file__).parents[3], stdout=subprocess.PIPE,
                          check=True)
    assert json.loads(done.stdout) == {"before": [], "heavy": []}
