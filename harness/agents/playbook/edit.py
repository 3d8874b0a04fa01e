"""Edits of kernel sources by function and by PARAMS key; everything else stays byte for byte."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from harness.domain.parsing import syntax_tree


def functions(source: str) -> dict[str, ast.FunctionDef]:
    """Module-level functions by name."""
    return {node.name: node for node in syntax_tree(source).body if isinstance(node, ast.FunctionDef)}


def function_text(source: str, name: str) -> str:
    """The text of a function with its decorators, without the final newline; empty where it does not exist."""
    node = functions(source).get(name)
    return "" if node is None else "\n".join(source.split("\n")[_first(node) - 1 : node.end_lineno])


def body_text(source: str, name: str) -> str:
    """The function's body as indented text; empty where it does not exist."""
    node = functions(source).get(name)
    return "" if node is None else "\n".join(source.split("\n")[node.body[0].lineno - 1 : node.end_lineno])


def argument_names(source: str, name: str) -> tuple[str, ...]:
    """The positional arguments of a function."""
    node = functions(source).get(name)
    return () if node is None else tuple(argument.arg for argument in node.args.args)


def decorator(source: str, name: str) -> str:
    """The text of a function's only decorator without ``@``; empty where there is none."""
    node = functions(source).get(name)
    return ast.unparse(node.decorator_list[0]) if node is not None and node.decorator_list else ""


def replace_body(source: str, name: str, body: str) -> str:
    """``source`` with the function's body replaced by ``body`` (indented by four spaces)."""
    node = functions(source)[name]
    lines = source.split("\n")
    return "\n".join([*lines[: node.body[0].lineno - 1], *body.rstrip("\n").split("\n"), *lines[node.end_lineno :]])


def replace_function(source: str, name: str, text: str) -> str:
    """``source`` with the whole function, decorators included, replaced by ``text``."""
    node = functions(source)[name]
    lines = source.split("\n")
    return "\n".join([*lines[: _first(node) - 1], *text.strip("\n").split("\n"), *lines[node.end_lineno :]])


def insert_before(source: str, name: str, text: str) -> str:
    """``source`` with a new function ``text`` in front of function ``name``, two blank lines between them."""
    node = functions(source)[name]
    lines = source.split("\n")
    return "\n".join([*lines[: _first(node) - 1], *text.strip("\n").split("\n"), "", "", *lines[_first(node) - 1 :]])


def set_decorator(source: str, name: str, text: str) -> str:
    """``source`` with the function's only decorator replaced by ``@text``."""
    node = functions(source)[name]
    lines = source.split("\n")
    first, last = node.decorator_list[0].lineno, node.decorator_list[0].end_lineno
    assert last is not None
    return "\n".join([*lines[: first - 1], f"@{text}", *lines[last:]])


def params(source: str) -> dict[str, Any]:
    """PARAMS as a dict; empty where the source has none or it is no literal."""
    node = _params_node(source)
    try:
        return ast.literal_eval(node) if node is not None else {}
    except ValueError:
        return {}


def set_params(source: str, values: Mapping[str, Any]) -> str:
    """``source`` with PARAMS values replaced or added; the literal is written on one line."""
    node = _params_node(source)
    assert node is not None
    merged = {**params(source), **values}
    lines = source.split("\n")
    head = lines[node.lineno - 1][: node.col_offset]
    assert node.end_lineno is not None
    tail = lines[node.end_lineno - 1][node.end_col_offset :]
    text = "{" + ", ".join(f'"{key}": {_literal(value)}' for key, value in merged.items()) + "}"
    return "\n".join([*lines[: node.lineno - 1], head + text + tail, *lines[node.end_lineno :]])


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {_literal(item)}' for key, item in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _params_node(source: str) -> ast.expr | None:
    for node in syntax_tree(source).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "PARAMS" for t in node.targets):
            return node.value
    return None


def _first(node: ast.FunctionDef) -> int:
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno
