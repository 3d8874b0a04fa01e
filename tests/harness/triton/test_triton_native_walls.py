"""Behind the native process's walls Triton still compiles and a candidate still runs; nothing else is in reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from triton_candidates import ARGUMENTS, candidate

from harness.backends.triton.native.process import ROOT

SCRIPT = """
    import json, os, pathlib, socket, subprocess, sys, tempfile
    folder = os.getcwd()
    os.environ.update(TRITON_CACHE_DIR=folder + "/cache", HOME=folder, TMPDIR=folder, TRITON_DISABLE_LINE_INFO="1")
    tempfile.tempdir = folder
    import torch, triton
    import triton.tools.tensor_descriptor
    from triton.backends.nvidia.compiler import get_ptxas
    import harness.backends.triton.candidate
    from harness.backends.triton.native import session, walls
    from native_driver import CpuDriver

    driver = CpuDriver()
    triton.runtime.driver.set_active(driver)
    request = json.loads(sys.stdin.read())
    tests = pathlib.Path(request["tests"])
    standing = walls.build(folder, (get_ptxas(90).path,), seconds=120)
    stopped = []

    def leave():
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os._exit(0)
            except OSError:
                os._exit(1)
        if os.waitpid(pid, 0)[1]:
            raise OSError("refused")

    for name, attempt in request["attempts"].items():
        try:
            eval(attempt)
        except OSError:
            stopped.append(name)
    print(json.dumps([standing, stopped, session.run_native(request, driver, "cpu", lambda: None)]))
    """
ATTEMPTS = {
    "passwords": "open('/etc/passwd').read()",
    "the project": "open(walls.__file__).read()",
    "the tests": "(tests / 'conftest.py').read_text()",
    "another process": "open(f'/proc/{os.getppid()}/environ').read()",
    "writing elsewhere": "open('/tmp/left_behind', 'w')",
    "the network": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "a shell": "subprocess.run(['/bin/sh', '-c', 'true'])",
    "its own session": "leave()",
    "tracing": "os.readlink(f'/proc/{os.getppid()}/exe')",
}


def test_a_candidate_compiles_and_runs_behind_the_walls(tmp_path):
    documents, fds = [], []
    for item in ARGUMENTS:
        count = 1
        for size in item["shape"]:
            count *= size
        fd = os.memfd_create(item["name"])
        os.ftruncate(fd, count * 4)
        fds.append(fd)
        documents.append({**item, "nbytes": count * 4, "fd": fd})
    tests = Path(__file__).parent
    request = {"source": candidate("_copy[(16,)](x, out, x.numel(), BLOCK=1024)"), "arguments": documents,
               "attributes": {}, "calls": 2, "attempts": ATTEMPTS, "tests": str(tests)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(SCRIPT)], input=json.dumps(request), cwd=tmp_path, text=True,
            capture_output=True, check=False, pass_fds=fds, env={**os.environ, "PYTHONPATH": f"{ROOT}:{tests}"})
    finally:
        for fd in fds:
            os.close(fd)
    assert done.returncode == 0, done.stderr[-2000:]
    standing, stopped, answer = json.loads(done.stdout)
    assert {"limits", "no_new_privs", "landlock", "seccomp"} <= set(standing)
    assert set(ATTEMPTS) - set(stopped) <= {"the project", "the tests"}  # readable only where they lie on Python's path
    assert [launch["grid"] for launch in answer["calls"][0]] == [[16, 1, 1]]
    assert answer["calls"][0][0]["code"].startswith("sha256:")
