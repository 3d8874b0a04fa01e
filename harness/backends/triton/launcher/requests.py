"""What a launcher is asked and what it answers. Plain data; the judge draws every random choice, the launcher obeys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.evaluation.ports import Lent


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The device as the driver describes it. Bytes; ``capability`` as 90 for 9.0; ``driver`` is the CUDA version that
    the driver supports, for instance ``13.0``."""

    name: str
    driver: str
    capability: int
    multiprocessors: int
    l2_bytes: int
    memory_bytes: int
    shared_optin: int
    uuid: str


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """One call on lent memory. ``changed``: inputs whose contents the kernels changed. ``seconds`` is the time between
    the first upload and the last download."""

    changed: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Keep:
    """Bytes of an output to copy right after the candidate's sample, for the judge to verify: ``offset`` and ``count``
    count from the start of the output array of ring slot ``slot``. ``output`` may also name a renewed input, whose
    contents the judge holds against its own arithmetic."""

    output: str
    slot: int
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """One paired sample. Every side, in ``order``, runs once per slot of ``slots`` back to back, all timed together.

    Before each side's turn the renewed inputs of these slots get new contents (first contents times
    ``factors[start + i]``, ``starts`` has one start per slot), outputs and scratch are poisoned with the 16-bit
    pattern ``poison``, and the caches are flushed. ``keeps`` are copied after the turn of ``kept_side``.
    """

    slots: tuple[int, ...]
    starts: tuple[int, ...]
    order: tuple[str, ...]
    poison: int
    kept_side: str = "candidate"
    keeps: tuple[Keep, ...] = ()
    flush: bool = True  # False: a hot sample, inputs were just read into the caches, outputs just poisoned there


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """One launcher round of one shape, on freshly placed buffers.

    ``arrays`` are the base contents of one call in signature order (inputs with their contents, outputs for their size
    alone). ``renewed`` names the inputs that change per call; the others are uploaded once. ``factors`` is a memory
    file of ``factor_count`` float32 values; a slot's inputs take consecutive stretches of it in signature order,
    starting anew modulo ``factor_count - elements + 1`` as ``Lending.renew`` does; a table shorter than an input is
    repeated (element i takes ``factors[(start + i) % factor_count]``), so that a million factors serve any array.
    ``sides`` maps names to plans that were loaded. ``spacer`` bytes are allocated first, so that rounds differ in
    placement. ``slope`` asks for wall-clock seconds of that many and of four times as many back-to-back passes through
    the whole ring, for every side (0: none). ``compared`` names (side judged, side trusted): in every flushed sweep
    that holds both, their outputs are compared on the device, whole. Floating-point elements are apart where
    |a - b| > relative * max(|a|, |b|) + absolute (``near`` holds the two), or where one alone is NaN or infinite;
    integers where they differ.
    """

    arrays: tuple[Lent, ...]
    renewed: tuple[str, ...]
    factors: int
    factor_count: int
    sides: Mapping[str, int]
    slots: int
    sweeps: tuple[Sweep, ...]
    spacer: int = 0
    slope: int = 0
    near: tuple[float, float] = (0.0, 0.0)
    compared: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Apart:
    """An output of ring slot ``slot`` that two sides left differently from the same contents in sweep ``sweep``:
    ``count`` elements, the first at flat ``index``, where they are ``judged`` and ``trusted``."""

    sweep: int
    output: str
    slot: int
    count: int
    index: int
    judged: float
    trusted: float


@dataclass(frozen=True, slots=True)
class RoundResult:
    """``us``: microseconds per call by device events, per side one figure per sweep. ``late``: sides and sweeps whose
    outputs changed after the end mark. ``kept``: bytes per sweep, in the order of its ``keeps``. ``slope``: per side
    ((calls, seconds), (calls, seconds)) by the launcher's wall clock, and the same by the judge's own clock around the
    requests in ``judged``. ``empty_us``: an event pair around an empty graph. ``mhz``: multiprocessor clock per sweep,
    from device counters around the first side's turn, ``None`` where it could not be read. ``apart``: where the
    compared sides differ. ``written``: sides and sweeps whose kernels changed an input. ``strayed``: those that changed
    what surrounds their arrays.
    """

    us: Mapping[str, tuple[float, ...]]
    late: tuple[tuple[str, int], ...]
    kept: tuple[tuple[bytes, ...], ...]
    slope: Mapping[str, tuple[tuple[int, float], tuple[int, float]]]
    judged: Mapping[str, tuple[tuple[int, float], tuple[int, float]]]
    empty_us: float
    mhz: tuple[float | None, ...]
    apart: tuple[Apart, ...] = ()
    written: tuple[tuple[str, int], ...] = ()
    strayed: tuple[tuple[str, int], ...] = ()
