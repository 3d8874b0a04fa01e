"""First contents of the measured shapes, made once for an evaluation and kept from correctness to the last timed round.

Correctness is judged on them as they are. A timed sample never holds them: each gets them times factors of its own, so
that nothing that a kernel saw before helps it. They are made in the background, from the secret seed alone, and nobody
holds a device for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from harness.domain.vocabulary import Backend
from harness.evaluation.judge.inputs import all_attributes
from harness.evaluation.judge.large import write_large_inputs
from harness.evaluation.judge.lending import Lending
from harness.evaluation.run import Run
from harness.operators.base import OperatorSpec, ShapePoint
from harness.operators.implementation import Tensors

LABEL = "measured"


@dataclass(frozen=True, slots=True)
class Base:
    """One shape's contents: the judge's own view of the ``inputs`` (nobody else's writing can reach it), and a
    ``lending`` of the same sealed memory with room for outputs."""

    point: ShapePoint
    inputs: Tensors
    lending: Lending

    def close(self) -> None:
        """Give the lent memory back; idempotent."""
        self.lending.close()


def make_base(spec: OperatorSpec, point: ShapePoint, dtype: str, regimes: tuple[str, ...], seed: int,
              *labels: object) -> Base:
    """Contents of ``point``; equal ``seed`` and ``labels`` give equal ones."""
    attributes = all_attributes(spec, point.attributes)
    lending = Lending.of_files(
        spec, write_large_inputs(spec, point.dims, regimes, attributes, dtype, seed, *labels, point.label), attributes,
        dtype)
    return Base(point, lending.inputs, lending)


class Bases:
    """The contents of several shapes by label, on their way or there. Close them."""

    def __init__(self, making: Mapping[str, Future[Base]]) -> None:
        self._making = dict(making)

    def __getitem__(self, label: str) -> Base:
        """One shape's, waited for where it is not there yet. Raises what making it raised."""
        return self._making[label].result()

    def ready(self) -> list[Base]:
        """All of them, in the order that they were asked for."""
        return [made.result() for made in self._making.values()]

    def close(self) -> None:
        """Give the memory back, also that of what is still on its way; idempotent."""
        wait(self._making.values())
        for made in self._making.values():
            if made.exception() is None:
                made.result().close()
        self._making.clear()


def bases_of(run: Run, points: tuple[ShapePoint, ...]) -> Bases:
    """The bases of ``run`` for the measured ``points``; they begin to be made where there are none. The candidate was
    imported and the seed drawn before."""
    if run.bases is None:
        assert run.seed is not None
        dtype = run.workload.dtypes[Backend.TRITON]
        pool = ThreadPoolExecutor(max(1, len(points)))
        run.bases = Bases({point.label: pool.submit(make_base, run.spec, point, dtype,
                                                      run.workload.regimes_of(point), run.seed, LABEL)
                           for point in points})
        pool.shutdown(wait=False)
        weakref.finalize(run, run.bases.close)
    return run.bases


def close_bases(run: Run) -> None:
    """Give the bases of ``run`` back, if there are any."""
    if run.bases is not None:
        run.bases.close()
        run.bases = None
