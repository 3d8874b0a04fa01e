"""Every attack is tried by a candidate in a real process, behind the walls of each level and with single walls away."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from pathlib import Path

import numba
import pytest
import torch

from harness.evaluation import buffers, run
from harness.evaluation.ports import Lent
from harness.evaluation.sandbox.workers import SandboxOpener
from harness.operators import rms_norm
from tests.harness.sandbox_attacks import lent as lent_attacks
from tests.harness.sandbox_attacks.attempt import Attempt, program
from tests.harness.sandbox_attacks.table import ATTEMPTS, SETTINGS
from tests.harness.sandbox_leftovers import below, nothing_left

pytestmark = pytest.mark.sandbox

HONEST = "def run(x, out):\n    out[:] = x\n"
LEVEL = {"3": 3, "3 without seccomp": 3, "3 without landlock": 3, "2": 2, "1": 1, "0": 0}


@pytest.fixture(scope="module", params=list(SETTINGS))
def setting(request):
    opener = SandboxOpener("numba", **SETTINGS[request.param])
    yield request.param, opener
    opener.close()


@pytest.fixture
def facts(tmp_path):
    """Things of the judge to reach, steal or change, harmless to touch where a wall is missing."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    read, write = os.pipe()
    name = f"kernelopt-{os.getpid()}-{threading.get_ident()}"
    folder = tempfile.mkdtemp(prefix="kopt")  # a socket's path is short
    path = str(Path(folder, "socket"))
    with (socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
          socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as by_path):
        udp.bind(("127.0.0.1", 0))
        abstract.bind(b"\0" + name.encode())
        by_path.bind(path)
        for listener in (abstract, by_path):
            listener.listen()
        yield {
            "judge": os.getpid(), "pipe": write, "tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1],
            "abstract": name, "socket": path, "secret": str(secret), "accounts": "/etc/passwd",
            "judge_source": run.__file__, "operator_source": rms_norm.__file__, "numba_source": numba.__file__,
            "package": str(Path(numba.__file__).parent), "tmp": tempfile.gettempdir(), "key": os.getpid(),
        }
    os.close(read)
    os.close(write)
    Path(path).unlink()
    Path(folder).rmdir()


def outcomes(worker, source: str, attempts: tuple[Attempt, ...], arrays: list[Lent], results) -> dict[str, bool]:
    """By attempt, whether it got through."""
    worker.load(source)
    worker.call(arrays, {})
    values = dict(zip((attempt.name for attempt in attempts), results().tolist(), strict=True))
    assert set(values.values()) <= {1.0, 2.0}, values
    return {name: value == 1.0 for name, value in values.items()}


def test_every_attempt_is_stopped_where_the_table_says_so(setting, facts):
    name, opener = setting
    assert opener.isolation == LEVEL[name] or (LEVEL[name] == 3 and os.getuid() != 0)
    before = below(opener.server_pid)
    sibling = opener.open(deadline_s=60.0)
    out = torch.zeros(len(ATTEMPTS))
    block = buffers.OutputBlock("out", tuple(out.shape), torch.float32)
    x = buffers.lend_input("x", torch.ones(4))
    try:
        sibling.load(HONEST)
        home = Path(opener._server._home)
        others = {"sibling": max(below(opener.server_pid) - before), "sibling_folder": sibling._tmp, "home": str(home),
                  "server": opener.server_pid,
                  "log": str(home / "server.log")}
        with nothing_left(opener.server_pid):
            worker = opener.open(deadline_s=60.0)
            try:
                through = outcomes(worker, program(ATTEMPTS, {**facts, **others}), ATTEMPTS, [x, block.lent],
                                   lambda: block.read()[0])
            finally:
                worker.close()
        sibling.ask({"op": "load", "source": HONEST, "bounds_checks": False, "options": {}})  # it lives as before
    finally:
        sibling.close()
        block.close()
        os.close(x.fd)
    unexpected = {a.name for a in ATTEMPTS if through[a.name] and name not in a.may}
    assert not unexpected
    if name == "0":
        assert not {a.name for a in ATTEMPTS if a.sure and not through[a.name]}


@pytest.mark.parametrize("renewable", [False, True])
def test_lent_memory_is_what_it_is_lent_as(setting, renewable):
    _, opener = setting
    values = torch.arange(40_000, dtype=torch.float32)
    x = buffers.RenewableInput("x", values).lent if renewable else buffers.lend_input("x", values)
    block = buffers.OutputBlock("out", (len(lent_attacks.LENT),), torch.float32)
    before = os.pread(x.fd, 1 << 20, 0)
    worker = opener.open(deadline_s=60.0)
    try:
        through = outcomes(worker, lent_attacks.program(lent_attacks.LENT), lent_attacks.LENT, [x, block.lent],
                           lambda: block.read()[0])
        assert not any(through.values()), through
        assert os.pread(x.fd, 1 << 20, 0) == before
        block.poison()  # the judge still can
    finally:
        worker.close()
        block.close()
        os.close(x.fd)


@pytest.mark.parametrize("mode", ["triton-plan", "triton-interpret"])
def test_other_modes_have_the_same_walls(mode, facts):
    """The outputs of these modes are not plain arrays, so the table is tried while the candidate is imported."""
    opener = SandboxOpener(mode)
    try:
        assert opener.proof.escaped == ()
        others = {"sibling": os.getpid(), "sibling_folder": "/none", "home": "/none", "log": "/none",
                  "server": opener.server_pid}
        tries = ("\nthrough = []\nfor index, attempt in enumerate(ATTEMPTS):\n    try:\n        if attempt():\n"
                 "            through.append(index)\n    except (OSError, ValueError, OverflowError):\n        pass\n"
                 "assert not through, through\n")
        worker = opener.open(deadline_s=60.0)
        try:
            worker.load(program(ATTEMPTS, {**facts, **others}) + tries)
        finally:
            worker.close()
    finally:
        opener.close()


def test_attempts_have_names_groups_and_walls_that_exist():
    names = [attempt.name for attempt in (*ATTEMPTS, *lent_attacks.LENT)]
    assert len(set(names)) == len(names)
    assert {attempt.group for attempt in ATTEMPTS} >= set("ACGH")
    assert all(attempt.may <= set(SETTINGS) for attempt in ATTEMPTS)
    assert not any({"2", "3"} & attempt.may for attempt in ATTEMPTS)  # at the levels that may promote nothing is open
