"""Installing the rules as triggers, and finding out whether they all stand."""

from __future__ import annotations

import re
from typing import Any

from django.db import connection, transaction

from apps.reviews.triggers.rules import RULES, SOON, Rule

# As Django stores moments in SQLite: text in UTC, with a point before the parts of a second.
_SQLITE_SOON = "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 second')"
_POSTGRES_SOON = "(clock_timestamp() + interval '1 second')"
_TYPE_BITS = {"INSERT": 4, "DELETE": 8, "UPDATE": 16}
_ROW_BEFORE = 1 | 2  # pg_trigger.tgtype: for each row, before the event


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sqlite_statement(rule: Rule) -> str:
    """One trigger for SQLite."""
    return (f"CREATE TRIGGER {rule.name} BEFORE {rule.event} ON {rule.table} FOR EACH ROW BEGIN "
            f"SELECT RAISE(ABORT, {_quoted(rule.message)}) WHERE NOT "
            f"coalesce(({rule.condition.replace(SOON, _SQLITE_SOON)}), 0); END")


def postgres_statements(rule: Rule) -> tuple[str, str]:
    """A function and its trigger for PostgreSQL."""
    back = "OLD" if rule.event == "DELETE" else "NEW"
    condition = rule.condition.replace(SOON, _POSTGRES_SOON)
    body = (f"BEGIN IF NOT coalesce(({condition}), FALSE) THEN RAISE EXCEPTION USING MESSAGE = "
            f"{_quoted(rule.message)}, ERRCODE = 'integrity_constraint_violation'; END IF; RETURN {back}; END")
    function = f"CREATE OR REPLACE FUNCTION {rule.name}() RETURNS trigger LANGUAGE plpgsql AS $gate$ {body} $gate$"
    trigger = (f"CREATE TRIGGER {rule.name} BEFORE {rule.event} ON {rule.table} "
               f"FOR EACH ROW EXECUTE FUNCTION {rule.name}()")
    return function, trigger


def install() -> None:
    """Put every rule in place anew; idempotent. Needs all tables to exist.

    Rules of earlier versions go. A trigger of another name on the gate's tables stays and is named by ``missing``:
    whoever put it there has to take it away.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        _drop_outdated(cursor)
        for rule in RULES:
            if connection.vendor == "sqlite":
                cursor.execute(f"DROP TRIGGER IF EXISTS {rule.name}")
                cursor.execute(sqlite_statement(rule))
            else:
                function, trigger = postgres_statements(rule)
                cursor.execute(f"DROP TRIGGER IF EXISTS {rule.name} ON {rule.table}")
                cursor.execute(function)
                cursor.execute(trigger)


def _drop_outdated(cursor: Any) -> None:
    if connection.vendor == "sqlite":
        cursor.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'gate%'")
    else:
        cursor.execute("SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
                       "WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid) AND t.tgname LIKE 'gate%'")
    known = {rule.name for rule in RULES}
    for name, table in cursor.fetchall():
        if name not in known:
            on_table = "" if connection.vendor == "sqlite" else f" ON {connection.ops.quote_name(table)}"
            cursor.execute(f"DROP TRIGGER {connection.ops.quote_name(name)}{on_table}")


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
    """Names of rules that do not stand exactly as written here, and of triggers on the gate's tables that nobody here
    wrote; promotions stop while there is one."""
    with connection.cursor() as cursor:
        standing = _sqlite_standing(cursor) if connection.vendor == "sqlite" else _postgres_standing(cursor)
    ours = {rule.name: _expected(rule) for rule in RULES}
    return [name for name, text in ours.items() if standing.get(name) != text] + sorted(standing.keys() - ours.keys())


def _expected(rule: Rule) -> str:
    if connection.vendor == "sqlite":
        return _plain(sqlite_statement(rule))
    source = _plain(postgres_statements(rule)[0].split("$gate$")[1])
    return f"{rule.table} {_ROW_BEFORE | _TYPE_BITS[rule.event]}: {source}"


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _sqlite_standing(cursor: Any) -> dict[str, str]:
    """Every trigger on the gate's tables, and every one named like the gate's, wherever it hangs."""
    cursor.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
    ours = {rule.table for rule in RULES}
    return {name: _plain(sql or "") for name, table, sql in cursor.fetchall()
            if table.lower() in ours or name.startswith("gate_")}


def _postgres_standing(cursor: Any) -> dict[str, str]:
    """Likewise; one that is off, for replicas only, or has a condition of its own reads differently and so is named."""
    cursor.execute(
        "SELECT t.tgname, c.relname || ' ' || t.tgtype || ':' || CASE WHEN t.tgenabled IN ('O', 'A') "
        "AND t.tgqual IS NULL AND coalesce(array_length(t.tgattr::int2[], 1), 0) = 0 THEN '' ELSE ' restricted' END, "
        "p.prosrc "
        "FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid "
        "WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid) AND (c.relname = ANY(%s) OR t.tgname LIKE 'gate%%')",
        [[rule.table for rule in RULES]],
    )
    return {name: f"{where} {_plain(source)}" for name, where, source in cursor.fetchall()}
