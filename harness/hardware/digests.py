"""Facts about devices that agents are told and pages show (R9).

Sources. H200, registers to L2: read from the device through the CUDA driver (driver 580, CUDA 13.0); its memory
bandwidth: NVIDIA's H200 datasheet. H100 SXM and A100 SXM: NVIDIA's Hopper and Ampere tuning guides (shared memory,
registers, warps), the CUDA C++ Programming Guide's table of compute capabilities 9.0 and 8.0, and the H100 and A100
datasheets (bandwidth, dense rates without sparsity). CPU facts: ``/proc/cpuinfo``, ``/sys`` and the measured roofs.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain.errors import UsageError
from harness.hardware.cores import reserve
from harness.hardware.detect import detect_cpu, hardware_name


@dataclass(frozen=True, slots=True)
class Fact:
    """One property with its unit in words; ``value`` is printed as it is."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class HardwareDigest:
    """A device in facts and in rules of thumb for whoever writes kernels for it."""

    name: str
    title: str
    kind: str  # gpu | cpu | interpreter
    facts: tuple[Fact, ...]
    rules: tuple[str, ...]

    @property
    def text(self) -> str:
        """Plain text for a prompt."""
        facts = [f"- {fact.name}: {fact.value}" + (f" ({fact.note})" if fact.note else "") for fact in self.facts]
        return "\n".join([f"{self.title} ({self.name})", *facts, "Rules:", *(f"- {rule}" for rule in self.rules)])


COMMON_GPU = (
    Fact("Warp size", "32 threads"),
    Fact("Registers", "65,536 of 32 bits per multiprocessor, at most 255 per thread"),
    Fact("Threads", "at most 2,048 per multiprocessor and 1,024 per block"),
    Fact("Shared-memory banks", "32 banks of 4 bytes", "threads of a warp on one bank but different words serialise"),
    Fact("Vector loads", "up to 16 bytes per thread", "needs 16-byte alignment: keep row strides a multiple of it"),
)
GPU_RULES = (
    "A warp whose threads branch differently runs both sides; mask instead of branching inside a row.",
    "Registers per thread x threads per block must fit 65,536, or fewer blocks are resident.",
    "Shared memory per stage is (BLOCK_M x BLOCK_K + BLOCK_K x BLOCK_N) x element size.",
    "Accumulators live in registers: 256 x 128 float32 over 512 threads is 64 registers a thread.",
    "Memory-bound kernels need enough bytes in flight: more warps, wider loads, or asynchronous copies in stages.",
    "A working set below the L2 size is not measured against memory bandwidth.",
)
HOPPER_RULES = (
    "Asynchronous bulk copies (TMA) move tiles to shared memory without registers; use tensor descriptors.",
    "Warp specialisation lets some warps load while others compute; it pays where both are long.",
)


def _gpu(name: str, title: str, facts: tuple[tuple[str, str, str], ...], rules: tuple[str, ...]) -> HardwareDigest:
    return HardwareDigest(name, title, "gpu", tuple(Fact(*fact) for fact in facts) + COMMON_GPU, rules)


GPUS: dict[str, HardwareDigest] = {
    digest.name: digest
    for digest in (
        _gpu("nvidia-h200", "NVIDIA H200 SXM", (
            ("Architecture", "Hopper, compute capability 9.0", ""),
            ("Multiprocessors", "132", ""),
            ("Memory bandwidth", "4.8 TB/s", "datasheet; a 2 GiB copy reached 4.25 TB/s"),
            ("Memory", "141 GB HBM3e", ""),
            ("L2 cache", "60 MiB", "as the driver reports it; vendor texts say 50 MB"),
            ("Shared memory", "227 KiB per block, 228 KiB per multiprocessor", ""),
            ("Dense matrix rates", "989 TFLOP/s bf16 and fp16, 495 TF32, 67 fp32", "datasheet"),
        ), GPU_RULES + HOPPER_RULES),
        _gpu("nvidia-h100", "NVIDIA H100 SXM", (
            ("Architecture", "Hopper, compute capability 9.0", ""),
            ("Multiprocessors", "132", ""),
            ("Memory bandwidth", "3.35 TB/s", "datasheet"),
            ("L2 cache", "50 MB", ""),
            ("Shared memory", "227 KiB per block, 228 KiB per multiprocessor", ""),
            ("Dense matrix rates", "989 TFLOP/s bf16 and fp16, 495 TF32, 67 fp32", "datasheet"),
        ), GPU_RULES + HOPPER_RULES),
        _gpu("nvidia-a100", "NVIDIA A100 SXM 80 GB", (
            ("Architecture", "Ampere, compute capability 8.0", ""),
            ("Multiprocessors", "108", ""),
            ("Memory bandwidth", "2.04 TB/s", "datasheet"),
            ("L2 cache", "40 MB", ""),
            ("Shared memory", "163 KiB per block, 164 KiB per multiprocessor", ""),
            ("Dense matrix rates", "312 TFLOP/s bf16 and fp16, 156 TF32, 19.5 fp32", "datasheet"),
        ), GPU_RULES),
    )
}
INTERPRETER = HardwareDigest(
    "interpreter", "Triton's interpreter", "interpreter",
    (Fact("Speed", "not timed", "kernels run as Python on the CPU: only results count"),),
    ("Resources are those of the target the goal names.", "bfloat16 products and libdevice are not interpreted."),
)


def known() -> tuple[str, ...]:
    """Names a digest exists for, this machine's first."""
    return (hardware_name(), *GPUS, INTERPRETER.name)


def digest(name: str) -> HardwareDigest:
    """Facts and rules of the device ``name``.

    Raises:
        UsageError: nothing is known about it; the known names are listed.
    """
    if name == hardware_name():
        return cpu_digest()
    if name in GPUS:
        return GPUS[name]
    if name == INTERPRETER.name:
        return INTERPRETER
    raise UsageError(f"Nothing is known about hardware '{name}'. Known here: {', '.join(known())}.")


def cpu_digest() -> HardwareDigest:
    """This machine's processor as the timed process sees it. Measures nothing."""
    cpu, cores = detect_cpu(), reserve()
    caches = ", ".join(f"L{c.level} {_size(c.bytes)}" + (f" shared by {c.shared_by}" if c.shared_by > 1 else "")
                       for c in cpu.caches if c.kind != "Instruction")
    lanes = cpu.simd_bits // 32
    facts = (
        Fact("Processor", cpu.model, f"{cpu.vendor} family {cpu.family}"),
        Fact("Cores", f"{cpu.cores} in the machine, {cores.threads} for the timed kernel"),
        Fact("SIMD", f"{cpu.simd}, {cpu.simd_bits} bits", f"{lanes} float32 lanes"),
        Fact("Caches", caches or "unknown"),
        Fact("Memory", _size(cpu.memory_bytes)),
    )
    rules = (
        "Rows are contiguous: loop over the last dimension innermost, so that loads vectorise.",
        f"A float32 reduction vectorises only with fastmath or with {lanes} or more independent partial sums.",
        "Every pass over an array that does not fit the caches is paid at memory speed: fuse passes.",
        "Outputs are written whole: a read of the old line is paid unless the store streams.",
        _threads_rule(cores.threads),
        "Transcendental functions in a loop vectorise only where the compiler finds a vector library.",
    )
    return HardwareDigest(hardware_name(), cpu.model, "cpu", facts, rules)


def _threads_rule(threads: int) -> str:
    if threads == 1:
        return "The timed process owns one core: parallel=True cannot gain and costs its start."
    return f"The timed process owns {threads} cores: parallel=True with prange over rows can gain up to that factor."


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} B"
