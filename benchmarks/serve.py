"""Time until ``serve`` answers, the delay of an event on an open socket, and the memory of its processes.

Run from the repository root: ``python benchmarks/serve.py [--repeat N]``. Uses a temporary folder and a free port.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(PROJECT)]

import psutil
from table import print_machine, print_table


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(folder: str, port: int) -> tuple[subprocess.Popen[bytes], float]:
    """Start ``serve``; answers the process and the seconds until ``/health/`` answered."""
    environment = os.environ | {"KERNELOPT_VAR": folder, "KERNELOPT_SQLITE": f"{folder}/db.sqlite3"}
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "manage.py", "serve", "--port", str(port)], cwd=PROJECT,
                               env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/", timeout=1):
                return process, time.monotonic() - began
        except OSError:
            time.sleep(0.05)


def memory(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Proportional memory in MB of the web process and of everything together (shared pages counted once)."""
    tree = psutil.Process(process.pid)
    shares = {child.pid: child.memory_full_info().pss / 1e6 for child in [tree, *tree.children(recursive=True)]}
    web = next((c.pid for c in tree.children() if any("daphne" in part for part in c.cmdline())), None)
    return {"web process": shares.get(web or -1, 0.0), "all processes together": sum(shares.values())}


def main() -> None:
    """First and later starts, then memory when idle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    later: list[float] = []
    sizes: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="kernelopt-benchmark-") as folder:
        process, first = start(folder, free_port())
        for n in range(repeat + 1):
            time.sleep(3)  # the children settle
            for name, value in memory(process).items():
                sizes.setdefault(name, []).append(value)
            process.send_signal(signal.SIGINT)
            process.wait(30)
            if n < repeat:
                process, seconds = start(folder, free_port())
                later.append(seconds)
    print_table("serve until its first answer", "s", [("first start, empty database", [first], 10.0),
                                                      ("later starts", later, 10.0)])
    budgets = {"web process": 120.0, "all processes together": 1500.0}
    print_table("Memory when idle", "MB", [(name, values, budgets[name]) for name, values in sizes.items()])
    print_machine("django", "channels", "daphne")


if __name__ == "__main__":
    main()
