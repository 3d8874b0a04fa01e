"""Everything about a plan is checked before anything of it runs: the plan comes from a process that a candidate shared.

Pure, but for the parameter sizes that the binaries declare.
"""

from __future__ import annotations

from typing import Any

from harness.backends.triton.launcher.modules import argument_sizes
from harness.backends.triton.launcher.refused import PlanRefused
from harness.domain.plan import LaunchPlan

GRID = (2**31 - 1, 65_535, 65_535)
CLUSTERS = (1, 2, 4, 8, 16)
WARPS = 32
"""A block has at most 1,024 threads."""
PATTERNS = (1, 2, 4)
"""Bytes of a fill's pattern that the device can write."""
MAP_ELEMENTS = {number: number for number in range(8)} | {8: 10, 9: 8, 10: 9}
"""Triton's element types of tensor maps to the driver's; others are refused."""


def check_plan(plan: LaunchPlan, arguments: int, binaries: list[dict[str, Any]]) -> None:
    """Offsets inside buffers, grids and clusters within the device's limits, fills never on inputs.

    Raises:
        PlanRefused: with what is wrong.
    """
    for position, buffer in enumerate(plan.buffers):
        if (buffer.id, position < arguments) != (position, buffer.kind in ("input", "output")):
            raise PlanRefused("forged", f"Buffer {position} is a {buffer.kind} numbered {buffer.id}.")
    launches = [step["launch"] for step in plan.steps if "launch" in step]
    if len(launches) != len(binaries):
        raise PlanRefused("forged", f"{len(launches)} launches came with {len(binaries)} binaries.")
    for launch, binary in zip(launches, binaries, strict=True):
        _check_launch(plan, launch, binary)
    for step in plan.steps:
        if "fill" in step:
            _check_fill(plan, step["fill"])


def check_parameters(launch: dict[str, Any], declared: list[int]) -> None:
    """The driver reads as many host bytes as the binary says: a shorter list would be an overread.

    Raises:
        PlanRefused: number or sizes differ.
    """
    given = argument_sizes(launch["args"])
    if given != declared:
        raise PlanRefused("arguments", f"'{launch['function']}' takes parameters of {declared} bytes; the plan has "
                                       f"{given}.")


def _check_launch(plan: LaunchPlan, launch: dict[str, Any], binary: dict[str, Any]) -> None:
    name, grid = launch["function"], launch["grid"]
    if len(grid) != 3 or any(not 1 <= size <= most for size, most in zip(grid, GRID, strict=True)):
        raise PlanRefused("forged", f"The grid {grid} of '{name}' is outside the device's limits.")
    ctas = int(binary["num_ctas"])
    if ctas not in CLUSTERS or grid[0] * ctas > GRID[0]:
        raise PlanRefused("unsupported", f"'{name}' has clusters of {ctas} blocks.")
    if ctas != launch["num_ctas"]:
        raise PlanRefused("forged", f"'{name}' was recorded with {launch['num_ctas']} blocks per program, not {ctas}.")
    if not 1 <= int(binary["num_warps"]) <= WARPS:
        raise PlanRefused("forged", f"'{name}' has {binary['num_warps']} warps.")
    for argument in launch["args"]:
        where = argument.get("tensormap", argument)
        if "buffer" in where:
            _inside(plan, where["buffer"], where["offset"], 0)
        if "tensormap" in argument:
            _check_map(plan, where)


def _check_fill(plan: LaunchPlan, fill: dict[str, Any]) -> None:
    _inside(plan, fill["buffer"], fill["offset"], fill["bytes"])
    if plan.buffers[fill["buffer"]].kind == "input":
        raise PlanRefused("forged", "A fill goes to an input.")
    width = len(fill["pattern"]) // 2
    if width not in PATTERNS or fill["bytes"] % width or fill["offset"] % width:
        raise PlanRefused("unsupported", f"A fill of {fill['bytes']} bytes with a pattern of {width} bytes.")


def _check_map(plan: LaunchPlan, tensormap: dict[str, Any]) -> None:
    shape, strides, box = tensormap["shape"], tensormap["strides"], tensormap["box"]
    if not 1 <= len(shape) <= 5 or len(shape) != len(strides) or len(shape) != len(box):
        raise PlanRefused("unsupported", f"A tensor map of {len(shape)} dimensions with a box of {len(box)}.")
    if tensormap["element_type"] not in MAP_ELEMENTS or tensormap["fp4_padded"]:
        raise PlanRefused("unsupported", f"A tensor map of element type {tensormap['element_type']}.")
    if min(shape) < 1 or min(strides) < 0 or strides[-1] != 1 or not all(1 <= size <= 256 for size in box):
        raise PlanRefused("forged", f"A tensor map of shape {shape}, strides {strides} and box {box}.")
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    _inside(plan, tensormap["buffer"], tensormap["offset"], span * tensormap["element_bytes"])


def _inside(plan: LaunchPlan, number: int, offset: int, count: int) -> None:
    if not 0 <= number < len(plan.buffers):
        raise PlanRefused("forged", f"Buffer {number} does not exist.")
    size = plan.buffers[number].bytes
    if offset < 0 or count < 0 or offset + count > size:
        raise PlanRefused("forged", f"Bytes {offset} to {offset + count} are outside buffer {number} of {size} bytes.")
