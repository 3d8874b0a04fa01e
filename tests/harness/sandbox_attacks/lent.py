"""Attempts on the memory that the judge lends: sealed inputs and outputs of a fixed size."""

from __future__ import annotations

from collections.abc import Sequence

from tests.harness.sandbox_attacks.attempt import PRELUDE, RUNNER, Attempt, function

SEALS = "seals of the memory file"
KEEP = """
KEPT = []
_close = os.close
def keep(fd):
    KEPT.append(fd)
os.close = keep
"""
"""The worker closes each descriptor once it has mapped it; a hostile one keeps them."""

LENT = (
    Attempt("input_written", "E", "writes to an input by its descriptor", "return os.pwrite(KEPT[0], b'x', 70000) == 1",
            SEALS),
    Attempt("input_reopened", "E", "opens an input anew for writing", """
        return os.pwrite(os.open(f"/proc/self/fd/{KEPT[0]}", os.O_RDWR), b"x", 70000) == 1""", SEALS),
    Attempt("input_mapped", "E", "maps an input for writing", """
        mmap.mmap(KEPT[0], 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)[0] = 1
        return True""", SEALS),
    Attempt("input_unprotected", "E", "makes its map of an input writable", """
        address = facts_of_run["x"] & ~4095
        return libc.mprotect(ctypes.c_void_p(address), 4096, 3) == 0""", SEALS),
    Attempt("input_forced", "E", "writes to its own read-only map through /proc/self/mem", """
        with open("/proc/self/mem", "r+b", buffering=0) as file:
            file.seek(facts_of_run["x"])
            return file.write(b"x") == 1""", "the kernel forces only private maps"),
    Attempt("input_punched", "E", "punches a hole into an input", """
        return libc.fallocate(KEPT[0], 3, ctypes.c_long(0), ctypes.c_long(4096)) == 0""", SEALS),
    Attempt("unsealed", "E", "takes seals off or puts its own on", """
        fcntl.fcntl(KEPT[1], 1033, 8)
        return True""", SEALS),
    Attempt("output_shrunk", "E", "shrinks an output under the judge", "os.ftruncate(KEPT[1], 4096)\nreturn True",
            SEALS),
    Attempt("output_grown", "E", "grows an output", "os.ftruncate(KEPT[1], 1 << 30)\nreturn True", SEALS),
    Attempt("references_sought", "E", "looks for memory files that were not lent", """
        links = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if int(n) not in KEPT]
        return any("memfd" in link for link in links)""", "descriptors are closed before the candidate exists"),
)


def program(attempts: Sequence[Attempt]) -> str:
    """A candidate that keeps the descriptors it is lent and tries everything on them."""
    functions = "\n".join(function(index, attempt) for index, attempt in enumerate(attempts))
    names = ", ".join(f"attempt_{index}" for index in range(len(attempts)))
    run = RUNNER.replace("def run(x, out):\n", "def run(x, out):\n    facts_of_run['x'] = x.ctypes.data\n")
    return "\n".join([PRELUDE, KEEP, "facts_of_run = {}", functions, f"ATTEMPTS = [{names}]", run])
