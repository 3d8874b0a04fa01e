"""The command line. One module per command: ``configure(parser)`` and ``run(arguments) -> exit code``."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

from harness.cli.terminal import shown
from harness.domain.errors import HarnessError

COMMANDS = {
    "doctor": "try what the harness needs and say how to mend each gap",
    "operators": "list the operators with their workloads and tunables",
    "evaluate": "verify and time one kernel",
    "plan": "record a Triton kernel's launches and their resources, no GPU needed",
    "parity": "call a Triton kernel natively on this GPU and hold it against its plan",
    "tier": "say how far a change goes and why",
    "optimize": "run a whole campaign here",
    "replay": "play a stored campaign of a language model again, without a network",
    "autotune": "search a Triton kernel's declared values in bulk on this GPU",
    "report": "run operators x agents x libraries on the device at hand and write a report",
    "mcp": "let an agent outside drive a campaign of a site, over standard input and output",
    "selftest": "run the corpus of cheats, wrong kernels and honest look-alikes",
}
EXIT_OK, EXIT_REFUSED, EXIT_USAGE = 0, 1, 2
EXIT_UNREAD = 141
"""As a shell reports a process that SIGPIPE ended: the reader of its output went away."""


class _Parser(argparse.ArgumentParser):
    """argparse already exits with 2; this only adds where to look."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}. Run '{self.prog} --help' for the options.\n")


def parser_of(chosen: str | None) -> argparse.ArgumentParser:
    """The parser, with the options of the command ``chosen``: only that one is imported, so that start-up stays
    short."""
    parser = _Parser(prog="python -m harness", description="Optimise, verify and time GPU and CPU kernels.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, text in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == chosen:
            importlib.import_module(f"harness.cli.{name}").configure(sub)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run one command; usage and environment errors are one sentence on stderr and exit code 2.

    What is printed meanwhile is fit for a terminal, see ``terminal``.
    """
    chosen = next((word for word in argv if not word.startswith("-")), None)
    with shown():
        parser = parser_of(chosen)
        arguments = parser.parse_args(argv)
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    try:
        code = int(importlib.import_module(f"harness.cli.{arguments.command}").run(arguments))
        sys.stdout.flush()
        return code
    except HarnessError as error:
        sys.stderr.write(f"{error.text}\n")
        return EXIT_USAGE
    except BrokenPipeError:  # whoever read the output has enough of it, as `head` has
        _leave_quietly()
        return EXIT_UNREAD
    except OSError as error:
        what = f"{error.filename} cannot be used" if error.filename is not None else "The system refused something"
        sys.stderr.write(f"{what}: {error.strerror or error}. What was written before is kept; mend that and run "
                         "again.\n")
        return EXIT_USAGE
    except KeyboardInterrupt:
        sys.stderr.write("Stopped. What was written to files before is kept.\n")
        return 130


def _leave_quietly() -> None:
    """Let nothing that is still buffered complain at the end of the process."""
    with contextlib.suppress(OSError, ValueError):  # a stream of a test has no descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
