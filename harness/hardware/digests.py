"""Facts about devices that agents are told and pages show (R9).

GPUs come from ``gpu_facts``, where every fact has its source; what this host's GPU reports of itself, and what was
measured on it, goes before that. CPU facts: ``/proc/cpuinfo``, ``/sys``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.domain.errors import UsageError
from harness.hardware import reported
from harness.hardware.cores import reserve
from harness.hardware.detect import detect_cpu, hardware_name
from harness.hardware.gpu import card, name_of
from harness.hardware.gpu_facts import BOARDS, GPU_RULES, UNKNOWN_NVIDIA, Fact

PROC = "/proc/cpuinfo and /sys of this machine"


@dataclass(frozen=True, slots=True)
class HardwareDigest:
    """A device in facts and in rules of thumb for whoever writes kernels for it; ``numbers`` are the facts that
    arithmetic needs, in base units (``multiprocessors``, ``l2_bytes``, ``memory_bandwidth``, ...)."""

    name: str
    title: str
    kind: str  # gpu | cpu | interpreter
    facts: tuple[Fact, ...]
    rules: tuple[str, ...]
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Plain text for a prompt."""
        facts = [f"- {fact.name}: {fact.value}" + (f" ({fact.note})" if fact.note else "") for fact in self.facts]
        return "\n".join([f"{self.title} ({self.name})", *facts, "Rules:", *(f"- {rule}" for rule in self.rules)])

    def for_agents(self) -> dict[str, Any]:
        """What ``AgentContext.hardware`` holds: ``text``, every fact by its name, every number by its own."""
        return {"name": self.name, "title": self.title, "kind": self.kind, "text": self.text,
                **{fact.name: fact.value for fact in self.facts}, **self.numbers}


INTERPRETER = HardwareDigest(
    "interpreter", "Triton's interpreter", "interpreter",
    (Fact("Speed", "not timed", "kernels run as Python on the CPU: only results count"),),
    ("Resources are those of the target the goal names.", "bfloat16 products and libdevice are not interpreted."),
)


def known() -> tuple[str, ...]:
    """Names a digest exists for, this machine's first."""
    here = card()
    own = (name_of(here),) if here is not None else ()
    return tuple(dict.fromkeys((hardware_name(), *own, *BOARDS, INTERPRETER.name)))


def digest(name: str) -> HardwareDigest:
    """Facts and rules of the device ``name``; where it is this host's, with what it reports of itself.

    Raises:
        UsageError: nothing is known about it; the known names are listed.
    """
    if name == hardware_name():
        return cpu_digest()
    if name == INTERPRETER.name:
        return INTERPRETER
    here = card()
    own = here is not None and name_of(here) == name
    board = BOARDS.get(name)
    if board is not None:
        found = HardwareDigest(name, board.title, "gpu", board.facts, board.rules, board.numbers)
        return filled(found, reported.attributes(), reported.roofs_of(name)) if own else found
    if own and here is not None:
        bare = HardwareDigest(name, here.title, "gpu", UNKNOWN_NVIDIA, GPU_RULES)
        return filled(bare, reported.attributes(), reported.roofs_of(name))
    raise UsageError(f"Nothing is known about hardware '{name}'. Known here: {', '.join(known())}.")


def filled(found: HardwareDigest, told: Mapping[str, Any], measured: tuple[Fact, ...]) -> HardwareDigest:
    """``found`` with what the driver told in place of what documents say, and with what was ``measured``. A fact keeps
    its words where the driver says no more than them: architectures and memories have names beside figures."""
    fresh = {fact.name: fact for fact in reported.facts_of(told)}
    kept = tuple(_merged(fact, fresh.pop(fact.name, None)) for fact in found.facts)
    return replace(found, facts=(*kept, *fresh.values(), *measured),
                   numbers={**found.numbers, **reported.numbers_of(told)})


def _merged(fact: Fact, fresh: Fact | None) -> Fact:
    if fresh is None:
        return fact
    if fact.name in ("Architecture", "Memory"):
        return replace(fact, note=f"{fact.note}; " * bool(fact.note) + f"the driver here: {fresh.value}")
    return fresh


def cpu_digest() -> HardwareDigest:
    """This machine's processor as the timed process sees it. Measures nothing."""
    cpu, cores = detect_cpu(), reserve()
    caches = ", ".join(f"L{c.level} {_size(c.bytes)}" + (f" shared by {c.shared_by}" if c.shared_by > 1 else "")
                       for c in cpu.caches if c.kind != "Instruction")
    lanes = cpu.simd_bits // 32
    facts = (
        Fact("Processor", cpu.model, f"{cpu.vendor} family {cpu.family}", PROC),
        Fact("Cores", f"{cpu.cores} in the machine, {cores.threads} for the timed kernel", "", PROC),
        Fact("SIMD", f"{cpu.simd}, {cpu.simd_bits} bits", f"{lanes} float32 lanes", PROC),
        Fact("Caches", caches or "unknown", "", PROC),
        Fact("Memory", _size(cpu.memory_bytes), "", PROC),
    )
    rules = (
        "Rows are contiguous: loop over the last dimension innermost, so that loads vectorise.",
        f"A float32 reduction vectorises only with fastmath or with {lanes} or more independent partial sums.",
        "Every pass over an array that does not fit the caches is paid at memory speed: fuse passes.",
        "Outputs are written whole: a read of the old line is paid unless the store streams.",
        _threads_rule(cores.threads),
        "Transcendental functions in a loop vectorise only where the compiler finds a vector library.",
    )
    return HardwareDigest(hardware_name(), cpu.model, "cpu", facts, rules, {"threads": cores.threads})


def _threads_rule(threads: int) -> str:
    if threads == 1:
        return "The timed process owns one core: parallel=True cannot gain and costs its start."
    return f"The timed process owns {threads} cores: parallel=True with prange over rows can gain up to that factor."


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} B"
