"""How to put up the walls that do not stand here, and so to reach the next level: one sentence each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from harness.evaluation.sandbox.cgroup import OVERRIDE
from harness.evaluation.sandbox.proof import NAMESPACES, Proof

HIGHEST = 3
SWITCHES = (
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
     "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
)
"""Settings of the kernel that keep ordinary users from namespaces: file, refusing value, what mends it."""

REQUEST = "left out on request"
NOT_ASKED = "not asked for"


def setting(path: str) -> str:
    """The value of one kernel setting, empty where it does not exist."""
    try:
        return Path(path).read_text("ascii").strip()
    except OSError:
        return ""


def namespaces(read: Callable[[str], str] = setting, privileged: bool | None = None) -> str:
    """How to be allowed namespaces here."""
    root = os.geteuid() == 0 if privileged is None else privileged
    mends = [mend for path, refusing, mend in SWITCHES if read(path) == refusing]
    if root:
        return ("Give the worker's container the capability CAP_SYS_ADMIN and a seccomp profile that lets 'unshare' "
                "and 'mount' through" + (f", or allow user namespaces: {' and '.join(mends)}" if mends else "") + ".")
    if mends:
        return f"Run the evaluation worker as root, or allow user namespaces: {' and '.join(mends)}."
    return ("Run the evaluation worker as root; inside a container also give it CAP_SYS_ADMIN and a seccomp profile "
            "that lets 'unshare' and 'mount' through.")


def remedies(proof: Proof) -> dict[str, str]:
    """What to do about each wall that does not stand, by wall."""
    why = dict(proof.missing)
    found = {name: f"Open the sandbox with its '{name}' wall again." for name, reason in why.items()
             if reason in (REQUEST, NOT_ASKED)}
    for name in why:
        if name in NAMESPACES:
            found.setdefault(name, namespaces())
    for name, remedy in (
        ("uid", "Run the evaluation worker as root (or with CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN), with Python and "
                "its packages where every user may read them."),
        ("landlock", "Use Linux 5.13 or newer with Landlock switched on: add 'landlock' to the kernel's 'lsm=' start "
                     "parameter."),
        ("seccomp", "Use an x86_64 or aarch64 kernel built with CONFIG_SECCOMP_FILTER, in a container whose profile "
                    "lets 'prctl' through."),
        ("limits", "Let the worker lower its limits: start it with plain 'ulimit' settings and without a wrapper that "
                   "raises them later."),
        ("no_new_privs", "Use Linux 3.5 or newer."),
        ("cgroup", "For a hard limit on what all of a candidate's processes use, give the worker a control group of "
                   f"version 2 with the controllers memory and pids and set {OVERRIDE} to its folder."),
    ):
        if name in why:
            found.setdefault(name, remedy)
    return found


def next_level(proof: Proof) -> str:
    """How to reach the level above the proved one, in one sentence."""
    if proof.level >= HIGHEST:
        return "Nothing: level 3 is the highest."
    found, why = remedies(proof), dict(proof.missing)
    wanted = {2: ("pidns", "uid"), 1: ("landlock", *NAMESPACES), 0: ("limits", *NAMESPACES, "landlock", "seccomp")}
    for name in wanted[proof.level]:
        if name in why:
            return found[name]
    got = ", ".join(proof.escaped) or "a process that outlived its candidate"
    return f"Every wall stands but the probe got through ({got}): give this report to a maintainer."
