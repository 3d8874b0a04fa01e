"""Two threads that parse at a time do not spoil each other's trees."""

from __future__ import annotations

import ast
import gc
import sys
import threading
from collections.abc import Callable

from harness.evaluation.source.intake import parse

LONG = "x = [\n" + "".join(f"    (a + {n}) * b,\n" for n in range(400)) + "]\n"


def deeper(levels: int, then: Callable[[], object]) -> object:
    return then() if levels == 0 else deeper(levels - 1, then)


def test_a_parse_in_the_midst_of_another_waits() -> None:
    """The garbage collector runs while a tree is built; another thread takes that moment to build one of its own, from
    deeper in its stack."""
    parsing, at_ease = threading.Event(), threading.Event()
    found: list[object] = []

    def other() -> None:
        parsing.wait(30)
        found.append(deeper(20, lambda: parse(LONG)))
        at_ease.set()

    thread = threading.Thread(target=other)

    def collected(phase: str, info: object) -> None:
        caller = sys._getframe(1).f_code
        if threading.current_thread() is not thread and caller is ast.parse.__code__ and not parsing.is_set():
            parsing.set()
            at_ease.wait(0.3)  # unguarded, the other one is done within; guarded, it waits for this one

    before = gc.get_threshold()
    thread.start()
    gc.callbacks.append(collected)
    gc.set_threshold(50)
    try:
        tree = parse(LONG)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)
        parsing.set()
        thread.join(30)
    assert len(tree.body) == 1 and len(found) == 1
