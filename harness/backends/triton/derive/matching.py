"""Compares the IR of recorded plans with what the reviewed file's kernel functions give by themselves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

from harness.backends.triton.derive.cut import kernel_source
from harness.backends.triton.targets import Target
from harness.domain.digest import digest_document
from harness.domain.plan import LaunchPlan
from harness.domain.vocabulary import Backend, Outcome
from harness.evaluation.ports import CandidateFault, WorkerOpener
from harness.evaluation.source.structure import read_structure

DEADLINE_S = 60.0
REMEMBERED = 1024
_ASKED = ("function", "signature", "constants", "divisible", "options")
_proved: OrderedDict[str, None] = OrderedDict()
"""What was derived equal in this process, by digest of file, launch and IR: a fact that does not change."""


class IrForeign(Exception):
    """A plan's IR is not what the named kernel function of the file compiles to."""

    def __init__(self, function: str, text: str) -> None:
        super().__init__(text)
        self.function, self.text = function, text


def prove(
    workers: WorkerOpener, source: str, plans: Sequence[LaunchPlan], target: Target, *, deadline_s: float = DEADLINE_S
) -> int:
    """Derive every distinct IR of ``plans`` again from the kernel functions of ``source``; how many were derived.

    ``workers`` opens processes of mode ``triton-derive``. What this process has derived before is not repeated.

    Raises:
        IrForeign: the IR differs, or the file's function does not compile as recorded.
        CandidateFault: the deriving process crashed or was late.
    """
    cut = kernel_source(source)
    pending = {key: item for key, item in _distinct(cut, plans, target) if key not in _proved}
    if not pending:
        return 0
    worker: Any = workers.open(deadline_s=deadline_s, options={"target": target.name})
    try:
        functions = ", ".join(sorted({launch["function"] for launch, _ in pending.values()}))
        _asking(lambda: worker.load(cut), functions)
        for launch, text in pending.values():
            asked = {name: launch[name] for name in _ASKED}
            answer = _asking(lambda asked=asked: worker.ask({"op": "derive", "launch": asked}), launch["function"])
            _compare(launch, text, answer)
    finally:
        worker.close()
    _proved.update(dict.fromkeys(pending))
    while len(_proved) > REMEMBERED:
        _proved.popitem(last=False)
    return len(pending)


def line_of(source: str, function: str) -> int | None:
    """Where the file defines kernel function ``function``; ``None`` where it does not."""
    found = read_structure(source, Backend.TRITON).kernels.get(function)
    return None if found is None else found.lineno


def _distinct(
    cut: str, plans: Sequence[LaunchPlan], target: Target
) -> Iterator[tuple[str, tuple[dict[str, Any], str]]]:
    for plan in plans:
        for step in plan.steps:
            if "launch" in step:
                launch = step["launch"]
                asked = [cut, target.label, plan.compiler, launch["ir"], launch["kind"], *(launch[n] for n in _ASKED)]
                yield digest_document(asked), (launch, (plan.irs or {}).get(launch["ir"], ""))


def _asking(request: Any, function: str) -> Any:
    """An answer of the deriving process; what the file's own code raised there makes its IR foreign."""
    try:
        return request()
    except CandidateFault as caught:
        if caught.fault.outcome not in (Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR) or caught.fault.code not in (
            "raises", "triton_compile"
        ):
            raise
        text = f"by itself, as the file has it, it does not give the recorded code: {caught.fault.text}"
        raise IrForeign(function, text) from caught


def _compare(launch: dict[str, Any], text: str, answer: dict[str, Any]) -> None:
    derived = answer.get("ir")
    if answer.get("kind") == launch["kind"] and derived == text:
        return
    ours, theirs = str(derived).splitlines(), text.splitlines()
    place = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    lines = [(side[place] if place < len(side) else "nothing").strip()[:200] for side in (ours, theirs)]
    raise IrForeign(launch["function"], f"the file's function compiles to other code than the plan launches; line "
                                        f"{place + 1} of it is '{lines[0]}', the plan has '{lines[1]}'")
