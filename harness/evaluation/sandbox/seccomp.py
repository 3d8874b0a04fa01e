"""A system-call deny list (classic BPF) for candidate processes: refused calls fail with EPERM.

It keeps a candidate from tracing, mounting, changing namespaces, opening sockets, unpinning itself and reaching the
wide kernel interfaces; compilers and maths need none of that. Executing programs is refused by Landlock or here.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Collection

from harness.evaluation.sandbox import linux

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# name: (x86_64, aarch64); None where the architecture has no such call
DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "syslog": (103, 116),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "quotactl": (179, 60), "acct": (163, 89),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "socket": (41, 198), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274), "setpriority": (141, 140), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "sethostname": (170, 161), "setdomainname": (171, 162), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "iopl": (172, None), "ioperm": (173, None),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),  # outlive their process
    "execve": (59, 221), "execveat": (322, 281),
}
LEAVING = {"setsid": (112, 157), "setpgid": (109, 154)}
"""Ways out of a process group: refused where the group is what gets killed."""
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435
NAMESPACES = 0x7E020000 | 0x00000080  # every CLONE_NEW* flag, CLONE_NEWTIME included

LD_WORD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def program(machine: str, *, allowed: Collection[str] = (), one_group: bool = False) -> bytes:
    """The filter for ``machine`` as BPF instructions (``struct sock_filter`` array).

    ``allowed`` names calls of ``DENIED`` to let through; ``one_group`` also refuses ``LEAVING``.
    """
    column = list(ARCHITECTURES).index(machine)
    denied_calls = {**DENIED, **LEAVING} if one_group else DENIED
    numbers = [
        number for name, pair in denied_calls.items() if name not in allowed and (number := pair[column]) is not None
    ]
    denied = RETURN, 0, 0, ERRNO | errno.EPERM
    code = [(LD_WORD, 0, 0, 4), (JUMP_EQUAL, 1, 0, ARCHITECTURES[machine]), (RETURN, 0, 0, KILL), (LD_WORD, 0, 0, 0)]
    if machine == "x86_64":  # the x32 numbering would slip past the list
        code += [(JUMP_GREATER_EQUAL, 0, 1, 0x40000000), denied]
    # clone3 hides its flags behind a pointer; "not there" makes the C library use clone
    code += [(JUMP_EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, ERRNO | errno.ENOSYS)]
    for number in numbers:
        code += [(JUMP_EQUAL, 0, 1, number), denied]
    code += [(JUMP_EQUAL, 0, 3, CLONE[machine]), (LD_WORD, 0, 0, 16), (JUMP_SET, 0, 1, NAMESPACES), denied]
    code += [(RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def install(*, allowed: Collection[str] = (), one_group: bool = False) -> None:
    """Put the filter on this process for good; the options are those of ``program``. Needs ``no_new_privs``.

    Raises:
        OSError: the kernel or the architecture has no seccomp filter.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system-call list for {machine}")
    code = program(machine, allowed=allowed, one_group=one_group)
    buffer = ctypes.create_string_buffer(code, len(code))
    filled = _Program(len(code) // 8, ctypes.addressof(buffer))
    linux.prctl(linux.PR_SET_SECCOMP, 2, ctypes.addressof(filled))
