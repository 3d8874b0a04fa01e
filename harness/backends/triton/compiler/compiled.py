"""Compiles the launches of a plan and reads their resources."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from harness.backends.triton.compiler.process import CompilerProcess, KernelFacts, KernelSource
from harness.backends.triton.targets import Target, residency
from harness.domain.codec import to_document
from harness.domain.digest import digest_bytes, digest_document
from harness.domain.plan import CompiledPlan, LaunchPlan, LaunchResources

POINTER_BYTES, TENSOR_MAP_BYTES = 8, 128


class CompileFailed(Exception):
    """A recorded kernel has no binary to run: ``problem`` as in ``KernelFacts``, or ``forged`` where the plan passes
    arguments that the binary does not take. ``function`` names it."""

    def __init__(self, problem: str, function: str, text: str) -> None:
        super().__init__(text)
        self.problem, self.function, self.text = problem, function, text


def compile_plans(
    plans: list[LaunchPlan], compiler: CompilerProcess, *, deadline_s: float = 60.0
) -> list[CompiledPlan]:
    """The compiled plan of each plan; equal kernels are compiled once.

    Raises:
        CompileFailed: the first kernel that is refused or does not compile.
        InfrastructureError: the compile process does not start.
    """
    launches = [[step["launch"] for step in plan.steps if "launch" in step] for plan in plans]
    sources: dict[str, KernelSource] = {}
    for plan, steps in zip(plans, launches, strict=True):
        for launch in steps:
            text = (plan.irs or {}).get(launch["ir"])
            if text is None or digest_bytes(text.encode()) != launch["ir"]:
                raise CompileFailed("refused", launch["function"], "its IR text is missing or has another digest")
            sources[_key(launch)] = KernelSource(text, launch["kind"], dict(launch["options"]))
    began = time.perf_counter()
    answers = compiler.compile(list(sources.values()), deadline_s=deadline_s)
    seconds = round(time.perf_counter() - began, 4)
    facts = dict(zip(sources, answers, strict=True))
    result = []
    for plan, steps in zip(plans, launches, strict=True):
        check_dependence(plan, [facts[_key(launch)] for launch in steps])
        rows = tuple(_resources(plan, launch, facts[_key(launch)], compiler.target) for launch in steps)
        document = to_document(plan)
        result.append(CompiledPlan(digest_document(document), plan.target, compiler.compiler, rows, seconds))
    return result


def _key(launch: dict) -> str:
    return digest_document([launch["ir"], launch["kind"], launch["options"]])


def check_facts(plan: LaunchPlan, launch: dict, facts: KernelFacts) -> None:
    """Whether a launch of ``plan`` can run what was compiled for it.

    Raises:
        CompileFailed: there is no binary, the arguments' sizes are not those of the binary's own table, or the scratch
            that the kernel asks for is not there.
    """
    if facts.problem:
        raise CompileFailed(facts.problem, launch["function"], facts.text)
    given = tuple(_bytes_of(argument) for argument in launch["args"])
    if given != facts.parameters:
        text = f"the plan passes arguments of {given} bytes, the binary takes {facts.parameters}"
        raise CompileFailed("forged", launch["function"], text)
    needed = math.prod(launch["grid"]) * facts.num_ctas * facts.global_scratch_bytes
    scratch = launch["args"][-2]
    held = plan.buffers[scratch["buffer"]].bytes - scratch["offset"] if "buffer" in scratch else 0
    if held < needed:
        text = f"the plan gives it {held} bytes of global scratch, it needs {needed}"
        raise CompileFailed("forged", launch["function"], text)


def check_dependence(plan: LaunchPlan, facts: Sequence[KernelFacts]) -> None:
    """Whether every launch of ``plan`` is over when its last one is, and begins when its inputs are whole; ``facts``
    are those of its launches, in order.

    A launch that may begin before the one ahead of it ends could end before it, too, and the work still under way
    would lie outside the clock. One that waits cannot. Without an early trigger the hardware starts a dependent launch
    when the one ahead has ended; but what runs ahead of a call, and whether that has one, is not known.

    What a launch ahead wrote is whole behind the wait alone, however late that launch let the next one begin.

    Raises:
        CompileFailed: a launch of the plan lets the next one begin early, and a dependent one does not wait, or touches
            what a launch ahead is given before it does; or its first step is a dependent launch that does not wait.
    """
    launches = [step["launch"] for step in plan.steps if "launch" in step]
    first = plan.steps[0].get("launch") if plan.steps else None
    if first is not None and first["pdl"] and not (facts[0].waits or facts[0].problem):
        text = ("it is launched with launch_pdl as the first of a call, but does not call gdc_wait() in every program: "
                "where the call is used, whatever computes its inputs may still be running. Call it in the kernel "
                "function itself, before any branch, or leave launch_pdl out")
        raise CompileFailed("refused", first["function"], text)
    early = next((launch["function"] for launch, found in zip(launches, facts, strict=True) if found.triggers), None)
    if early is None:
        return
    ahead: set[int] = set()
    for launch, found in zip(launches, facts, strict=True):
        if launch["pdl"] and not found.problem:
            if not found.waits:
                text = (f"it is launched with launch_pdl beside '{early}', which calls gdc_launch_dependents, but does "
                        "not call gdc_wait() in every program. Call it in the kernel function itself, before any "
                        "branch")
                raise CompileFailed("refused", launch["function"], text)
            touched = {_buffer_of(launch["args"][n]) for n in found.unwaited if n < len(launch["args"])} & ahead
            if touched:
                text = (f"before it calls gdc_wait() it reads or writes a tensor that a launch ahead is given, beside "
                        f"'{early}', which calls gdc_launch_dependents: what that one wrote is whole behind the wait "
                        "alone. Move those loads and stores behind it")
                raise CompileFailed("refused", launch["function"], text)
        ahead |= {number for argument in launch["args"] if (number := _buffer_of(argument)) is not None
                  and plan.buffers[number].kind != "input"}


def _buffer_of(argument: dict) -> int | None:
    return argument.get("tensormap", argument).get("buffer")


def _bytes_of(argument: dict) -> int:
    if "scalar" in argument:
        return len(argument["hex"]) // 2
    return TENSOR_MAP_BYTES if "tensormap" in argument else POINTER_BYTES


def _resources(plan: LaunchPlan, launch: dict, facts: KernelFacts, target: Target) -> LaunchResources:
    check_facts(plan, launch, facts)
    x, y, z = launch["grid"]
    held = residency(target, registers=facts.registers, warps=facts.num_warps, shared_bytes=facts.shared_bytes)
    return LaunchResources(
        function=launch["function"], grid=(x, y, z), num_warps=facts.num_warps, num_ctas=facts.num_ctas,
        registers=facts.registers, spill_bytes=facts.spill_bytes, stack_bytes=facts.stack_bytes,
        shared_bytes=facts.shared_bytes, occupancy=round(held.occupancy, 4), binary=facts.binary, limiter=held.limiter)
