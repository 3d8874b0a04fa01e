"""The judge's memory files as the profiled program opens them: from another process, by path, without a copy."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import torch

from harness.backends.triton.planning import lent_documents
from harness.domain.codec import from_document
from harness.domain.plan import LaunchPlan
from harness.evaluation.judge.inputs import all_attributes, make_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.profile.stage import request_of
from harness.operators import registry
from tests.harness.device.fakes import plan_document

READ = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import ctypes
from harness.backends.triton.launcher.call import window
from harness.backends.triton.launcher.memory import mapped
array = json.loads(sys.argv[2])
start, count = window(array, True)
with mapped(os.open(array["path"], os.O_RDONLY | os.O_CLOEXEC), array["nbytes"]) as view:
    sys.stdout.buffer.write(ctypes.string_at(view + start, count))
"""


def test_another_process_reads_the_lent_inputs() -> None:
    spec = registry.get("softmax")
    attributes = all_attributes(spec, {})
    inputs = make_inputs(spec, {"rows": 5, "cols": 300}, "normal", attributes, "bfloat16", 3)
    with Lending(spec, inputs, attributes, "bfloat16") as lending:
        plan = from_document(plan_document(lent_documents(lending.lent), attributes), LaunchPlan)
        (call,) = request_of([((plan, ()), lending.lent)])["calls"]
        array = call["arrays"][0]
        root = str(Path(__file__).resolve().parents[3])
        command = [sys.executable, "-I", "-c", READ, root, json.dumps(array)]
        done = subprocess.run(command, capture_output=True, check=True)
        wanted = ctypes.string_at(inputs["x"].contiguous().view(torch.int16).data_ptr(), 2 * 5 * 300)
        assert done.stdout == wanted
