"""The loop of a numba candidate's process. Runs inside the sandbox; everything here may be tampered with by the
candidate, so that nothing it reports is more than a claim."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from harness.backends.candidate_module import candidate_line, entry, fault, general_fault, import_candidate, message_of
from harness.backends.numba import fresh_memory, interleaving

_ELSEWHERE = re.compile(r"^(tuple|list|string|range) ")
NUMBA_TEXT = 20_000
"""Characters of numba's own message that are searched for the candidate's line."""
_LINE_IN_TEXT = re.compile(r'File "candidate\.py", line (\d+)')


def preload() -> None:
    """Import numba and compile one trivial function, which fills its registries and starts no thread."""
    import numba
    import numpy as np

    @numba.njit
    def total(values: Any) -> float:
        result = 0.0
        for index in range(values.shape[0]):
            result += values[index]
        return result

    total(np.zeros(4, np.float32))


def serve(channel: Any) -> None:
    """Answer the judge until it hangs up."""
    candidate = Candidate(channel)
    while True:
        document, fds = channel.receive()
        try:
            answer = candidate.answer(document, fds)
        except BaseException as error:  # noqa: BLE001 - every failure is an answer, SystemExit included
            answer = worded(error)
        channel.send({**answer, "id": document["id"]})


class Candidate:
    """One imported candidate and the memory it was lent."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._run: Any = None
        self._slots: list[tuple[Any, ...]] = []
        self._keywords: dict[str, Any] = {}
        self._calls = 0

    def answer(self, document: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Do what the judge asks: ``load``, ``compile``, ``call``, ``lend_ring`` or ``batch``."""
        return getattr(self, f"_{document['op']}")(document, fds)

    def _load(self, document: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Import the candidate. ``threads``: as many, and made to meet; ``filled``: fresh memory is never zero."""
        import numba

        options = document.get("options") or {}
        if document.get("bounds_checks"):
            os.environ["NUMBA_BOUNDSCHECK"] = "1"
            numba.core.config.reload_config()
        if options.get("filled"):
            fresh_memory.install()
        if options.get("threads"):
            interleaving.install(options["threads"])
        self._run = entry(import_candidate(document["source"]))
        return {"ok": True}

    def _compile(self, document: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Call once on arrays of ones made here, so that the first compilation is paid for and its errors are seen."""
        import numpy as np

        arrays = [_ones(np, item) for item in document["arrays"]]
        began = time.perf_counter()
        self._run(*arrays, **document["attributes"])
        return {"claimed_s": time.perf_counter() - began}

    def _call(self, document: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        import tracemalloc

        self._channel.release()  # only now: the last call's memory stays in place for a thread that writes late
        arrays = self._arrays(document["arrays"], fds)
        self._calls += 1
        fresh_memory.turn(self._calls)
        interleaving.turn()
        tracemalloc.start()  # NumPy reports its allocations here: the scratch that run() makes
        try:
            began = time.perf_counter()
            returned = self._run(*arrays, **document["attributes"])
            claimed = time.perf_counter() - began
            scratch = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        if returned is not None:
            text = "run() returned a value. Outputs are filled in place and run() returns None."
            return fault("incorrect_shape", "returned_value", text, None)
        return {"claimed_s": claimed, "scratch_bytes": scratch}

    def _lend_ring(self, document: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Map slots for timing; the first part of a ring (``fresh``) replaces the ring before it."""
        if document["fresh"]:
            self._slots.clear()
            self._channel.release()
        flat = self._arrays([item for slot in document["slots"] for item in slot], fds)
        per_slot = len(document["slots"][0])
        self._slots += [tuple(flat[at : at + per_slot]) for at in range(0, len(flat), per_slot)]
        self._keywords = document["attributes"]
        return {"ok": True}

    def _batch(self, document: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Call once per slot named, in that order."""
        run, keywords, slots = self._run, self._keywords, self._slots
        chosen = [slots[index] for index in document["slots"]]
        began = time.perf_counter()
        for arrays in chosen:
            run(*arrays, **keywords)
        return {"claimed_s": time.perf_counter() - began}

    def _arrays(self, described: list[dict[str, Any]], fds: list[int]) -> list[Any]:
        import numpy as np

        sizes = {item["fd"]: max(i["nbytes"] for i in described if i["fd"] == item["fd"]) for item in described}
        memory = {index: self._channel.lend(fds[index], nbytes) for index, nbytes in sizes.items()}
        arrays = []
        for item in described:
            dtype = np.dtype(item["dtype"])
            strides = [stride * dtype.itemsize for stride in item["strides"]]
            array = np.ndarray(item["shape"], dtype, memory[item["fd"]], item["offset"], strides)
            array.flags.writeable = item["kind"] == "output"
            arrays.append(array)
        return arrays


def _ones(np: Any, item: dict[str, Any]) -> Any:
    array = np.ones(item["shape"], item["dtype"])
    array.flags.writeable = item["kind"] == "output"  # a read-only array is another type to numba
    return array


def worded(error: BaseException) -> dict[str, Any]:
    """A failure of numba or of the kernel as an answer with outcome, sentence and candidate line."""
    from numba.core.errors import NumbaError

    line = candidate_line(error)
    if isinstance(error, NumbaError):
        said = message_of(error, NUMBA_TEXT)
        found = _LINE_IN_TEXT.findall(said)
        return fault("compile_error", "numba_error", _first_lines(said), int(found[-1]) if found else line)
    if isinstance(error, IndexError) and not _ELSEWHERE.match(message_of(error)):
        text = f"The kernel indexed outside an array: {message_of(error)}. Check the loop bounds and the tail."
        return fault("out_of_bounds", "index_error", text, line)
    return general_fault(error)


def _first_lines(text: str, kept: int = 6) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "Numba could not compile the kernel: " + " ".join(lines[:kept])
