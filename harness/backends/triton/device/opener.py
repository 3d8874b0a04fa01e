"""Opens device workers for one evaluation; its candidate's sandbox mode is ``triton-plan``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.backends.triton import planning
from harness.backends.triton.device.holding import Holding
from harness.backends.triton.device.plans import Plans
from harness.backends.triton.device.worker import DeviceWorker
from harness.backends.triton.stages import derive, planned_shapes
from harness.backends.triton.targets import find_target
from harness.domain.vocabulary import Backend
from harness.evaluation.ports import WorkerOpener
from harness.evaluation.run import Run

MODE = "triton-device"


class DeviceOpener:
    """Implements ``ports.WorkerOpener`` for ``run``; isolation is that of the sandbox which holds the candidate."""

    def __init__(self, run: Run, sandboxes: Callable[[str], WorkerOpener]) -> None:
        """``sandboxes`` gives the opener of a sandbox mode."""
        self._run, self._sandboxes = run, sandboxes

    @property
    def isolation(self) -> int:
        """The proved level of the sandbox."""
        return self._sandboxes("triton-plan").isolation

    @property
    def proved(self) -> tuple[str, ...]:
        """The walls that stood around it."""
        return self._sandboxes("triton-plan").proved

    def open(self, *, bounds_checks: bool = False, deadline_s: float | None = None,
             options: Mapping[str, Any] | None = None) -> DeviceWorker:
        """A worker without a candidate yet. ``bounds_checks`` means nothing here: guard bands are always on.

        Plans that the stage ``plan`` recorded are the ones that run: what is timed is what is judged.
        """
        run = self._run
        target = find_target(run.target)
        sandboxes = self._sandboxes("triton-plan")

        def planner() -> Any:
            return sandboxes.open(deadline_s=deadline_s, options={"target": target.name})

        plans = Plans(planner, target, lambda: run.remaining_s, lambda recorded: derive(run, recorded))
        attributes = {attribute.name: attribute.default for attribute in run.spec.attributes}
        for point, plan in zip(planned_shapes(run), run.plans, strict=False):
            documents = planning.argument_documents(run.spec.arguments, point.dims, run.workload.dtypes[Backend.TRITON])
            plans.know(documents, {**attributes, **point.attributes}, plan)
        return DeviceWorker(plans, Holding(run), run.spec.arguments)


def workers_of(run: Run, sandboxes: Callable[[str], WorkerOpener]) -> Callable[[str], WorkerOpener]:
    """``Run.open_workers`` of a run that is judged on a device: one more mode beside those of the sandbox."""
    opener = DeviceOpener(run, sandboxes)
    return lambda mode: opener if mode == MODE else sandboxes(mode)
