"""A report without a clock: campaigns are real up to their verdicts, sessions with libraries are made up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.domain.digest import digest_source
from harness.domain.errors import InfrastructureError
from harness.domain.peers import ClockAgreement, Row, Side
from harness.domain.report import BestPair
from harness.domain.verdict import Ratio
from harness.domain.vocabulary import Backend
from harness.hardware.detect import hardware_name
from harness.operators.base import OperatorSpec, ShapePoint
from harness.peers.measure import Measured
from harness.report.run import ReportRun
from harness.report.settings import Folder, Settings, remember
from tests.harness.campaign.fake_evaluator import FakeEvaluator

BEGAN = "2026-11-29T22:00:00+00:00"
US = {"baseline": 90.0, "playbook": 45.0, "autotune": 60.0}


class Sessions:
    """Answers as ``peers.measure.measure`` does and remembers what it was asked. ``fail`` names operators that end in
    ``fault``, ``failed`` says where our kernels could not be timed."""

    def __init__(self, *, fail: tuple[str, ...] = (), fault: Exception | None = None, failed: str = "") -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.fail, self.fault = fail, fault or InfrastructureError("The device was lost.")
        self.failed = (failed,) if failed else ()

    def __call__(self, spec: OperatorSpec, backend: Backend, workload: str, hardware: str, sources: Mapping[str, str],
                 **_: Any) -> Measured:
        self.asked.append((spec.name, tuple(sources)))
        if spec.name in self.fail:
            raise self.fault
        rows, best, clocks = [], [], []
        for point in spec.workloads[workload].shapes[backend]:
            for name, source in sources.items():
                rows.append(_row(spec, point, Side.OURS, name, US[name], digest_source(source)))
            rows.append(_row(spec, point, Side.PEER, "torch eager", 80.0))
            rows.append(Row(spec.name, point.label, "float32", Side.PEER, "Liger", absent="on NVIDIA GPUs only."))
            rows.append(_row(spec, point, Side.CONTROL, "baseline", 91.0, digest_source(sources["baseline"])))
            mine = min(sources, key=lambda name: US[name])
            best.append(BestPair(point.label, "torch eager", 80.0, mine, US[mine], _ratio(80.0 / US[mine])))
            clocks.append(ClockAgreement(spec.name, point.label, digest_source(sources["baseline"]), 91.0, 90.0,
                                         _ratio(91 / 90)))
        return Measured(tuple(rows), tuple(clocks), tuple(best), {"peers": {}, "ours": {}}, {"torch": "2.13.0"}, (),
                        4.5, self.failed, {"copy_gbps": 4200.0})


def _ratio(value: float) -> Ratio:
    return Ratio(value, value * 0.99, value * 1.01)


def _row(spec: OperatorSpec, point: ShapePoint, side: Side, name: str, us: float, kernel: str | None = None) -> Row:
    moved, flops = spec.bytes_per_call(point.work, 4), spec.flops_per_call(point.work)
    return Row(spec.name, point.label, "float32", side, name, kernel, "2.13.0" if side is Side.PEER else None, us,
               us * 0.98, us * 1.02, 0.01, 40, (us,) * 5, moved / us / 1e3, flops / us / 1e6, 0.5, 1e-7, 0.2, True,
               None)


def settings(**changes: Any) -> Settings:
    given: dict[str, Any] = {"backend": Backend.NUMBA, "hardware": hardware_name(), "workload": "llm",
                             "operators": ("rms_norm", "softmax"), "rounds": 3, "seconds": 60.0}
    return Settings(**given | changes)


def report_run(path: Path, sessions: Sessions, *, evaluator: FakeEvaluator | None = None, budget_s: float | None = None,
               clock: Any = None, **changes: Any) -> ReportRun:
    folder, chosen = Folder(path), settings(**changes)
    if folder.read("run.json") is None:
        remember(folder, chosen, BEGAN)
    more = {} if clock is None else {"clock": clock}
    return ReportRun(folder, chosen, BEGAN, evaluator or FakeEvaluator(), lambda text: None, budget_s,
                     measure=sessions, **more)
