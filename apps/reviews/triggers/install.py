"""Installing the rules as triggers, and finding out whether they all stand."""

from __future__ import annotations

import re
from typing import Any

from django.db import connection, transaction

from apps.reviews.triggers.rules import RULES, Rule


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sqlite_statement(rule: Rule) -> str:
    """One trigger for SQLite."""
    return (f"CREATE TRIGGER {rule.name} BEFORE {rule.event} ON {rule.table} FOR EACH ROW BEGIN "
            f"SELECT RAISE(ABORT, {_quoted(rule.message)}) WHERE NOT coalesce(({rule.condition}), 0); END")


def postgres_statements(rule: Rule) -> tuple[str, str]:
    """A function and its trigger for PostgreSQL."""
    back = "OLD" if rule.event == "DELETE" else "NEW"
    body = (f"BEGIN IF NOT coalesce(({rule.condition}), FALSE) THEN RAISE EXCEPTION USING MESSAGE = "
            f"{_quoted(rule.message)}, ERRCODE = 'integrity_constraint_violation'; END IF; RETURN {back}; END")
    function = f"CREATE OR REPLACE FUNCTION {rule.name}() RETURNS trigger LANGUAGE plpgsql AS $gate$ {body} $gate$"
    trigger = (f"CREATE TRIGGER {rule.name} BEFORE {rule.event} ON {rule.table} "
               f"FOR EACH ROW EXECUTE FUNCTION {rule.name}()")
    return function, trigger


def install() -> None:
    """Put every rule in place anew; idempotent. Needs all tables to exist."""
    with transaction.atomic(), connection.cursor() as cursor:
        for rule in RULES:
            if connection.vendor == "sqlite":
                cursor.execute(f"DROP TRIGGER IF EXISTS {rule.name}")
                cursor.execute(sqlite_statement(rule))
            else:
                function, trigger = postgres_statements(rule)
                cursor.execute(f"DROP TRIGGER IF EXISTS {rule.name} ON {rule.table}")
                cursor.execute(function)
                cursor.execute(trigger)


def lift() -> None:
    """Take all rules away. Only for emptying a test database."""
    with connection.cursor() as cursor:
        for rule in RULES:
            on_table = "" if connection.vendor == "sqlite" else f" ON {rule.table}"
            cursor.execute(f"DROP TRIGGER IF EXISTS {rule.name}{on_table}")


def tables_exist() -> bool:
    """Whether every table that a rule names is there (not while migrating backwards)."""
    return {rule.table for rule in RULES} <= set(connection.introspection.table_names())


def missing() -> list[str]:
    """Names of rules that do not stand exactly as written here; promotions stop while there is one."""
    with connection.cursor() as cursor:
        standing = _sqlite_standing(cursor) if connection.vendor == "sqlite" else _postgres_standing(cursor)
    return [rule.name for rule in RULES if standing.get(rule.name) != _expected(rule)]


def _expected(rule: Rule) -> str:
    if connection.vendor == "sqlite":
        return _plain(sqlite_statement(rule))
    return _plain(postgres_statements(rule)[0].split("$gate$")[1])


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _sqlite_standing(cursor: Any) -> dict[str, str]:
    cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'gate%'")
    return {name: _plain(sql) for name, sql in cursor.fetchall()}


def _postgres_standing(cursor: Any) -> dict[str, str]:
    cursor.execute(
        "SELECT t.tgname, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgname LIKE 'gate%'"
    )
    return {name: _plain(source) for name, source in cursor.fetchall()}
