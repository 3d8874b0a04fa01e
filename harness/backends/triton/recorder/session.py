"""One recorded call of ``run``: its buffers, steps and refusals. Knows neither torch nor Triton."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

CANDIDATE_FILE = "candidate.py"
BASE_ALIGNMENT = 512
# Far from any size or stride a host computes with, so that an address passed as an integer is recognised.
_ARENA = 0x5000_0000_0000_0000
_ARENA_STEP = 0x0010_0000_0000_0000
_ARENAS = 512  # used in turn; the last address stays a positive 64-bit integer
_GUARD = 4096
MOST_STEPS = 256  # and as many buffers
MOST_IR_BYTES = 4 << 20
MOST_REFUSALS = 20


class RecordingRefused(RuntimeError):
    """The candidate did something a plan cannot hold. Recorded in the session before it is raised, so
    swallowing it changes nothing."""


@dataclass
class Buffer:
    """One allocation of the recorded call; ``base`` is an invented address, aligned to exactly 512 bytes."""

    id: int
    kind: str  # input | output | scratch | global_scratch
    name: str
    bytes: int
    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    offset: int = 0  # bytes from the start of the buffer to the array it was made for

    def document(self) -> dict[str, Any]:
        """The buffer as the plan document has it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "bytes": self.bytes,
            "align": BASE_ALIGNMENT,
            "shape": list(self.shape),
            "strides": list(self.strides),
            "dtype": self.dtype,
            "offset": self.offset,
        }


@dataclass
class Session:
    """Records one call. ``number`` counts the calls of this process; addresses differ between calls."""

    number: int
    buffers: list[Buffer] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    irs: dict[str, str] = field(default_factory=dict)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    thread: int = field(default_factory=threading.get_ident)

    def __post_init__(self) -> None:
        self._next = _ARENA + self.number % _ARENAS * _ARENA_STEP

    def refuse(self, code: str, text: str) -> NoReturn:
        """Note the refusal for good and raise it at the candidate."""
        self.note(code, text, candidate_line())
        raise RecordingRefused(text)

    def note(self, code: str, text: str, line: int | None) -> None:
        """Note a refusal without raising it."""
        refusal = {"code": code, "text": text, "line": line}
        if refusal not in self.refusals and len(self.refusals) < MOST_REFUSALS:
            self.refusals.append(refusal)

    def add(self, step: dict[str, Any]) -> None:
        """The next step of the plan."""
        if len(self.steps) >= MOST_STEPS:
            self.refuse(
                "plan_too_large",
                f"One call of run() makes more than {MOST_STEPS} launches and fills. Let one launch do more work.",
            )
        self.steps.append(step)

    def add_ir(self, digest: str, text: str) -> None:
        """The IR text that launches name by ``digest``."""
        self.irs[digest] = text
        if sum(map(len, self.irs.values())) > MOST_IR_BYTES:
            self.refuse(
                "plan_too_large",
                f"The kernel functions of one call compile to more than {MOST_IR_BYTES:,} bytes of IR. Unroll less.",
            )

    def check_thread(self) -> None:
        """Refuse work from a thread other than the one that called ``run``."""
        if threading.get_ident() != self.thread:
            self.refuse("thread", "run() launched or allocated from a thread of its own. Launch from run() itself.")

    def allocate(
        self,
        kind: str,
        name: str,
        size: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: str,
        offset: int = 0,
    ) -> Buffer:
        """A new buffer of ``size`` bytes whose array starts ``offset`` bytes into it."""
        if len(self.buffers) >= MOST_STEPS:
            self.refuse(
                "plan_too_large", f"One call of run() makes more than {MOST_STEPS} allocations. Allocate scratch once."
            )
        base = -(-self._next // 1024) * 1024 + BASE_ALIGNMENT  # aligned to 512 and to no more
        buffer = Buffer(len(self.buffers), kind, name, size, base, shape, strides, dtype, offset)
        self.buffers.append(buffer)
        self._next = base + size + _GUARD
        return buffer

    def fill(self, buffer: Buffer, offset: int, size: int, pattern: bytes) -> None:
        """Record a memset of ``size`` bytes with the shortest repeating ``pattern`` (1, 2 or 4 bytes)."""
        self.check_thread()
        if buffer.kind == "input":
            self.refuse(
                "input_written",
                f"run() fills its input '{buffer.name}'. Inputs are read-only; fill scratch or an output.",
            )
        for width in (1, 2, 4):
            if len(pattern) % width == 0 and pattern == pattern[:width] * (len(pattern) // width):
                if size:
                    self.add(
                        {
                            "fill": {
                                "buffer": buffer.id,
                                "offset": offset,
                                "bytes": size,
                                "pattern": pattern[:width].hex(),
                            }
                        }
                    )
                return
        self.refuse(
            "fill_pattern",
            "A fill with an 8-byte pattern cannot be recorded. Fill with zero, use a 4-byte "
            "dtype, or fill in a kernel function.",
        )

    def holds_address(self, value: int) -> bool:
        """Whether an integer lies where the invented addresses of any recorded call lie."""
        return _ARENA <= value < _ARENA + _ARENAS * _ARENA_STEP


def candidate_line() -> int | None:
    """The innermost line of the candidate on the current stack, ``None`` outside of it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == CANDIDATE_FILE:
            return frame.f_lineno
        frame = frame.f_back
    return None


class Active:
    """Where the hooks find the session of the call in progress."""

    session: Session | None = None


ACTIVE = Active()


def current() -> Session:
    """The session in progress; outside of a recorded call nothing may be launched or allocated."""
    if ACTIVE.session is None:
        raise RecordingRefused("Nothing may be allocated or launched outside run(), for instance at import.")
    return ACTIVE.session
