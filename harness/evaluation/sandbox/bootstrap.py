"""Entry of a sandbox server: ``python -I -B bootstrap.py <package root> <module> <socket fd> <stage directory>``.

An empty stage directory means: build no namespaces.

Run as a file, so that nothing is on the path but the interpreter's own packages and the root given here.
"""

from __future__ import annotations

import socket
import sys


def main() -> None:
    """Put the package on the path and serve."""
    root, module, fd, stage = sys.argv[1:5]
    sys.path[:] = [entry for entry in sys.path if entry] + [root]
    sys.argv = ["sandbox"]
    from harness.evaluation.sandbox.server import Server

    Server(socket.socket(fileno=int(fd)), module, root, stage).run()


if __name__ == "__main__":
    main()
