"""Paths through PTX: whether every program waits for the launch before it."""

from __future__ import annotations

import pytest

from harness.backends.triton.compiler.flow import every_program_waits, touched_before_waiting, triggers

WAIT = "griddepcontrol.wait; // dummy %r1\n"
TRY = ".reg .pred done;\nagain:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%r1], 0;\n @!done bra.uni again;\n"
PAIRS = "@%p1 st.global.v2.b32 [ %rd1 + 0 ], { %r1, %r2 };\n mov.b64 {%r1, _}, %rd1;\n"
LIST = "$Lx: .branchtargets $L1, $L2;\n brx.idx %r1, $Lx;\n"


def ptx(body: str, others: str = "") -> str:
    return (f".version 8.7\n.target sm_90a\n{others}.visible .entry k(\n\t.param .u64 .ptr .global k_param_0\n)\n"
            f".reqntid 128\n{{\n\t.reg .pred %p<9>;\n\t.loc\t1 4 5 // kernel.ttir:4:5\n{body}\n$L__func_end0:\n}}\n"
            '\t.file 1 "kernel.ttir"\n')


WAITING = {
    "at once": f"{WAIT} ret;",
    "behind a loop": f"$L1:\n add.s32 %r1, %r1, 1;\n @%p1 bra $L1;\n {WAIT} ret;",
    "in both arms": f"@%p1 bra $L1;\n {WAIT} ret;\n$L1:\n {WAIT} ret;",
    "before a second end": f"{WAIT} @%p1 bra $L1;\n ret;\n$L1:\n ret;",
    "before a guarded end": f"{WAIT} @%p1 exit;\n ret;",
    "behind a label of inline assembly": f"{{\n{TRY}}}\n{{\n{TRY}}}\n{WAIT} ret;",
    "behind operands in braces": f"{PAIRS}{WAIT} ret;",
    "by a list of targets": f"{LIST}$L1:\n {WAIT} ret;\n$L2:\n {WAIT} ret;",
    "behind a call that returns": f"call.uni other, (param0);\n {WAIT} ret;",
}
NOT_WAITING = {
    "nowhere": "ret;",
    "in a comment": "// griddepcontrol.wait;\n ret;",
    "behind an end": f"@%p1 bra $L1;\n ret;\n$L1:\n {WAIT} ret;",
    "behind a guarded end": f"@%p1 exit;\n {WAIT} ret;",
    "guarded": f"@%p1 {WAIT} ret;",
    "branched over": f"@%p1 bra $L1;\n {WAIT}\n$L1:\n ret;",
    "in a loop of no turns": f"bra.uni $L2;\n$L1:\n {WAIT}\n$L2:\n @%p1 bra $L1;\n ret;",
    "in one of a list's targets": f"{LIST}$L1:\n {WAIT} ret;\n$L2:\n ret;",
    "taken out with what followed a fault": "st.global.b32 [%rd1], %r1;\n trap;",
    "taken out, a loop without an end": "$L1:\n st.global.b32 [%rd1], %r1;\n bra.uni $L1;",
    "behind the last instruction": "add.s32 %r1, %r1, 1;",
    "behind a branch to nowhere": f"@%p1 bra $L9;\n {WAIT} ret;",
    "in a label's other braces": f"@%p1 bra inner;\n {{\ninner:\n {WAIT} }}\n ret;",
}


@pytest.mark.parametrize("body", WAITING.values(), ids=WAITING)
def test_waits_on_every_path(body: str) -> None:
    assert every_program_waits(ptx(body), specialised=False)


@pytest.mark.parametrize("body", NOT_WAITING.values(), ids=NOT_WAITING)
def test_ends_on_some_path_without_a_wait(body: str) -> None:
    assert not every_program_waits(ptx(body), specialised=False)


