"""Launches that begin before the one ahead of them ends: what a plan may hold of that, and what it may not."""

from __future__ import annotations

import pytest
from triton_candidates import candidate

from harness.backends.triton.compiler.binaries import binaries_of
from harness.backends.triton.compiler.compiled import CompileFailed, compile_plans
from harness.backends.triton.compiler.process import CompilerProcess, KernelSource
from harness.backends.triton.targets import find_target

TARGET = find_target("nvidia-h200")
KERNELS = """
    @triton.jit
    def _first(x, out, BLOCK: tl.constexpr):
        {first}
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at))


    @triton.jit
    def _second(x, out, BLOCK: tl.constexpr):
        {second}
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        {last}
        tl.store(out + at, 2.0 * tl.load(out + at))
    """
TRIGGER, WAIT = "tl.extra.cuda.gdc_launch_dependents()", "tl.extra.cuda.gdc_wait()"
EARLY = "if tl.program_id(0) > 2:\n            return"
NONE = "programs = tl.num_programs(0)\n        none = programs // (programs ^ programs)"
TAKEN_OUT = f"{NONE}\n        if none == 3:\n            tl.store(out, 0.0)\n        {WAIT}"
"""The compiler takes out what follows a branch by a quotient that is none: the wait, too."""
HOST = "_first[(4,)](x, out, BLOCK=16)\n_second[(4,)](x, out, BLOCK=16, launch_pdl={dependent})"


@pytest.fixture(scope="module")
def compiler() -> CompilerProcess:
    return CompilerProcess(TARGET)


def source(first: str = "", second: str = "", last: str = "", dependent: bool = True) -> str:
    kernels = KERNELS.format(first=first or "pass", second=second or "pass", last=last or "pass")
    return candidate(HOST.format(dependent=dependent), kernels)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "parts",
    [
        {"first": TRIGGER, "second": WAIT},
        {"first": TRIGGER, "last": WAIT},  # later, but in every program
        {"first": f"if tl.program_id(0) == 1:\n            {TRIGGER}", "second": WAIT},
        {"first": TRIGGER, "dependent": False},  # an ordinary launch waits by itself
        {"second": WAIT},
        {},  # starts when the first one has ended
    ],
)
def test_a_plan_that_is_over_with_its_last_launch(record, compiler, parts):
    plan = record(source(**parts))
    assert plan.refusals == ()
    (row,) = binaries_of([plan], compiler)
    assert len(row) == 2


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "parts",
    [
        {"first": TRIGGER},
        {"first": TRIGGER, "second": f"if tl.program_id(0) == 0:\n            {WAIT}"},
        {"first": TRIGGER, "second": EARLY, "last": WAIT},
        {"first": TRIGGER, "second": f"for _ in range(tl.program_id(0)):\n            {WAIT}"},
        {"first": TRIGGER, "second": TAKEN_OUT},
        {"second": TRIGGER},  # its own: what follows it in the plan is not known to it
    ],
)
def test_a_dependent_launch_that_could_end_before_the_one_ahead_of_it(record, compiler, parts):
    plan = record(source(**parts))
    assert plan.refusals == ()
    for compile_ in (binaries_of, compile_plans):
        with pytest.raises(CompileFailed) as caught:
            compile_([plan], compiler)
        assert (caught.value.problem, caught.value.function) == ("refused", "_second")
        assert "gdc_wait" in caught.value.text


@pytest.mark.sandbox
def test_what_a_launch_ahead_writes_is_touched_behind_the_wait_alone(record, compiler):
    touched = f"tl.store(out + at, 3.0 * tl.load(out + at))\n        {WAIT}"
    for compile_ in (binaries_of, compile_plans):
        with pytest.raises(CompileFailed) as caught:
            compile_([record(source(first=TRIGGER, last=touched))], compiler)
        assert (caught.value.problem, caught.value.function) == ("refused", "_second")
        assert "behind the wait alone" in caught.value.text
    assert len(binaries_of([record(source(last=touched))], compiler)[0]) == 2  # begins when the first has ended


