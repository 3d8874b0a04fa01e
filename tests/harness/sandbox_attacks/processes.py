"""Attempts on other processes: the judge, the keeper, another candidate; and on becoming more than one process."""

from __future__ import annotations

from tests.harness.sandbox_attacks.attempt import NO_FILES, NO_FILTER, UNWALLED, Attempt

PROC = "pidns, uid, landlock; the judge cannot be dumped"
SIGNAL = "pidns, uid, landlock (scope), seccomp"

PROCESSES = (
    Attempt("judge_pipe", "H", "writes into a pipe of the judge through /proc/<judge>/fd", """
        fd = os.open(f"/proc/{other(facts['judge'])}/fd/{facts['pipe']}", os.O_WRONLY)
        return os.write(fd, b"forged") == 6""", PROC, NO_FILES),
    Attempt("judge_environ", "H", "reads the environment of the judge", """
        return opens(f"/proc/{other(facts['judge'])}/environ", os.O_RDONLY)""", PROC, NO_FILES),
    Attempt("judge_memory", "H", "opens the memory of the judge for writing", """
        return opens(f"/proc/{other(facts['judge'])}/mem", os.O_RDWR)""", PROC, NO_FILES),
    Attempt("judge_listed", "G", "lists the judge's open files", """
        return os.listdir(f"/proc/{other(facts['judge'])}/fd")""", PROC, NO_FILES),
    Attempt("judge_arguments", "G", "reads the command line of the judge", """
        return opens(f"/proc/{other(facts['judge'])}/cmdline", os.O_RDONLY)""", "pidns, landlock",
            NO_FILES, sure=True),
    Attempt("keeper_memory", "H", "opens the memory of its keeper", """
        return opens(f"/proc/{os.getppid()}/mem", os.O_RDWR)""", "uid, landlock, no dumps of the keeper"),
    Attempt("keeper_descriptor", "H", "opens a descriptor of its keeper", """
        return any(opens(f"/proc/{os.getppid()}/fd/{n}", os.O_RDWR) for n in range(12))""",
            "uid, landlock, no dumps of the keeper"),
    Attempt("keeper_stopped", "H", "may signal its keeper, and so stop or kill it", """
        if os.getppid() == 1:
            return False  # init takes nothing from inside
        os.kill(os.getppid(), 0)
        return True""", "pidns, uid, landlock (scope), seccomp", UNWALLED, sure=True),
    Attempt("judge_signalled", "H", "may signal the judge", """
        os.kill(other(facts['judge']), 0)
        return True""", SIGNAL, UNWALLED, sure=True),
    Attempt("everybody_signalled", "H", "signals every process it may: kill(-1)", """
        if os.getppid() == 1:
            return False  # within a pid namespace there is nobody else
        os.kill(-1, 0)
        return True""", SIGNAL, UNWALLED, sure=True),
    Attempt("sibling_signalled", "H", "may signal another candidate", """
        os.kill(other(facts['sibling']), 0)
        return True""", SIGNAL, UNWALLED, sure=True),
    Attempt("sibling_memory", "H", "opens the memory of another candidate", """
        return opens(f"/proc/{other(facts['sibling'])}/mem", os.O_RDWR)""", "pidns, uid, landlock, no dumps"),
    Attempt("signal_by_descriptor", "H", "has the kernel signal the judge when a descriptor is ready", """
        fcntl.fcntl(1, fcntl.F_SETOWN, other(facts['judge']))
        return fcntl.fcntl(1, fcntl.F_GETOWN) == facts['judge']""", "pidns, seccomp", UNWALLED, sure=True),
    Attempt("queued_signal", "H", "queues a signal with a forged sender", """
        info = ctypes.create_string_buffer(struct.pack("<iii", 0, 0, -1) + bytes(116), 128)
        works(129 if os.uname().machine == "x86_64" else 138, other(facts['judge']), 0, info)
        return True""", SIGNAL, UNWALLED, sure=True),
    Attempt("server_memory", "H", "opens the memory of the warm server, from which the next candidate is made", """
        return opens(f"/proc/{other(facts['server'])}/mem", os.O_RDWR)""", "pidns, uid, landlock, no dumps"),
    Attempt("traced", "H", "attaches a tracer to the judge", """
        if libc.ptrace(0x4206, other(facts['judge']), None, None) == -1:
            raise OSError("no")
        return True""", "pidns, uid, landlock, seccomp", UNWALLED),
    Attempt("read_by_call", "H", "process_vm_readv on the judge", """
        return call(310 if os.uname().machine == "x86_64" else 270, other(facts['judge']), 0, 0, 0, 0, 0)""",
            "seccomp; access rights behind it", NO_FILTER),
    Attempt("descriptor_taken", "H", "pidfd_getfd: takes a descriptor of the judge", """
        return works(438, works(434, other(facts['judge']), 0), facts['pipe'], 0) >= 0""",
            "pidns, uid, landlock, seccomp", UNWALLED),
    Attempt("watched", "H", "pidfd_open: holds on to a process by its number", """
        return works(434, os.getpid(), 0) >= 0""", "seccomp", NO_FILTER),
    Attempt("compared", "H", "kcmp: compares kernel objects of two processes", """
        return call(312 if os.uname().machine == "x86_64" else 272, os.getpid(), os.getpid(), 0, 0, 0)""", "seccomp",
            NO_FILTER),
    Attempt("judge_limited", "G", "changes a limit of the judge", """
        resource.prlimit(other(facts['judge']), resource.RLIMIT_CORE)
        return True""", "pidns, uid, seccomp", UNWALLED, sure=True),
    Attempt("judge_moved", "C", "moves the judge to another core", """
        pid = other(facts['judge'])
        os.sched_setaffinity(pid, os.sched_getaffinity(pid))
        return True""", "pidns, uid, seccomp; a privileged judge also by its capabilities", UNWALLED),
    Attempt("forked", "H", "starts a process", """
        return leave(os.fork())""", "seccomp: a candidate stays one process", NO_FILTER, sure=True),
    Attempt("forked_by_number", "H", "starts a process by the bare system call", """
        if os.uname().machine != "x86_64":
            return False
        return leave(works(57))""", "seccomp", NO_FILTER),
    Attempt("cloned", "H", "clone3 with new namespaces", """
        arguments = ctypes.create_string_buffer(struct.pack("<11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)
        return leave(works(435, arguments, 88))""", "seccomp", NO_FILTER),
    Attempt("spawned", "H", "posix_spawn of a program", """
        pid = os.posix_spawn("/bin/true", ["true"], {})
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0""", "seccomp, landlock, mountns", UNWALLED,
            sure=True),
    Attempt("executed", "G", "reaches the call that starts programs, with an enormous argument", """
        argument = ctypes.create_string_buffer(b"x" * 100_000)
        arguments = (ctypes.c_char_p * 2)(ctypes.addressof(argument), None)
        return call(59 if os.uname().machine == "x86_64" else 221, b"/no-such-program", arguments, 0)""", "seccomp",
            NO_FILTER),
    Attempt("memory_executed", "G", "executes a program from a memory file", """
        fd = os.memfd_create("program")
        os.write(fd, b"#!/bin/true")
        pid = os.posix_spawn(f"/proc/self/fd/{fd}", ["true"], {})
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0""", "seccomp, landlock, mountns", UNWALLED),
    Attempt("survives_keeper", "H", "gives up the signal that ends it with its keeper", """
        works(157 if os.uname().machine == "x86_64" else 167, 1, 0, 0, 0, 0)
        return True""", "seccomp; the pid namespace ends it all the same", NO_FILTER, sure=True),
    Attempt("dump_allowed", "G", "lets its memory be dumped and read again", """
        works(157 if os.uname().machine == "x86_64" else 167, 4, 1, 0, 0, 0)
        return True""", "seccomp", NO_FILTER, sure=True),
    Attempt("adopts", "H", "becomes the parent of orphans, so that they are missed", """
        works(157 if os.uname().machine == "x86_64" else 167, 36, 1, 0, 0, 0)
        return True""", "seccomp; the keeper looks through the whole tree", NO_FILTER, sure=True),
)
