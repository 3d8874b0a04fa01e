"""What every stage of an evaluation may take, warm, in seconds. A stage over its budget is printed as such."""

from __future__ import annotations

STATIC_S = 0.2
TOTAL_S = {"numba": 20.0, "triton on a GPU": 12.0, "triton without a GPU": 30.0}
DEVICE_HELD_S = 6.0
"""Of the total on a GPU, the seconds in which nobody else can use the device."""

STAGES: dict[str, dict[str, float]] = {
    "numba": {"admit": 0.1, "static": STATIC_S, "arithmetic": 0.1, "plan": 1.2, "smoke": 3.0, "correctness": 1.5,
              "probes": 1.2, "benchmark": 2.7, "recheck": 10.0},
    "triton on a GPU": {"admit": 0.1, "static": STATIC_S, "arithmetic": 0.1, "plan": 3.2, "resources": 0.1,
                        "smoke": 1.2, "correctness": 2.4, "probes": 1.2, "benchmark": 1.2, "recheck": 2.3},
    "triton without a GPU": {"admit": 0.1, "static": STATIC_S, "arithmetic": 0.1, "plan": 3.2, "resources": 0.1,
                             "smoke": 3.0, "correctness": 12.0, "probes": 11.3},
}
"""The stages of a backend add up to its total."""
