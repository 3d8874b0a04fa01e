"""``python -m harness.agents.llm.scripted --port 8765 --persona good``."""

from __future__ import annotations

import argparse
import sys

from harness.agents.llm.scripted.personas import PERSONAS
from harness.agents.llm.scripted.server import ScriptedServer


def main() -> None:
    """Serve until interrupted."""
    about = "\n".join(f"  {item.name:14} {item.about}" for item in PERSONAS.values())
    parser = argparse.ArgumentParser(
        prog="python -m harness.agents.llm.scripted", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="A scripted stand-in for a language model, for trials without a network.",
        epilog=f"Personas, which are the models' names as well:\n{about}")
    parser.add_argument("--port", type=int, default=8765, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--persona", choices=list(PERSONAS), help="answer as this one whatever model is asked for")
    options = parser.parse_args()
    try:
        opened = ScriptedServer(options.port, options.persona)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "ports are numbers from 0 to 65535"
        parser.error(f"port {options.port} cannot be used: {why}; name another one, or 0 for a free one")
    with opened as server:
        sys.stdout.write(f"Listening on {server.url}\n")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            sys.stdout.write("Stopped.\n")


if __name__ == "__main__":
    main()
