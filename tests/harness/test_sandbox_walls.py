"""What bounds a candidate and what is left of it: filter decisions, the keeper's watch, control groups, removal."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.sandbox import cgroup, removal, seccomp, tree, users, watch
from harness.evaluation.sandbox.system_calls import ARCHITECTURES, DENIED, LAST_KNOWN, LEAVING, SPREADING
from harness.evaluation.sandbox.verdicts_on_faults import EXCESSES, exceeded

ME = 4711
ERRNO = seccomp.ERRNO
EPERM, ENOSYS = ERRNO | 1, ERRNO | 38


def decided(code: bytes, machine: str, number: int, *arguments: int) -> int:
    """What the kernel would do with one call: the filter run by hand."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number, ARCHITECTURES[machine], 0, *words)
    at, accumulator = 0, 0
    while True:
        operation, yes, no, value = struct.unpack_from("<HBBI", code, 8 * at)
        at += 1
        if operation == seccomp.LD_WORD:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == seccomp.AND:
            accumulator &= value
        elif operation == seccomp.RETURN:
            return value
        else:
            true = accumulator == value if operation == seccomp.JUMP_EQUAL else accumulator >= value
            at += yes if true else no


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
def test_every_denied_call_is_refused_and_exceptions_are_let_through(machine):
    column = list(ARCHITECTURES).index(machine)
    alone = seccomp.program(machine, alone_as=ME)
    lenient = seccomp.program(machine, allowed=("execve",))
    for name, numbers in {**DENIED, **SPREADING}.items():
        if numbers[column] is not None:
            assert decided(alone, machine, numbers[column]) in (EPERM, ENOSYS), name
            free = name in SPREADING or name == "execve"
            assert (decided(lenient, machine, numbers[column]) == seccomp.ALLOW) == free, name
    for number in LEAVING.values():
        assert decided(seccomp.program(machine, one_group=True), machine, number[column]) == EPERM
        assert decided(alone, machine, number[column]) == seccomp.ALLOW


CALLS = {"kill": (62, 129), "tgkill": (234, 131), "clone": (56, 220), "mmap": (9, 222), "prctl": (157, 167),
         "prlimit64": (302, 261), "fcntl": (72, 25), "read": (0, 63), "futex": (202, 98), "exit_group": (231, 94)}


@pytest.mark.parametrize("machine", list(ARCHITECTURES))
@pytest.mark.parametrize(("call", "arguments", "let"), [
    ("kill", (ME, 9), True), ("kill", (ME + 1, 9), False), ("kill", (0, 9), False), ("kill", (2**32 - 1, 9), False),
    ("tgkill", (ME, ME, 6), True), ("tgkill", (1, 1, 6), False),
    ("clone", (0x3D0F00,), True), ("clone", (17,), False), ("clone", (0x4111,), False),
    ("clone", (0x3D0F00 | 0x10000000,), False),
    ("mmap", (0, 4096, 3, 0x22), True), ("mmap", (0, 4096, 3, 0x21), False), ("mmap", (0, 4096, 1, 0x01), True),
    ("prctl", (1, 0), False), ("prctl", (4, 1), False), ("prctl", (36, 1), False), ("prctl", (15,), True),
    ("prlimit64", (0, 7), True), ("prlimit64", (ME, 7), False), ("prlimit64", (1, 7), False),
    ("fcntl", (3, 8, 1), False), ("fcntl", (3, 10, 9), False), ("fcntl", (3, 3), True),
    ("read", (), True), ("futex", (), True), ("exit_group", (), True),
])
def test_arguments_decide_where_the_call_itself_is_needed(machine, call, arguments, let):
    number = CALLS[call][list(ARCHITECTURES).index(machine)]
    answer = decided(seccomp.program(machine, alone_as=ME), machine, number, *arguments)
    assert answer == (seccomp.ALLOW if let else EPERM)


@given(st.integers(LAST_KNOWN + 1, 0x3FFFFFFF), st.sampled_from(list(ARCHITECTURES)))
def test_calls_that_nobody_knew_are_not_there(number, machine):
    assert decided(seccomp.program(machine), machine, number) == ENOSYS


def test_another_machine_code_ends_the_process():
    assert decided(seccomp.program("x86_64"), "aarch64", 0) == seccomp.KILL


hostile_names = st.binary(min_size=1, max_size=20).filter(lambda n: b"/" not in n and b"\0" not in n
                                                          and n not in (b".", b".."))
trees = st.recursive(st.sampled_from(["file", "link", "loop"]),
                     lambda inner: st.dictionaries(hostile_names, inner, max_size=3), max_leaves=12)


def grow(folder: Path, content) -> None:
    for name, inner in content.items():
        path = folder / os.fsdecode(name)
        if inner == "file":
            path.touch()
        elif inner in ("link", "loop"):
            path.symlink_to("/" if inner == "link" else os.fsdecode(name))
        else:
            path.mkdir()
            grow(path, inner)
            path.chmod(0)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(hostile_names, trees, max_size=4))
def test_whatever_is_left_in_a_folder_is_removed(tmp_path_factory, content):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "kept").touch()
    folder = tmp_path_factory.mktemp("left") / "folder"
    folder.mkdir()
    grow(folder, content)
    (folder / "to the outside").symlink_to(outside)
    assert removal.remove(str(folder))
    assert not folder.exists() and (outside / "kept").exists()
    assert removal.remove(str(folder))


