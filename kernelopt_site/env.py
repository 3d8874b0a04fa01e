"""Typed reading of environment variables, in one place.

Every variable starts with ``KERNELOPT_``. Nothing here imports Django, so that scripts may use it too.
"""

from __future__ import annotations

import os
import secrets
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path

from environs import Env, EnvError

REPOSITORY = Path(__file__).resolve().parent.parent
MOST_MINUTES = 7 * 24 * 60
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

env = Env()


def var_dir() -> Path:
    """Where everything that is written lives: database, key, mirror, caches (``KERNELOPT_VAR``, default ``var/``)."""
    return Path(env.str("KERNELOPT_VAR", str(REPOSITORY / "var"))).expanduser().resolve()


def database_url() -> str:
    """``KERNELOPT_DATABASE_URL``: ``postgres://user:password@host:port/name``; empty means SQLite under ``var/``."""
    return env.str("KERNELOPT_DATABASE_URL", "")


def sqlite_path() -> Path:
    """The SQLite file (``KERNELOPT_SQLITE``, default ``<var>/kernelopt.sqlite3``)."""
    return Path(env.str("KERNELOPT_SQLITE", str(var_dir() / "kernelopt.sqlite3")))


def demo() -> bool:
    """``KERNELOPT_DEMO``: one-click people on the sign-in page, loopback only; their decisions are marked."""
    return env.bool("KERNELOPT_DEMO", False)


def debug() -> bool:
    """``KERNELOPT_DEBUG``: Django's debug pages; never with a host list beyond loopback."""
    return env.bool("KERNELOPT_DEBUG", False)


def self_review() -> bool:
    """``KERNELOPT_SELF_REVIEW``: a single person may approve their own medium change (DESIGN section 8)."""
    return env.bool("KERNELOPT_SELF_REVIEW", False)


def allowed_hosts() -> list[str]:
    """``KERNELOPT_HOSTS``: comma-separated host names that the site answers to; loopback by default."""
    return env.list("KERNELOPT_HOSTS", list(LOOPBACK))


def trusted_origins() -> list[str]:
    """``KERNELOPT_ORIGINS``: full origins (``https://kernels.example.org``) behind a proxy."""
    return env.list("KERNELOPT_ORIGINS", [])


def proxies() -> list[str]:
    """``KERNELOPT_PROXIES``: addresses or networks of reverse proxies of ours, comma-separated, whose
    ``X-Forwarded-For`` says where a client is; this machine's own by default where ``KERNELOPT_ORIGINS`` names any."""
    named = env.list("KERNELOPT_PROXIES", ["127.0.0.1", "::1"] if trusted_origins() else [])
    return [proxy.strip() for proxy in named]


def sign_in_tries() -> int:
    """``KERNELOPT_SIGN_IN_TRIES``: wrong passwords for one name from one address before further ones are refused."""
    return env.int("KERNELOPT_SIGN_IN_TRIES", 10)


def sign_in_tries_in_all() -> int:
    """``KERNELOPT_SIGN_IN_TRIES_IN_ALL``: the same for one address whatever the name, and for one name from anywhere;
    never below ``KERNELOPT_SIGN_IN_TRIES``."""
    return env.int("KERNELOPT_SIGN_IN_TRIES_IN_ALL", max(100, sign_in_tries()))


def sign_in_minutes() -> int:
    """``KERNELOPT_SIGN_IN_MINUTES``: for how long a wrong password counts, and so how long they are refused; a
    week at most."""
    return env.int("KERNELOPT_SIGN_IN_MINUTES", 15)


def public_boards() -> bool:
    """``KERNELOPT_PUBLIC_BOARDS``: whether leaderboards are shown to people who are not signed in."""
    return env.bool("KERNELOPT_PUBLIC_BOARDS", False)


def canary_every() -> int:
    """``KERNELOPT_CANARY_EVERY``: after how many evaluations a device's frozen baseline is timed again; 0: never."""
    return env.int("KERNELOPT_CANARY_EVERY", 25)


def endpoints_path() -> Path:
    """``KERNELOPT_ENDPOINTS``: the TOML file that names endpoints of language models (default
    ``<var>/endpoints.toml``); an absent one means none."""
    return Path(env.str("KERNELOPT_ENDPOINTS", str(var_dir() / "endpoints.toml"))).expanduser().resolve()


def secret_key_fallbacks() -> list[str]:
    """``KERNELOPT_SECRET_KEY_FALLBACKS``: earlier keys, comma-separated; their seals and sessions hold."""
    return env.list("KERNELOPT_SECRET_KEY_FALLBACKS", [])


def secret_key() -> str:
    """``KERNELOPT_SECRET_KEY``, or a key kept in ``<var>/secret_key`` (mode 600), made at the first run.

    Two processes may start at once: the file is created exclusively and the loser reads the winner's key.
    """
    given = env.str("KERNELOPT_SECRET_KEY", "")
    if given:
        return given
    path = var_dir() / "secret_key"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f"secret_key.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_urlsafe(64))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text("utf-8").strip()


def wrong_setting() -> str | None:
    """What keeps the settings from being read, as a sentence without values that may be secret; ``None`` where nothing
    does. Asked before Django reads them, so that whoever mistyped one is told which."""
    for read in (demo, debug, self_review, public_boards, canary_every, allowed_hosts, trusted_origins,
                 sign_in_tries, sign_in_tries_in_all, sign_in_minutes):
        try:
            read()
        except EnvError as error:
            return f"{str(error).rstrip('.')}."
    if min(sign_in_tries(), sign_in_minutes()) < 1:
        return "KERNELOPT_SIGN_IN_TRIES and KERNELOPT_SIGN_IN_MINUTES must be 1 or more: with less nobody signs in."
    if sign_in_minutes() > MOST_MINUTES:
        return f"KERNELOPT_SIGN_IN_MINUTES is above {MOST_MINUTES}, a week: nobody waits that long for a slip."
    if sign_in_tries_in_all() < sign_in_tries():
        return "KERNELOPT_SIGN_IN_TRIES_IN_ALL is below KERNELOPT_SIGN_IN_TRIES, which it has to exceed or equal."
    for proxy in proxies():
        try:
            ip_network(proxy)
        except ValueError:
            return f"KERNELOPT_PROXIES: '{proxy}' is neither an address nor a network such as 10.0.0.0/8."
    if database_url() and not database_url().startswith(("postgres://", "postgresql://")):
        return "KERNELOPT_DATABASE_URL does not start with postgres://, the only kind that is supported."
    if database_url() and not any(find_spec(package) for package in ("psycopg", "psycopg2")):
        return ("KERNELOPT_DATABASE_URL names PostgreSQL, which needs a package: "
                "pip install -r requirements-postgres.txt.")
    try:
        secret_key()
    except OSError as error:
        return f"KERNELOPT_VAR ({var_dir()}) cannot be used: {error.strerror}."
    return None
