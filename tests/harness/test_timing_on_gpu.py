"""The series and the slope benchmark of a GPU host, on a device that invents its times from a model."""

from __future__ import annotations

import argparse
import contextlib
import json
import re

import pytest

from benchmarks import places, slope, trust, trust_table
from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.operators.base import ShapePoint
from tests.harness.device_timing.device_model import Model, ModelDevice, plan

SPEC = registry.get("rms_norm")
POINT = ShapePoint("100x64", {"rows": 100, "cols": 64}, 1.0, {"eps": 1e-6})
COST = 0.5
"""What a repeated row costs on the model, as a share of a first one."""


class Launcher(ModelDevice):
    """A model whose kernels take longer by ``COST`` for every extra row."""

    opened = 0

    def __init__(self) -> None:
        type(self).opened += 1
        times = {str(extra): 100.0 * (1 + COST * extra / POINT.dims["rows"]) for extra in range(2000)}
        super().__init__(SPEC, Model(times, sample_noise=0.002, round_noise=0.0005, judged_share=0.95),
                         seed=Launcher.opened)
        self.with_attributes({"eps": 1e-6})

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    """A host with a GPU: recording and compiling give plans that the model knows by their number of extra rows."""
    def compiled(source: str, *_: object) -> tuple:
        found = re.search(r'"EXTRA": (\d+)', source)
        return plan(found.group(1) if found else "0"), ()

    for module in ("harness.hardware.gpu", "harness.hardware.detect"):
        with contextlib.suppress(AttributeError):
            monkeypatch.setattr(f"{module}.gpu_name", lambda: "nvidia-h200")
    monkeypatch.setattr("harness.backends.triton.launcher.process.open_device", Launcher)
    monkeypatch.setattr(places, "compiled_call", compiled)
    monkeypatch.setattr(slope, "compiled_call", compiled)
    monkeypatch.setattr(places, "point_of", lambda *_: POINT)


def asked(**more: object) -> argparse.Namespace:
    return argparse.Namespace(**{"place": "gpu", "aa": 3, "power": 2, "shape": None, "sessions": None, **more})


def test_a_series_is_measured_in_parts_and_knows_the_true_effects(tmp_path, capsys):
    path = tmp_path / "trust-gpu.jsonl"
    trust._measure(asked(sessions=8), path)
    assert len(trust_table.read(path)) == 1 + 8
    trust._measure(asked(), path)
    header, *lines = trust_table.read(path)
    assert (header["hardware"], header["place"], header["shape"]) == ("nvidia-h200", "gpu", POINT.label)
    assert len(lines) == 3 * trust.CALIBRATIONS + 3 + 3 * 2
    trust._measure(asked(), path)
    assert len(trust_table.read(path)) == 1 + len(lines)
    rows = {row["series"]: row for row in trust_table.rows_of(lines)}
    assert rows["10% slower"]["effect"] == pytest.approx(0.10, rel=0.1)
    assert rows["10% slower"]["called"]["slower"] == rows["10% slower"]["expected"] == 2
    assert rows["A/A"]["called"]["cannot_tell"] == 3
    trust_table.show([header, *lines])
    assert "0 of 3 called different" in capsys.readouterr().out


def test_a_launcher_serves_a_few_sessions_and_then_another_one_does(monkeypatch):
    monkeypatch.setattr(Launcher, "opened", 0)
    with places.place_of("gpu", None) as place:
        place._most = 2
        for _ in range(5):
            place.session(0)
        assert Launcher.opened == 3
    assert place._device is None


def test_slopes_are_compared_with_events_round_by_round(capsys):
    with Launcher() as device:
        rounds = slope.measure(device, SPEC, POINT, SPEC.baseline(Backend.TRITON), 3)
    assert len(rounds) == 3
    assert all(one["judge"] == pytest.approx(0.95 * one["launcher"]) for one in rounds)
    slope.show("rms_norm 100x64", rounds)
    ratio = float(capsys.readouterr().out.split()[-3])
    assert ratio == pytest.approx(0.95, abs=0.02)


def test_five_kernels_from_the_smallest_shape_to_many_repeats_of_a_large_one():
    found = slope.kernels()
    assert len({name for name, *_ in found}) == 5
    assert json.dumps([name for name, *_ in found]).count("times") == 2
