"""What operators on rows [rows, cols] declare alike: cases, tile formula, tunables, sizes. Data only."""

from __future__ import annotations

from collections.abc import Mapping

from harness.domain.vocabulary import Backend
from harness.operators.base import Buckets, Case, Dims, ShapePoint, Span, TileDemand, Tunable

BUCKETS = Buckets("cols", (("short", 1024), ("medium", 4096), ("long", None)))
DOMAIN = {"cols": Span(1, 131072), "rows": Span(1, 70000)}
"""Up to the last power of two that a vocabulary needs, and more rows than a grid's second axis can count."""


def row_case(name: str, rows: int, cols: int, regime: str, reason: str, **more: object) -> Case:
    """A case of ``rows`` x ``cols``; ``more`` are the other fields of ``Case``."""
    return Case(name, {"rows": rows, "cols": cols}, regime, reason, **more)  # type: ignore[arg-type]


def row_tile(params: Mapping[str, object], dims: Dims, itemsize: int) -> TileDemand:
    """One program holds BLOCK columns: at least one fp32 copy of them is live across the reduction."""
    block, warps = int(params.get("BLOCK", 1024)), int(params.get("num_warps", 4))  # type: ignore[call-overload]
    per_thread = -(-block // (32 * warps))
    shared = 4 * warps
    return TileDemand(
        shared_bytes=shared,
        registers_per_thread=per_thread + 16,
        text=f"{block} columns over {32 * warps} threads are {per_thread} fp32 values a thread, all live across the "
        f"reduction, plus at least 16 registers for addresses and masks; the reduction across {warps} warps takes "
        f"{warps} x 4 = {shared} bytes of shared memory",
    )


def row_tunables(lanes: str) -> tuple[Tunable, ...]:
    """Launch values of row kernels; ``lanes`` says what numba's BLOCK counts."""
    return (
        Tunable("BLOCK", (Backend.TRITON,), 256, 32768, power_of_two=True, note="columns per loop step"),
        Tunable("num_warps", (Backend.TRITON,), 1, 32, power_of_two=True, note="warps per program"),
        Tunable("num_stages", (Backend.TRITON,), 1, 8, note="software pipelining depth"),
        Tunable("BLOCK", (Backend.NUMBA,), 1, 32768, power_of_two=True, note=lanes),
    )


def hidden_states(small_eps: float, usual_eps: float) -> dict[Backend, tuple[ShapePoint, ...]]:
    """Measured shapes of normalisations: prefill chunks and decode batches of models with hidden sizes 4096 and 8192,
    1024 for small models; the CPU's rows are fewer so that a call takes under 5 ms on one core."""
    def point(rows: int, cols: int, weight: float, eps: float) -> ShapePoint:
        return ShapePoint(f"{rows}x{cols}", {"rows": rows, "cols": cols}, weight, {"eps": eps})

    return {
        Backend.NUMBA: (point(256, 4096, 0.5, small_eps), point(64, 8192, 0.3, usual_eps),
                        point(512, 1024, 0.2, small_eps)),
        Backend.TRITON: (point(32, 8192, 0.2, usual_eps), point(4096, 4096, 0.4, small_eps),
                         point(8192, 8192, 0.4, usual_eps)),
    }
