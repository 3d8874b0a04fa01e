"""Attempts on files: what a candidate should not read, and the places where the next candidate would find something."""

from __future__ import annotations

from tests.harness.sandbox_attacks.attempt import NO_FILES, NOWHERE, UNWALLED, Attempt

WALLS = "mountns, landlock"
CREATE = "os.O_CREAT | os.O_WRONLY | os.O_EXCL"


def _reads(name: str, does: str, fact: str, sure: bool = True) -> Attempt:
    return Attempt(name, "G", does, f"return opens(facts['{fact}'], os.O_RDONLY)", WALLS, NO_FILES, sure)


def _writes(name: str, does: str, fact: str) -> Attempt:
    """Open an existing file for writing; a candidate of another user fails on its mode as well."""
    return Attempt(name, "G", does, f"return opens(facts['{fact}'], os.O_WRONLY)", "mountns, landlock, uid", NO_FILES,
                   sure=True)


def _creates(name: str, does: str, where: str, group: str = "A") -> Attempt:
    return Attempt(name, group, does, f"""
        path = str({where}) + "/kernelopt-attack"
        os.close(os.open(path, {CREATE}, 0o600))
        os.unlink(path)
        return True""", "mountns, landlock", NO_FILES, sure=True)


FILES = (
    _reads("reads_judge", "reads the evaluator's source", "judge_source"),
    _reads("reads_reference", "reads an operator's reference", "operator_source"),
    _reads("reads_secret", "reads a file of the person who runs the worker", "secret"),
    _reads("reads_accounts", "reads the machine's accounts", "accounts"),
    Attempt("reads_log", "G", "reads what the warm server logged", "return opens(facts['log'], os.O_RDONLY)",
            "mountns, landlock", NO_FILES),
    Attempt("lists_candidates", "A", "lists the folders of other candidates", "return bool(os.listdir(facts['home']))",
            "mountns, landlock, uid", NO_FILES, sure=True),
    Attempt("writes_sibling", "A", "writes into the folder of another candidate", f"""
        path = facts["sibling_folder"] + "/left"
        os.close(os.open(path, {CREATE}, 0o600))
        os.unlink(path)
        return True""", "mountns, landlock, uid", NO_FILES, sure=True),
    _writes("changes_numba", "changes a compiler that the next candidate imports", "numba_source"),
    _writes("changes_judge", "changes the evaluator", "judge_source"),
    _creates("shadow_module", "drops a module that shadows another", "facts['package']", "G"),
    _creates("tmp_file", "leaves an answer in /tmp", "facts['tmp']"),
    Attempt("hard_link", "A", "links a foreign file into its own folder", """
        os.link(facts["secret"], "linked")
        os.unlink("linked")
        return True""", "mountns, landlock", NO_FILES),
    Attempt("symbolic_link", "A", "reads through a link from its own folder", """
        os.symlink(facts["secret"], "pointer")
        try:
            return opens("pointer", os.O_RDONLY)
        finally:
            os.unlink("pointer")""", WALLS, NO_FILES, sure=True),
    Attempt("climbs_out", "G", "leaves its root by relative paths", """
        return opens("../" * 40 + facts["secret"].lstrip("/"), os.O_RDONLY)""", WALLS, NO_FILES, sure=True),
    Attempt("root_of_another", "G", "leaves its root through /proc/1/root", """
        return opens("/proc/1/root" + facts["secret"], os.O_RDONLY)""", "pidns, landlock, uid", UNWALLED),
    Attempt("time_zone", "C", "changes the machine's time zone", """
        return opens("/etc/localtime", os.O_WRONLY) if os.path.exists("/etc/localtime") else False""",
            "mountns, landlock, uid", NO_FILES),
    Attempt("system_setting", "C", "changes a setting of the kernel", """
        return opens("/proc/sys/kernel/randomize_va_space", os.O_WRONLY)""", "uid, landlock, capabilities", NO_FILES),
    Attempt("system_request", "H", "restarts the machine by way of /proc", """
        return opens("/proc/sysrq-trigger", os.O_WRONLY)""", "uid, landlock, capabilities", NO_FILES),
    Attempt("last_to_die", "H", "asks not to be ended where memory runs out", """
        Path("/proc/self/oom_score_adj").write_text("-1000")
        return True""", "landlock, uid, capabilities"),
    Attempt("control_group", "H", "leaves or changes its control group", """
        return any(opens(path, os.O_WRONLY) for path in Path("/sys/fs/cgroup").glob("*/cgroup.procs"))""",
            "mountns, landlock, uid", NO_FILES),
    Attempt("device_node", "G", "makes a device", """
        os.mknod("memory", 0o600 | 0x2000, os.makedev(1, 1))
        return True""", "capabilities, seccomp", NOWHERE),
    Attempt("large_file", "H", "makes a file larger than it may", """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            with open("large", "wb") as file:
                file.truncate(1 << 30)
        finally:
            os.unlink("large")
        return True""", "limits", UNWALLED),
)