def test_folders_deeper_than_any_path_are_removed(tmp_path):
    top, here = tmp_path / "top", Path.cwd()
    top.mkdir()
    os.chdir(top)
    try:
        for _ in range(1200):
            Path("deep").mkdir()
            os.chdir("deep")
    finally:
        os.chdir(here)
    assert removal.remove(str(top))
    assert not top.exists()


def test_the_watch_sees_tasks_folders_and_files_without_names(tmp_path):
    assert watch.excess(watch.Allowance(None)) is None
    many = tmp_path / "many"
    many.mkdir()
    for number in range(watch.ENTRIES + 1):
        (many / str(number)).touch()
    assert watch.excess(watch.Allowance(None, tmp=str(many))) == watch.DISK
    large = tmp_path / "large"
    large.mkdir()
    (large / "file").write_bytes(bytes(1 << 20))
    assert watch.excess(watch.Allowance(None, tmp=str(large), tmp_bytes=1 << 19)) == watch.DISK
    assert watch.excess(watch.Allowance(None, tmp=str(large), tmp_bytes=1 << 22)) is None


def test_the_watch_counts_what_descendants_hold(tmp_path):
    done, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        kept = bytearray(64 << 20)
        file = os.open(tmp_path / "nameless", os.O_CREAT | os.O_RDWR)
        (tmp_path / "nameless").unlink()
        os.write(file, bytes(1 << 20))
        os.write(ready, b"x")
        time.sleep(600)
        os._exit(len(kept))
    try:
        os.read(done, 1)
        assert pid in tree.descendants()
        assert watch.excess(watch.Allowance(memory_bytes=16 << 20)) == watch.MEMORY
        assert watch.excess(watch.Allowance(memory_bytes=16 << 30, tasks=0)) == watch.PROCESSES
        assert watch.excess(watch.Allowance(None, tmp=str(tmp_path), tmp_bytes=1 << 19)) == watch.DISK
        assert watch.excess(watch.Allowance(memory_bytes=16 << 30, tmp=str(tmp_path))) is None
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(done)
        os.close(ready)


def test_every_excess_has_its_sentence():
    for what, (code, _) in EXCESSES.items():
        assert exceeded(what).code == code and exceeded(what).outcome == "over_limit"


def test_what_a_process_spent_that_has_ended_is_counted():
    before = tree.ended_seconds([])
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.1:
            pass
        os._exit(0)
    os.waitpid(pid, 0)
    assert tree.ended_seconds([]) - before >= 0.1
    assert tree.ended_seconds([os.getpid()]) >= tree.ended_seconds([])


@pytest.mark.parametrize("mapped", [True, False])
def test_candidates_that_run_at_once_have_users_of_their_own(monkeypatch, mapped):
    monkeypatch.setattr(users, "_mapped", lambda uid: mapped)
    found = [users.of_candidate(number) for number in range(users.PER_SERVER)]
    assert len(set(found)) == users.PER_SERVER
    low, high = (users.FIRST, 2**31) if mapped else (users.LOW_FIRST, users.LOW_LAST + 1)
    assert all(low <= uid < high for uid in found)


@pytest.fixture
def delegated(monkeypatch, tmp_path):
    """A folder that looks like a group given to this installation; plain files take what is written."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    (tmp_path / "cgroup.subtree_control").write_text("")
    monkeypatch.setenv(cgroup.OVERRIDE, str(tmp_path))
    made = Path.mkdir

    def mkdir(self, *arguments, **named):
        made(self, *arguments, **named)
        (self / "cgroup.procs").write_text("")  # the kernel fills a new group

    monkeypatch.setattr(Path, "mkdir", mkdir)
    return tmp_path


def test_a_given_group_bounds_memory_and_tasks(delegated):
    group = cgroup.candidate_group(1 << 30, 256)
    assert (delegated / "cgroup.subtree_control").read_text() == "+memory +pids"
    limits = {name: (group.path / name).read_text() for name in ("memory.max", "memory.swap.max", "pids.max")}
    assert limits == {"memory.max": str((1 << 30) + cgroup.TMP_BYTES), "memory.swap.max": "0", "pids.max": "256"}
    assert group.cpu_seconds() is None
    (group.path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert group.cpu_seconds() == 2.5
    os.write(group.procs, b"77\n")
    assert group.members() == [77]
    group.joined()
    assert group.procs == -1


@pytest.mark.parametrize(("controllers", "reason"), [("cpu pids", "memory"), ("", "memory and pids")])
def test_a_group_that_cannot_bound_is_not_used(delegated, controllers, reason):
    (delegated / "cgroup.controllers").write_text(controllers)
    assert cgroup.candidate_group(1 << 30, 256) is None
    assert reason in cgroup.home()[1]


def test_without_a_group_the_reason_names_the_setting(monkeypatch, tmp_path):
    monkeypatch.delenv(cgroup.OVERRIDE, raising=False)
    assert cgroup.OVERRIDE in cgroup.home()[1]
    monkeypatch.setenv(cgroup.OVERRIDE, str(tmp_path / "nowhere"))
    assert "nowhere" in cgroup.home()[1]


def test_groups_of_dead_judges_are_removed(delegated, monkeypatch):
    removed = []
    monkeypatch.setattr(cgroup, "_gone", lambda path: removed.append(path.name))
    (delegated / "candidate-999999999-1").mkdir()
    (delegated / f"candidate-{os.getpid()}-1").mkdir()
    cgroup.sweep()
    assert removed == ["candidate-999999999-1"]
