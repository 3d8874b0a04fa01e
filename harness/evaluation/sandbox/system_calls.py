"""System calls by name, with their numbers on x86_64 and aarch64, and what a candidate process is refused of them."""

from __future__ import annotations

from dataclasses import dataclass

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
Numbers = tuple[int | None, int | None]
"""Call numbers on (x86_64, aarch64); ``None`` where the architecture has no such call."""

DENIED: dict[str, Numbers] = {
    # other processes: trace, read, compare, steal from, follow
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "move_pages": (279, 239), "migrate_pages": (256, 238),
    # wide interfaces of the kernel
    "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "syslog": (103, 116),
    "seccomp": (317, 277), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "vmsplice": (278, 75), "splice": (275, 76), "tee": (276, 77),
    "personality": (135, 92), "modify_ldt": (154, None), "iopl": (172, None), "ioperm": (173, None),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "lookup_dcookie": (212, 18), "uselib": (134, None), "sysfs": (139, None), "ustat": (136, None),
    # file systems and names of files
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "statmount": (457, 457), "listmount": (458, 458),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "acct": (163, 89), "mknod": (133, None), "mknodat": (259, 33),
    # watches are counted per user, and the site needs its own
    "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    # namespaces and names of the host
    "unshare": (272, 97), "setns": (308, 268), "sethostname": (170, 161), "setdomainname": (171, 162),
    # keys
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # sockets of any family; the channel to the judge is open already
    "socket": (41, 198), "socketpair": (53, 199),
    # the clock, and who runs when and where
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "setpriority": (141, 140), "ioprio_set": (251, 30),
    # memory, semaphores and messages that outlive their process
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191),
    "semop": (65, 193), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "memfd_secret": (447, 447),
    # other programs
    "execve": (59, 221), "execveat": (322, 281),
}
LEAVING: dict[str, Numbers] = {"setsid": (112, 157), "setpgid": (109, 154)}
"""Ways out of a process group: refused where the group is what gets killed."""
SPREADING: dict[str, Numbers] = {
    "fork": (57, None), "vfork": (58, None), "memfd_create": (319, 279), "tkill": (200, 130),
}
"""Refused to a process that is to stay alone: other processes, memory that no limit counts, signals without a group."""

LAST_KNOWN = 462
"""Calls that came after this list was written are answered as if the kernel did not have them."""
CLONE: Numbers = (56, 220)
CLONE3 = 435
NAMESPACES = 0x7E020000 | 0x00000080  # every CLONE_NEW* flag, CLONE_NEWTIME included
CLONE_THREAD = 0x00010000
SHARED_ANONYMOUS = 0x21


@dataclass(frozen=True, slots=True)
class Rule:
    """A call that is refused by its argument number ``argument``: where the bits of ``mask`` are ``value`` (``equal``),
    or where they are anything else."""

    numbers: Numbers
    argument: int
    mask: int
    value: int
    equal: bool


ALL_BITS = 0xFFFFFFFF
PRCTL: Numbers = (157, 167)
FCNTL: Numbers = (72, 25)
ARGUMENTS: tuple[Rule, ...] = (
    Rule(CLONE, 0, NAMESPACES, 0, equal=False),
    Rule((302, 261), 0, ALL_BITS, 0, equal=False),  # prlimit64: the limits of another process
    *(Rule(PRCTL, 0, ALL_BITS, option, equal=True) for option in (1, 4, 36, 0x59616D61)),
    *(Rule(FCNTL, 1, ALL_BITS, command, equal=True) for command in (8, 10, 15, 1026)),
)
"""``prctl``: the death signal, dumps of memory (and who may read it), adoption of orphans, who may trace;
``fcntl``: signals to somebody else when a descriptor or a directory changes."""


SOCKET: Numbers = (41, 198)
AF_UNIX = 1
SPEAKING: dict[str, Numbers] = {
    "connect": (42, 203), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
}
"""What a socket is good for: refused where a driver insists on opening one, naming it and waiting on it."""
LOCAL_ONLY = Rule(SOCKET, 0, ALL_BITS, AF_UNIX, equal=False)


def alone(pid: int) -> tuple[Rule, ...]:
    """Rules for a process that stays alone: threads but no children, no shared memory, signals to itself only."""
    to_itself: tuple[Numbers, ...] = ((62, 129), (234, 131), (129, 138), (297, 240))
    return (
        Rule(CLONE, 0, CLONE_THREAD, 0, equal=True),
        Rule((9, 222), 3, SHARED_ANONYMOUS, SHARED_ANONYMOUS, equal=True),
        *(Rule(numbers, 0, ALL_BITS, pid, equal=False) for numbers in to_itself),
    )
