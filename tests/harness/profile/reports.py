"""Reports as the profiler writes them, built from metrics."""

from __future__ import annotations

from harness.evaluation.profile import metrics

UNITS = {metrics.TIME: "ns", metrics.READ_BYTES: "byte", metrics.WRITTEN_BYTES: "byte"}
BUSY_MEMORY = {
    metrics.TIME: "68,416", metrics.READ_BYTES: "134,217,728", metrics.WRITTEN_BYTES: "134,003,264",
    metrics.SHARES["dram_share"]: "81.95", metrics.SHARES["sm_share"]: "35.1", metrics.SHARES["tensor_share"]: "0",
    metrics.SHARES["l2_share"]: "48.2", metrics.SHARES["l2_hit"]: "49.9", metrics.SHARES["occupancy"]: "50",
    metrics.SHARES["occupancy_achieved"]: "47.9", metrics.WAVES: "15.52", metrics.REGISTERS: "64",
    metrics.SHARED_BYTES[0]: "64", metrics.SHARED_BYTES[1]: "0", metrics.LIMITS["registers"]: "4",
    metrics.LIMITS["shared memory"]: "32", metrics.LIMITS["warps"]: "8", metrics.LIMITS["blocks"]: "32",
    metrics.CONFLICTS: "0", metrics.WAVEFRONTS: "524,288",
    metrics.STALL_METRIC.format("selected"): "1.0", metrics.STALL_METRIC.format("long_scoreboard"): "7.1",
    metrics.STALL_METRIC.format("barrier"): "1.6", metrics.STALL_METRIC.format("wait"): "0.3",
}
HEAD = ("==PROF== Connected to process 4711 (/usr/bin/python3.12)\n"
        '==PROF== Profiling "_kernel" - 0: 0%....50%....100% - 9 passes\n==PROF== Disconnected from process 4711\n')


def report(*launches: tuple[str, dict[str, str]], head: str = HEAD) -> str:
    """A report of ``(function, metrics)``; grids are 8192 and blocks 256."""
    names = list(dict.fromkeys(name for _, values in launches for name in values))
    fixed = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
             "Grid Size", "Device", "CC"]
    lines = [[*fixed, *names], [*[""] * len(fixed), *(UNITS.get(name, "%") for name in names)]]
    for number, (function, values) in enumerate(launches):
        lines.append([str(number), "4711", "python3.12", "127.0.0.1", function, "1", "7", "(256, 1, 1)",
                      "(8192, 1, 1)", "0", "9.0", *(values.get(name, "n/a") for name in names)])
    return head + "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)
