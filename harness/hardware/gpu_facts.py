"""What is known of GPUs without having one: facts with their sources, and rules of thumb for whoever writes kernels.

A fact names where it comes from: a vendor's datasheet or guide by its title, or the driver on such a device. Rates are
dense, without structured sparsity. ``NUMBERS`` holds the ones that arithmetic needs, in base units.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One property with its unit in words; ``value`` is printed as it is, ``source`` says who tells."""

    name: str
    value: str
    note: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU model: facts, rules and numbers (base units: bytes, bytes per second, operations per second)."""

    name: str
    title: str
    facts: tuple[Fact, ...]
    rules: tuple[str, ...]
    numbers: dict[str, float]


HOPPER_GUIDE, AMPERE_GUIDE = "NVIDIA Hopper Tuning Guide", "NVIDIA Ampere GPU Architecture Tuning Guide"
ADA_GUIDE, BLACKWELL_GUIDE = "NVIDIA Ada GPU Architecture Tuning Guide", "NVIDIA Blackwell Tuning Guide"
CUDA_GUIDE = "CUDA C++ Programming Guide, table of compute capabilities"
PTX = "PTX ISA"
H200_SHEET, H100_SHEET = "NVIDIA H200 datasheet", "NVIDIA H100 datasheet"
A100_SHEET, L40S_SHEET = "NVIDIA A100 80 GB datasheet", "NVIDIA L40S datasheet"
B200_SHEET = "NVIDIA HGX B200 datasheet, one GPU of eight"
MI300X_SHEET, CDNA_TABLE = "AMD Instinct MI300X data sheet", "ROCm documentation, AMD GPU specifications"
CDNA_GUIDE = "ROCm documentation, CK Tile hardware"
H200_DRIVER = "CUDA driver 580 on an H200"
B200_DRIVER = "CUDA driver on a B200"

WARP = Fact("Warp size", "32 threads", "", CUDA_GUIDE)
REGISTERS = Fact("Registers", "65,536 of 32 bits per multiprocessor, at most 255 per thread", "", CUDA_GUIDE)
THREADS = Fact("Threads", "at most 2,048 per multiprocessor and 1,024 per block; 32 blocks", "", CUDA_GUIDE)
BANKS = Fact("Shared-memory banks", "32 banks of 4 bytes",
             "threads of a warp on one bank but different words serialise", CUDA_GUIDE)
VECTORS = Fact("Vector loads", "up to 16 bytes per thread",
               "needs 16-byte alignment: keep row strides a multiple of it", CUDA_GUIDE)
ASYNC = Fact("Asynchronous copies", "global to shared memory without registers, 4 to 16 bytes a thread (cp.async)",
             "what num_stages of a Triton loop uses", AMPERE_GUIDE)
TMA = Fact("Asynchronous copies", "cp.async, and whole tiles by one thread (TMA, tensor descriptors)",
           "tiles need 16-byte strides", HOPPER_GUIDE)
CLUSTERS = Fact("Clusters", "up to 8 blocks, 16 where a launch asks for it; they reach each other's shared memory", "",
                HOPPER_GUIDE)
HOPPER_SHARED = Fact("Shared memory", "227 KiB per block, 228 KiB per multiprocessor", "1 KiB of each block is the "
                     "system's", HOPPER_GUIDE)

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
BLACKWELL_RULES = (
    *HOPPER_RULES,
    "Matrix products accumulate in tensor memory, not in registers: larger tiles fit.",
)
CDNA_RULES = (
    "A wavefront has 64 lanes: a branch within it runs both sides, and reductions take six steps.",
    "Up to 512 vector registers a lane; with more than 128 fewer than four wavefronts share a SIMD.",
    "LDS is 64 KiB per compute unit: tiles of a software pipeline have to share it.",
    "Eight dies have an L2 each: neighbouring programs land on different dies, so remap program ids for reuse.",
    "Memory-bound kernels need enough bytes in flight: more wavefronts, 16-byte loads, unrolled loops.",
)


def _rates(bf16: str, tf32: str, fp32: str, source: str) -> Fact:
    return Fact("Dense rates", f"{bf16} TFLOP/s bf16 and fp16, {tf32} TF32 in matrix units; {fp32} fp32 outside them",
                "without sparsity; no kernel reaches them", source)


_H200 = Board("nvidia-h200", "NVIDIA H200 SXM", (
    Fact("Architecture", "Hopper, compute capability 9.0", "", H200_DRIVER),
    Fact("Multiprocessors", "132", "", H200_DRIVER),
    Fact("Memory bandwidth", "4.8 TB/s", "a 2 GiB copy reached 4.25 TB/s", H200_SHEET),
    Fact("Memory", "141 GB HBM3e", "", H200_SHEET),
    Fact("L2 cache", "60 MiB", "as the driver reports it; the tuning guide says 50 MB of an H100", H200_DRIVER),
    HOPPER_SHARED, _rates("989", "495", "67", H200_SHEET),
    WARP, REGISTERS, THREADS, BANKS, VECTORS, TMA, CLUSTERS,
), GPU_RULES + HOPPER_RULES, {
    "multiprocessors": 132, "memory_bandwidth": 4.8e12, "l2_bytes": 62_914_560, "shared_bytes_per_block": 232_448,
    "matrix_flops": 989e12, "warp": 32,
})
_H100 = Board("nvidia-h100", "NVIDIA H100 SXM", (
    Fact("Architecture", "Hopper, compute capability 9.0", "", CUDA_GUIDE),
    Fact("Multiprocessors", "132", "", "NVIDIA H100 Tensor Core GPU Architecture (white paper)"),
    Fact("Memory bandwidth", "3.35 TB/s", "", H100_SHEET),
    Fact("Memory", "80 GB HBM3", "", H100_SHEET),
    Fact("L2 cache", "50 MB", "", HOPPER_GUIDE),
    HOPPER_SHARED, _rates("989", "495", "67", H100_SHEET),
    WARP, REGISTERS, THREADS, BANKS, VECTORS, TMA, CLUSTERS,
), GPU_RULES + HOPPER_RULES, {
    "multiprocessors": 132, "memory_bandwidth": 3.35e12, "l2_bytes": 50e6, "shared_bytes_per_block": 232_448,
    "matrix_flops": 989e12, "warp": 32,
})
_A100 = Board("nvidia-a100", "NVIDIA A100 SXM 80 GB", (
    Fact("Architecture", "Ampere, compute capability 8.0", "", CUDA_GUIDE),
    Fact("Multiprocessors", "108", "", "NVIDIA A100 Tensor Core GPU Architecture (white paper)"),
    Fact("Memory bandwidth", "2.04 TB/s", "", A100_SHEET),
    Fact("Memory", "80 GB HBM2e", "", A100_SHEET),
    Fact("L2 cache", "40 MB", "", AMPERE_GUIDE),
    Fact("Shared memory", "163 KiB per block, 164 KiB per multiprocessor", "", AMPERE_GUIDE),
    _rates("312", "156", "19.5", A100_SHEET),
    WARP, REGISTERS, THREADS, BANKS, VECTORS, ASYNC,
), GPU_RULES, {
    "multiprocessors": 108, "memory_bandwidth": 2.039e12, "l2_bytes": 40e6, "shared_bytes_per_block": 166_912,
    "matrix_flops": 312e12, "warp": 32,
})
_B200 = Board("nvidia-b200", "NVIDIA B200 SXM", (
    Fact("Architecture", "Blackwell, compute capability 10.0", "two dies that act as one GPU", CUDA_GUIDE),
    Fact("Multiprocessors", "148", "", B200_DRIVER),
    Fact("Memory bandwidth", "8 TB/s", "", B200_SHEET),
    Fact("Memory", "180 GB HBM3e", "", B200_SHEET),
    Fact("L2 cache", "126.5 MiB", "", B200_DRIVER),
    Fact("Shared memory", "227 KiB per block, 228 KiB per multiprocessor", "", BLACKWELL_GUIDE),
    Fact("Tensor memory", "256 KiB per multiprocessor", "accumulators of matrix products live there (tcgen05)", PTX),
    _rates("2,250", "1,125", "75", B200_SHEET),
    WARP, REGISTERS, THREADS, BANKS, VECTORS, TMA, CLUSTERS,
), GPU_RULES + BLACKWELL_RULES, {
    "multiprocessors": 148, "memory_bandwidth": 8e12, "l2_bytes": 132_644_864, "shared_bytes_per_block": 232_448,
    "matrix_flops": 2250e12, "warp": 32,
})
_L40S = Board("nvidia-l40s", "NVIDIA L40S", (
    Fact("Architecture", "Ada Lovelace, compute capability 8.9", "", CUDA_GUIDE),
    Fact("Multiprocessors", "142", "18,176 CUDA cores, 128 each", L40S_SHEET),
    Fact("Memory bandwidth", "864 GB/s", "", L40S_SHEET),
    Fact("Memory", "48 GB GDDR6", "", L40S_SHEET),
    Fact("L2 cache", "96 MB", "of the AD102 chip; large against its memory bandwidth: reuse there pays", ADA_GUIDE),
    Fact("Shared memory", "99 KiB per block, 100 KiB per multiprocessor", "", ADA_GUIDE),
    _rates("362", "183", "91.6", L40S_SHEET),
    WARP, REGISTERS,
    Fact("Threads", "at most 1,536 per multiprocessor and 1,024 per block; 24 blocks", "", ADA_GUIDE),
    BANKS, VECTORS, ASYNC,
), GPU_RULES, {
    "multiprocessors": 142, "memory_bandwidth": 864e9, "l2_bytes": 96 << 20, "shared_bytes_per_block": 101_376,
    "matrix_flops": 362e12, "warp": 32,
})
_MI300X = Board("amd-mi300x", "AMD Instinct MI300X", (
    Fact("Architecture", "CDNA 3, gfx942", "no plans are compiled for it here", CDNA_TABLE),
    Fact("Compute units", "304", "38 on each of 8 dies", CDNA_TABLE),
    Fact("Memory bandwidth", "5.3 TB/s", "", MI300X_SHEET),
    Fact("Memory", "192 GB HBM3", "", MI300X_SHEET),
    Fact("L2 cache", "32 MiB, 4 MiB per die", "behind it a 256 MiB Infinity Cache of all dies", CDNA_TABLE),
    Fact("LDS", "64 KiB per compute unit, 32 banks", "lanes on one bank but different words serialise", CDNA_GUIDE),
    _rates("1,307", "654", "163", MI300X_SHEET),
    Fact("Wavefront size", "64 lanes", "", CDNA_TABLE),
    Fact("Registers", "512 KiB of vector registers per compute unit, at most 512 per lane", "", CDNA_TABLE),
), CDNA_RULES, {
    "multiprocessors": 304, "memory_bandwidth": 5.3e12, "l2_bytes": 32 << 20, "shared_bytes_per_block": 64 << 10,
    "matrix_flops": 1307e12, "warp": 64,
})

BOARDS: dict[str, Board] = {board.name: board for board in (_H200, _H100, _A100, _B200, _L40S, _MI300X)}
UNKNOWN_NVIDIA = (WARP, REGISTERS, BANKS, VECTORS)
"""What holds of any NVIDIA GPU of the last generations."""
