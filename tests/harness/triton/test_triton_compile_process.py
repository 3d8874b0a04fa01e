"""The compile process: its walls, its end, several at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from harness.backends.triton.compiler import process
from harness.backends.triton.compiler.elf import code_digest
from harness.backends.triton.compiler.process import CompilerProcess, KernelSource
from harness.backends.triton.targets import find_target

TARGET = find_target("nvidia-h200")
WALLS = ("limits", "no_new_privs", "landlock", "seccomp")


def ir(name: str, value: int) -> str:
    return (f"module {{\n  tt.func public @{name}(%arg0: !tt.ptr<i32>, %arg1: i32) {{\n"
            f"    %0 = arith.constant {value} : i32\n    %1 = arith.addi %0, %arg1 : i32\n"
            "    tt.store %arg0, %1 : !tt.ptr<i32>\n    tt.return\n  }\n}\n")


def source(name: str, value: int = 1) -> KernelSource:
    return KernelSource(ir(name, value), "ttir", {"num_warps": 4})


def test_code_symbol_parameters_and_walls_of_a_kernel():
    compiler = CompilerProcess(TARGET)
    (facts,) = compiler.compile([source("first")])
    assert (facts.problem, facts.symbol) == ("", "first")
    assert facts.parameters == (8, 4, 8, 8)  # two of its own, two that every kernel has
    assert facts.code == code_digest(facts.cubin, "first")
    assert compiler.walls == WALLS


def test_several_processes_keep_the_order(monkeypatch):
    kernels = [source(f"kernel_{number}", number) for number in range(5)]
    kernels[3] = KernelSource("not ir", "ttir", {"num_warps": 4})
    monkeypatch.setattr(process, "parallel", lambda: 2)
    many = CompilerProcess(TARGET).compile(kernels)
    assert [facts.symbol for facts in many] == ["kernel_0", "kernel_1", "kernel_2", "", "kernel_4"]
    assert many[3].problem == "error"
    monkeypatch.setattr(process, "parallel", lambda: 1)
    assert [facts.code for facts in CompilerProcess(TARGET).compile(kernels)] == [facts.code for facts in many]


def test_the_same_code_under_another_name_and_from_another_folder_is_equal():
    compiler = CompilerProcess(TARGET)
    one, other = compiler.compile([source("one"), source("other")])
    assert one.code == other.code
    assert one.binary != other.binary
    (again,) = CompilerProcess(TARGET).compile([source("one")])
    assert again.cubin == one.cubin


def test_kernels_of_one_process_do_not_serve_each_other():
    """Options that mean the same in other words are one kernel to Triton's cache, which tells no registers."""
    said = [{"num_warps": 4}, {"num_warps": 4, "maxnreg": None}, {"num_warps": 4, "num_ctas": 1}]
    kernels = [KernelSource(ir("same", 7), "ttir", options) for options in said]
    together = CompilerProcess(TARGET, processes=1).compile(kernels)
    assert together[0].registers > 0 and together[1:] == together[:1] * 2


ATTEMPTS = {
    "read a file of the system": "open('/etc/hostname').read()",
    "read the project": "open(PROJECT).read()",
    "write outside": "open('/tmp/left_behind', 'w')",
    "network": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "local socket": "socket.socketpair()",
    "another program": "subprocess.run(['/bin/true'])",
    "the interpreter": "subprocess.run([sys.executable, '-c', ''])",
    "a written program": "(pathlib.Path('mine').write_text('#!/bin/sh'), os.chmod('mine', 0o700), "
                         "subprocess.run(['./mine']))",
    "its own session": "leave()",
    "another group": "os.setpgid(0, 0)",
    "memory": "bytearray(3 << 30)",
}
SCRIPT = """
    import json, os, pathlib, resource, socket, subprocess, sys
    from harness.backends.triton.compiler import walls
    from triton.backends.nvidia.compiler import get_ptxas
    PROJECT = walls.__file__
    ptxas = get_ptxas(90).path
    standing = walls.build(os.getcwd(), (ptxas,), seconds=20, memory_bytes=2 << 30)
    open('inside', 'w').write('x')
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

    for name, attempt in json.loads(sys.argv[1]).items():
        try:
            eval(attempt)
        except (OSError, MemoryError):
            stopped.append(name)
    version = subprocess.run([ptxas, '--version'], capture_output=True, text=True).stdout
    print(json.dumps([standing, stopped, version]))
    """


def test_walls_leave_the_compiler_its_assembler_and_nothing_else(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), json.dumps(ATTEMPTS)], cwd=tmp_path, capture_output=True,
        text=True, check=True, env={**os.environ, "PYTHONPATH": str(process.ROOT)})
    standing, stopped, version = json.loads(done.stdout)
    assert tuple(standing) == WALLS
    assert stopped == list(ATTEMPTS)
    assert "ptxas" in version


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_late_process_is_ended_with_all_it_started(monkeypatch, tmp_path):
    note = tmp_path / "pid"
    child = tmp_path / "child.py"
    child.write_text(textwrap.dedent(f"""
        import pathlib, subprocess
        started = subprocess.Popen(["sleep", "60"])
        pathlib.Path({str(note)!r}).write_text(str(started.pid))
        started.wait()
        """))
    monkeypatch.setattr(process, "CHILD", child)
    (facts,) = CompilerProcess(TARGET).compile([source("late")], deadline_s=1.0)
    assert facts.problem == "timeout"
    until = time.monotonic() + 5
    while alive(int(note.read_text())) and time.monotonic() < until:
        os.sched_yield()
    assert not alive(int(note.read_text()))