def test_a_wait_of_another_function_is_not_the_entry_s() -> None:
    other = f".func other()\n{{\n {WAIT} ret;\n}}\n"
    assert not every_program_waits(ptx("call.uni other, ();\n ret;", other), specialised=False)
    assert not every_program_waits(f".func other()\n{{\n {WAIT} ret;\n}}\n", specialised=False)


def test_a_call_is_an_end_where_other_functions_may_end_a_thread() -> None:
    body = f"call.uni other, ();\n {WAIT} ret;"
    assert every_program_waits(ptx(body, ".func other()\n{\n ret;\n}\n"), specialised=False)
    assert not every_program_waits(ptx(body, ".func other()\n{\n exit;\n}\n"), specialised=False)


def test_of_warps_that_work_for_others_one_side_waits() -> None:
    own, workers = f"$L1:\n {WAIT} @%p2 bra $L3;\n ret;\n$L3:\n ret;", "$L2:\n bar.sync 1, 128;\n ret;"
    body = f"setp.lt.u32 %p1, %r3, 4;\n @%p1 bra $L1;\n bra.uni $L2;\n{own}\n{workers}"
    assert every_program_waits(ptx(body), specialised=True)
    assert not every_program_waits(ptx(body), specialised=False)
    assert not every_program_waits(ptx(body.replace(WAIT, f"@%p2 bra $L3;\n {WAIT}")), specialised=True)
    assert every_program_waits(ptx(f"{WAIT} ret;"), specialised=True)


def test_an_early_trigger_is_seen_anywhere_but_in_comments() -> None:
    assert triggers(ptx("griddepcontrol.launch_dependents; ret;"))
    assert not triggers(ptx("// griddepcontrol.launch_dependents;\n ret;"))


ADDRESSES = """ld.param.b64 %rd1, [k_param_0];
 ld.param.b64 %rd2, [k_param_1];
 ld.param.b64 %rd3, [k_param_2];
 mad.wide.s32 %rd4, %r1, 4, %rd1;
 add.s64 %rd5, %rd2, %rd9;
"""


@pytest.mark.parametrize(
    ("body", "touched"),
    [
        ("ld.global.b32 { %r2 }, [ %rd4 + 0 ];\n WAIT st.global.b32 [ %rd5 + 0 ], { %r2 };\n ret;", (0,)),
        ("WAIT ld.global.b32 { %r2 }, [ %rd4 + 0 ];\n ret;", ()),
        ("@%p1 st.global.v2.b32 [ %rd5 + 8 ], { %r2, %r3 };\n WAIT ret;", (1,)),
        ("@%p1 bra $L1;\n WAIT ld.global.b32 %r2, [%rd4];\n ret;\n"
         "$L1:\n red.global.add.u32 [%rd3], 1;\n WAIT ret;", (2,)),
        ("st.shared.b64 [ %r5 + 0 ], %rd4;\n "
         "ld.shared.b64 %rd7, [%r6];\n ld.global.b32 %r2, [%rd7];\n WAIT ret;", (0,)),
        ("ld.global.b64 %rd8, [%rd4];\n add.s64 %rd10, %rd5, %rd8;\n WAIT ld.global.b32 %r2, [%rd10];\n ret;", (0,)),
        ("mov.b64 %rd11, k_param_3;\n cvta.param.u64 %rd12, %rd11;\n cp.async.bulk.tensor.2d.shared::cta.global"
         ".mbarrier::complete_tx::bytes [%r1], [%rd12, {%r2, %r3}], [%r4];\n WAIT ret;", (3,)),
        ("ld.b32 %r2, [%rd4];\n st.local.b32 [%rd5], %r2;\n ld.shared.b32 %r3, [%r9];\n WAIT ret;", (0,)),
    ],
)
def test_what_is_touched_before_the_wait(body: str, touched: tuple[int, ...]) -> None:
    text = ptx(ADDRESSES + body.replace("WAIT", WAIT))
    assert touched_before_waiting(text, specialised=False) == touched