ALONE = "_second[(4,)](x, out, BLOCK=16, launch_pdl=True)"


@pytest.mark.sandbox
def test_what_runs_ahead_of_a_call_is_waited_for_by_its_first_launch(record, compiler):
    plan = record(candidate(ALONE, KERNELS.format(first="pass", second="pass", last="pass")))
    for compile_ in (binaries_of, compile_plans):
        with pytest.raises(CompileFailed) as caught:
            compile_([plan], compiler)
        assert (caught.value.problem, caught.value.function) == ("refused", "_second")
        assert "the first of a call" in caught.value.text


@pytest.mark.sandbox
@pytest.mark.parametrize(("host", "second"), [(ALONE, WAIT), (f"out.zero_()\n{ALONE}", "pass")])
def test_a_first_launch_that_waits_or_follows_a_fill(record, compiler, host, second):
    plan = record(candidate(host, KERNELS.format(first="pass", second=second, last="pass")))
    (row,) = binaries_of([plan], compiler)
    assert len(row) == 1


def facts_of(operation: str, compiler: CompilerProcess):
    text = ("module {\n  tt.func public @k(%arg0: !tt.ptr<i32>) {\n"
            f"    {operation}\n    tt.return\n  }}\n}}\n")
    return compiler.compile([KernelSource(text, "ttir", {"num_warps": 4})])[0]


def assembly(text: str, constraints: str = "=r", pure: str = "false", operands: str = "", types: str = "") -> str:
    facts = f'{{constraints = "{constraints}", packed_element = 1 : i32, pure = {pure}}}'
    return f'%1 = tt.elementwise_inline_asm "{text}" {facts} {operands} {types} -> i32'


def test_the_two_instructions_are_known_word_for_word(compiler):
    wait = facts_of(assembly("griddepcontrol.wait; // dummy $0"), compiler)
    assert (wait.problem, wait.waits, wait.triggers) == ("", True, False)
    trigger = facts_of(assembly("griddepcontrol.launch_dependents; // dummy $0"), compiler)
    assert (trigger.problem, trigger.waits, trigger.triggers) == ("", False, True)
    for other in ("griddepcontrol.wait; exit; // dummy $0", "griddepcontrol.wait;", "mov.u32 $0, %clock;"):
        assert facts_of(assembly(other), compiler).problem == "refused", other


@pytest.mark.parametrize(
    "changed",
    [
        {"pure": "true"},  # nobody reads its result: the compiler may take it out
        {"constraints": "=r,~{memory}"},
        {"constraints": "=f"},
        {"constraints": "=r,l", "operands": "%arg0", "types": ": !tt.ptr<i32>"},
    ],
)
def test_their_operands_constraints_and_effects_are_known_too(compiler, changed):
    facts = facts_of(assembly("griddepcontrol.wait; // dummy $0", **changed), compiler)
    assert facts.problem == "refused"
    assert "of its own" in facts.text


def test_what_they_are_said_to_return_cannot_be_read(compiler):
    facts = facts_of(assembly("griddepcontrol.wait; // dummy $0") + "\n    tt.store %arg0, %1 : !tt.ptr<i32>", compiler)
    assert facts.problem == "refused"
    assert "returns" in facts.text


def test_a_wait_in_another_function_is_not_every_program_s(compiler):
    text = ("module {\n  tt.func private @other() attributes {noinline = true} {\n"
            f"    {assembly('griddepcontrol.wait; // dummy $0')}\n    tt.return\n  }}\n"
            "  tt.func public @k(%arg0: !tt.ptr<i32>) {\n    tt.call @other() : () -> ()\n    tt.return\n  }\n}\n")
    (facts,) = compiler.compile([KernelSource(text, "ttir", {"num_warps": 4})])
    assert (facts.problem, facts.waits) == ("", False), facts
