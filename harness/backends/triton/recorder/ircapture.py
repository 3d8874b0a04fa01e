"""Keeps the IR text of every compiled kernel beside its metadata, and stops before binaries.

The sandbox may start no programs, so ``ptxas`` cannot run there; registers are the compile process's business.
"""

from __future__ import annotations

from typing import Any

from triton.backends.nvidia.compiler import CUDABackend

from harness.backends.triton.recorder.session import current

OPTIONS = (
    "num_warps",
    "num_ctas",
    "num_stages",
    "maxnreg",
    "enable_fp_fusion",
    "enable_reflect_ftz",
    "launch_cooperative_grid",
    "launch_pdl",
)
"""Options that decide what the compiler makes of the IR; the rest acts before the IR exists."""


def install() -> None:
    """Patch the CUDA backend of this process."""
    make_ttir, gluon = CUDABackend.make_ttir, CUDABackend.gluon_to_ttgir

    def captured_ttir(mod: Any, metadata: dict[str, Any], opt: Any, capability: int) -> Any:
        _refuse_override(opt)
        result = make_ttir(mod, metadata, opt, capability)
        _keep(metadata, result, opt, "ttir")
        return result

    def captured_gluon(self: Any, src: Any, metadata: dict[str, Any], options: Any, capability: int) -> Any:
        _refuse_override(options)
        result = gluon(self, src, metadata, options, capability)
        _keep(metadata, result, options, "ttgir")
        return result

    CUDABackend.make_ttir = staticmethod(captured_ttir)
    CUDABackend.gluon_to_ttgir = captured_gluon
    CUDABackend.make_cubin = lambda self, src, metadata, opt, capability: b"compiled elsewhere"


def _refuse_override(options: Any) -> None:
    """Before the compiler opens the file that the option names."""
    if getattr(options, "ir_override", None):
        current().refuse("compiler_option", "ir_override replaces what the compiler makes. Remove it.")


def _keep(metadata: dict[str, Any], module: Any, options: Any, kind: str) -> None:
    metadata["recorded_ir"] = module.str_nodebug()
    metadata["recorded_kind"] = kind
    # Before warp specialisation changes num_warps: recompiling starts from the original.
    metadata["recorded_options"] = {key: getattr(options, key) for key in OPTIONS if hasattr(options, key)}
