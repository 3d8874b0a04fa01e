"""The sockets that CUDA insists on: they open, and are good for nothing."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import errno, socket
from harness.evaluation.sandbox import linux, seccomp
linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(mute_sockets=True)
local = socket.socket(socket.AF_UNIX)
tries = {
    "bind": lambda: local.bind("\\0kernelopt-nobody"), "listen": lambda: local.listen(),
    "connect": lambda: socket.socket(socket.AF_UNIX).connect("\\0kernelopt-nobody"),
    "sendto": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "/tmp/nobody"),
    "inet": lambda: socket.socket(socket.AF_INET), "netlink": lambda: socket.socket(socket.AF_NETLINK),
    "pair": lambda: socket.socketpair(),
}
for name, attempt in tries.items():
    try:
        attempt()
        print(name, "worked")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""


def test_a_local_socket_opens_and_does_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    said = dict(line.split() for line in done.stdout.splitlines())
    assert [name for name, what in said.items() if what == "worked"] == ["bind", "listen"]
    assert {what for name, what in said.items() if name not in ("bind", "listen")} == {"EPERM"}
