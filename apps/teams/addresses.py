"""Where a request comes from: this machine itself, and the address that wrong passwords are counted under."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

FORWARDED = tuple(f"HTTP_{name}" for name in (
    "X_FORWARDED_FOR", "X_FORWARDED_HOST", "X_FORWARDED_PROTO", "X_REAL_IP", "FORWARDED", "VIA", "CF_CONNECTING_IP",
))
"""A proxy on this machine speaks from loopback for the whole world; any of these gives it away."""
NOWHERE = "0.0.0.0"  # no address to listen on: what connections without one are counted under
IPV6_HOME = 64  # bits: what one household or machine is given; it may use a new address of it for every try


def from_loopback(request: HttpRequest) -> bool:
    """Whether the connection itself comes from this machine; forwarded headers do not count, and forbid it."""
    if any(request.META.get(name) for name in FORWARDED):
        return False
    peer = _address(request.META.get("REMOTE_ADDR", ""))
    return peer is not None and peer.is_loopback


def client_address(request: HttpRequest) -> str:
    """The address that tries are counted under; ``NOWHERE`` where the connection has none, as through a socket file: of
    rows without an address PostgreSQL keeps several that are alike, and then none of them counts any further.

    It is the connection's own, unless that belongs to a proxy of ours (``settings.PROXIES``): then the last entry of
    ``X-Forwarded-For`` that is none. Entries left of it are whatever the client wrote and are not looked at. Of an IPv6
    address only the network counts.
    """
    client = _address(request.META.get("REMOTE_ADDR", ""))
    for entry in reversed(request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")):
        told = _address(entry)
        if client is None or told is None or not any(client in network for network in settings.PROXIES):
            break
        client = told
    if isinstance(client, IPv6Address) and not client.is_loopback:
        return str(IPv6Network((int(client), IPV6_HOME), strict=False).network_address)
    return str(client) if client is not None else NOWHERE


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.strip())
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
