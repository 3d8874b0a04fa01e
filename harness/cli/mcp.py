"""``mcp``: the site's MCP server over standard input and output, for clients that start their servers as commands.

It holds no rules: every message goes to the site, which decides. The token comes from the environment alone, so that it
stands in no process list.
"""

from __future__ import annotations

import argparse
import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from harness.domain.errors import UsageError

TOKEN, ADDRESS = "KERNELOPT_TOKEN", "KERNELOPT_URL"
DEFAULT = "http://127.0.0.1:8000"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options. There is none for the token: it is read from ``KERNELOPT_TOKEN``."""
    parser.add_argument("--url", default=None,
                        help=f"address of the site (default: {ADDRESS} in the environment, else {DEFAULT})")
    parser.add_argument("--plain-http", action="store_true",
                        help="send the token unencrypted to a site that is not on this machine")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client closes standard input."""
    url = address(arguments.url or os.environ.get(ADDRESS) or DEFAULT, plain=arguments.plain_http)
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise UsageError(f"{TOKEN} is not set. A maintainer creates an API token on the team's page; put it into the "
                         "environment of this command.")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{TOKEN} does not look like an API token of this site.")
    try:
        from harness.cli.mcp_relay import relay
    except ModuleNotFoundError as error:
        raise UsageError(f"The package {error.name} is not installed here; `pip install mcp` brings it.") from error
    return relay(url, token)


def address(given: str, *, plain: bool = False) -> str:
    """The address of the site's MCP server.

    Raises:
        UsageError: not an address, one that holds more than host and path, or one where the token would be readable.
    """
    try:
        parts = urlsplit(given)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise UsageError(f"The site's address cannot be read: {error}.") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError("The site's address must start with http:// or https:// and name a host.")
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError(f"The site's address holds more than host, port and path. A token belongs into {TOKEN}.")
    if parts.scheme == "http" and not plain and not _here(host):
        raise UsageError(f"The token would go unencrypted to {host}. Use https://, or say --plain-http.")
    name = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix("/mcp")
    return f"{parts.scheme}://{name}{f':{port}' if port is not None else ''}{path}/mcp"


def _here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
