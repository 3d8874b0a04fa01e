"""Attempts on wide interfaces of the kernel, on the network, on memory without a limit, on the clock and the cores."""

from __future__ import annotations

from tests.harness.sandbox_attacks.attempt import NO_FILES, NO_FILTER, NOWHERE, UNWALLED, Attempt

FILTER = "seccomp"


def _call(name: str, group: str, does: str, numbers: tuple[int | None, int | None], arguments: str = "0, 0, 0, 0, 0",
          by: str = FILTER, may: frozenset[str] = NO_FILTER) -> Attempt:
    """A call that counts as let in unless the kernel refuses it outright."""
    code = f"number = {numbers!r}[os.uname().machine == 'aarch64']\n"
    code += f"return number is not None and call(number, {arguments})"
    return Attempt(name, group, does, code, by, may)


def _socket(name: str, does: str, family: int, kind: int, protocol: int = 0, sure: bool = False) -> Attempt:
    code = f"socket.socket({family}, {kind}, {protocol}).close()\nreturn True"
    return Attempt(name, "G", does, code, FILTER, NO_FILTER, sure)


CALLS = (
    _call("perf_event_open", "C", "opens performance counters", (298, 241)),
    _call("bpf", "G", "loads a program into the kernel", (321, 280)),
    _call("userfaultfd", "G", "handles page faults itself", (323, 282)),
    _call("io_uring", "G", "has the kernel work asynchronously, past the filter", (425, 425)),
    _call("keyctl", "G", "talks to the kernel's key store", (250, 219)),
    _call("add_key", "G", "leaves a key in the kernel", (248, 217)),
    _call("syslog", "G", "reads the kernel's log", (103, 116), "3, 0, 0", "seccomp, capabilities"),
    _call("mount", "G", "mounts a file system", (165, 40), "b'none', b'/', b'tmpfs', 0, 0",
          by="seccomp, capabilities", may=NOWHERE),
    _call("fsopen", "G", "mounts by the new interface", (430, 430), by="seccomp, capabilities", may=NOWHERE),
    _call("pivot_root", "G", "moves the root", (155, 41), by="seccomp, capabilities", may=NOWHERE),
    _call("chroot", "G", "changes the root", (161, 51), "b'/'", by="seccomp, capabilities", may=NOWHERE),
    _call("open_by_handle", "G", "opens a file by its inode", (304, 265)),
    _call("setns", "G", "enters a namespace", (308, 268)),
    _call("own_filter", "H", "puts a filter on itself that rewrites calls", (317, 277), "2, 0, 0"),
    _call("personality", "G", "turns address randomisation off", (135, 92), "0x40000"),
    _call("quotactl", "G", "changes quotas", (179, 60)),
    _call("kexec", "G", "loads another kernel", (246, 104), by="seccomp, capabilities", may=NOWHERE),
    _call("module", "G", "loads a kernel module", (175, 105), by="seccomp, capabilities", may=NOWHERE),
    _call("x32", "G", "calls through the other numbering of x86", (0x40000000 + 41, None), "2, 1, 0"),
    _call("future", "G", "makes a call that is newer than the filter", (463, 463), "-1, 0, 0, 0, 0, 0"),
    _call("vmsplice", "G", "moves its pages into a pipe", (278, 75)),
    _call("inotify", "G", "takes file watches that the site needs", (294, 26)),
    Attempt("root_again", "G", "becomes root", """
        if os.getuid() == 0:
            return False  # without capabilities it is not root but in name
        os.setuid(0)
        return True""", "uid, capabilities"),
    Attempt("capabilities", "G", "takes capabilities back", """
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        every = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
        works(126 if os.uname().machine == "x86_64" else 91, header, every)
        return True""", "an empty bounding set"),
)

NETWORK = (
    Attempt("tcp", "G", "connects to a service of this machine", """
        socket.create_connection(("127.0.0.1", facts["tcp"]), 1).close()
        return True""", "netns, landlock, seccomp", UNWALLED, sure=True),
    Attempt("udp", "G", "sends a datagram", """
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", facts["udp"])) == 1""",
            "netns, seccomp", UNWALLED, sure=True),
    Attempt("abstract_socket", "G", "connects to an abstract unix socket", """
        socket.socket(socket.AF_UNIX).connect(b"\\0" + facts["abstract"].encode())
        return True""", "netns, landlock (scope), seccomp", UNWALLED, sure=True),
    Attempt("path_socket", "G", "connects to a unix socket by its path", """
        socket.socket(socket.AF_UNIX).connect(facts["socket"])
        return True""", "mountns, uid, seccomp", UNWALLED, sure=True),
    _socket("inet", "opens any internet socket", 2, 1, sure=True),
    _socket("netlink", "talks to the kernel's network configuration", 16, 3),
    _socket("vsock", "talks to the host of a virtual machine", 40, 1),
    _socket("crypto_socket", "uses the kernel's cryptography", 38, 5),
    Attempt("raw", "G", "sends raw packets", "socket.socket(2, 3, 1).close()\nreturn True", "seccomp, capabilities"),
    Attempt("packet", "G", "reads every packet", "socket.socket(17, 3, 768).close()\nreturn True",
            "seccomp, capabilities"),
    Attempt("name_lookup", "G", "looks a name up", """
        return bool(socket.gethostbyname("localhost.kernelopt.invalid"))""", "netns, seccomp"),
)

MEMORY = (
    Attempt("shared_anonymous", "H", "shares memory that no limit counts", """
        mmap.mmap(-1, 4096).close()
        return True""", FILTER, NO_FILTER, sure=True),
    Attempt("memory_file", "H", "makes a memory file", "os.close(os.memfd_create('x'))\nreturn True", FILTER, NO_FILTER,
            sure=True),
    Attempt("zero_device", "H", "shares memory by way of /dev/zero", """
        fd = os.open("/dev/zero", os.O_RDONLY)
        mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ).close()
        return True""", "mountns, landlock", NO_FILES, sure=True),
    Attempt("dev_shm", "H", "leaves a file in /dev/shm", """
        path = f"/dev/shm/kernelopt-attack-{os.getpid()}"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        os.unlink(path)
        return True""", "mountns, landlock", NO_FILES),
    Attempt("system_v_memory", "H", "makes memory that outlives it", """
        number = works(29 if os.uname().machine == "x86_64" else 194, 0, 4096, 0o1666)
        works(31 if os.uname().machine == "x86_64" else 195, number, 0, 0)
        return True""", FILTER, NO_FILTER),
    _call("semaphores", "H", "makes semaphores that outlive it", (64, 190), "facts['key'], 0, 0"),
    _call("messages", "H", "makes a message queue that outlives it", (68, 186), "facts['key'], 0"),
    _call("named_queue", "H", "opens a message queue by its name", (240, 180), "b'', 0, 0, 0"),
    Attempt("locked_memory", "H", "locks memory", """
        return libc.mlock(ctypes.create_string_buffer(1 << 16), 1 << 16) == 0""", "limits", UNWALLED),
    Attempt("limits_raised", "H", "raises its own limits", """
        resource.setrlimit(resource.RLIMIT_NOFILE, (100_000, 100_000))
        return True""", "limits, capabilities", UNWALLED),
    Attempt("many_files", "H", "opens files without end", """
        held = []
        try:
            for _ in range(2000):
                held.append(os.dup(0))
        finally:
            for fd in held:
                os.close(fd)
        return True""", "limits", UNWALLED),
    Attempt("address_space", "H", "maps so much that page tables alone fill the machine", """
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        size = 1 << 44
        address = libc.mmap(None, size, 1, 0x4022, -1, 0)
        if address == ctypes.c_void_p(-1).value:
            raise OSError("no")
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
        return True""", "limits", UNWALLED, sure=True),
)

CLOCK = (
    Attempt("unpinned", "C", "leaves the core it is measured on", """
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        return True""", FILTER, NO_FILTER, sure=True),
    Attempt("real_time", "C", "runs before everybody else", """
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return True""", "seccomp, capabilities"),
    Attempt("nicer", "C", "changes its priority", """
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
        return True""", FILTER, NO_FILTER, sure=True),
    _call("io_priority", "C", "changes the priority of its input and output", (251, 30), "1, 0, 0"),
    _call("clock_set", "C", "sets the clock", (227, 112), "0, 0", "seccomp, capabilities"),
    _call("clock_slewed", "C", "slews the clock", (305, 266), "0, 0", "seccomp, capabilities"),
    Attempt("governor", "C", "changes the frequency of a core", """
        places = list(Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor"))
        places += list(Path("/sys/devices/system/cpu").glob("cpu*/online"))
        return any(opens(path, os.O_WRONLY) for path in places[:1])""", "uid, mountns, landlock, capabilities",
            NO_FILES),
)

LAST = (
    Attempt("user_namespace", "G", "gets capabilities in a namespace of its own", """
        if libc.unshare(0x10000000) == -1:
            raise OSError(ctypes.get_errno(), "")
        return True""", FILTER, NO_FILTER),
)
"""Inside a namespace of its own a process has capabilities, with which later attempts would look different."""

KERNEL = (*CALLS, *NETWORK, *MEMORY, *CLOCK)
