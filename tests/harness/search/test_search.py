"""A bulk search end to end on a model of a device: halving, exhaustive, faults, and going on where it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.agents.autotune.space import point_of
from harness.domain.errors import InfrastructureError, UsageError
from harness.domain.vocabulary import Backend, Tier
from harness.evaluation.source.tier import classify
from harness.search.clock import Clock
from harness.search.configs import Config, Space, space_of
from harness.search.journal import Journal
from harness.search.search import LEAST, SAMPLES, Result, Search
from tests.harness.device_timing.device_model import ModelDevice
from tests.harness.search.spaces import BEST, FakeFarm, clock_of, model_of, name, small_space

SPACE = small_space()


def searched(journal: Journal, farm: FakeFarm | None = None, clock: Clock | None = None, count: int | None = None,
             strategy: str = "halving", space: Space = SPACE) -> Result:
    own = clock or clock_of(space, model_of(space))
    try:
        return Search(space, space.drawn(count, 3), farm or FakeFarm(space), journal, own,  # type: ignore[arg-type]
                      strategy=strategy).run()
    finally:
        own.close()


def values(result: Result, key: str) -> dict[str, int]:
    assert result.source is not None
    return {bucket: dict(point_of(SPACE.spec, result.source, SPACE.axes, shapes))[key]
            for bucket, shapes in SPACE.buckets.items()}


@pytest.mark.parametrize("strategy", ["halving", "exhaustive"])
def test_the_best_of_every_bucket_is_found_and_is_a_light_change(strategy: str) -> None:
    result = searched(Journal({}), strategy=strategy)
    assert values(result, "BLOCK") == BEST
    assert result.source is not None
    assert classify(SPACE.source, result.source, SPACE.spec, Backend.TRITON).tier is Tier.LIGHT
    assert result.timed == SPACE.size * len(SPACE.buckets) == result.configurations
    assert all(one.ratio > 1.2 for one in result.best.values())


def test_halving_takes_most_samples_of_the_few_that_are_best() -> None:
    devices: list[ModelDevice] = []
    result = searched(Journal({}), clock=clock_of(SPACE, model_of(SPACE), devices))
    points = SPACE.size
    quarter = max(LEAST, -(-points // 4))
    assert result.rungs[:2] == (2 * points, 2 * quarter) and result.rungs[2] == 2 * max(LEAST, -(-quarter // 4))
    taken = sum(len(request.sweeps) * (len(request.sides) - 1) for request in devices[0].requests)
    assert taken < points * 3 * sum(SAMPLES) / 4  # a search that takes all samples of all takes four times as many
    assert all(sweep.flush for request in devices[0].requests for sweep in request.sweeps)


def test_the_starting_kernel_runs_in_every_sweep() -> None:
    devices: list[ModelDevice] = []
    searched(Journal({}), clock=clock_of(SPACE, model_of(SPACE), devices), count=10)
    assert all("start" in sweep.order for request in devices[0].requests for sweep in request.sweeps)


def test_what_cannot_run_is_ruled_out_and_counted() -> None:
    farm = FakeFarm(SPACE, broken=lambda config: config.params["num_warps"] == 1)
    result = searched(Journal({}), farm)
    assert result.problems == {"limits": 2 * SPACE.size // len(SPACE.axes["num_warps"])}
    assert set(values(result, "num_warps").values()) == {2}


def test_a_configuration_that_faults_on_the_device_takes_no_other_with_it() -> None:
    bad = {name(Config("long", (("BLOCK", 8192), ("num_warps", 1)))): "illegal_address",
           name(Config("long", (("BLOCK", 256), ("num_warps", 8)))): "timeout"}
    devices: list[ModelDevice] = []
    result = searched(Journal({}), clock=clock_of(SPACE, model_of(SPACE, faulty=bad), devices))
    assert result.problems == {"device": 2} and result.timed == 2 * SPACE.size - 2
    assert values(result, "BLOCK") == BEST and values(result, "num_warps")["long"] == 2
    assert len(devices) > 1  # a dead launcher is replaced


def test_a_starting_kernel_that_fails_ends_the_search() -> None:
    farm = FakeFarm(SPACE, broken=lambda config: config.params == {"BLOCK": 1024, "num_warps": 4})
    with pytest.raises(InfrastructureError, match="starting kernel"):
        searched(Journal({}), farm)


def test_a_killed_search_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    header = {"operator": "softmax", "seed": 3}
    whole = searched(Journal(header, path))
    lines = path.read_text("utf-8").splitlines()
    half = len(lines) // 2
    path.write_text("\n".join(lines[:half]) + "\n" + lines[half][:20], "utf-8")
    farm = FakeFarm(SPACE)
    again = searched(Journal(header, path), farm)
    assert values(again, "BLOCK") == values(whole, "BLOCK") == BEST
    assert again.configurations == whole.configurations
    assert searched(Journal(header, path)).source == again.source  # and the half line is gone
    built = [json.loads(line) for line in lines[:half] if '"timed"' in line]
    known = {(row["bucket"], tuple(row["params"].items())) for row in built}
    first = [point for point, buckets in farm.asked if len(buckets) == 2]
    assert all(any((bucket, point) not in known for bucket in SPACE.buckets) for point in first[1:])


def test_a_finished_search_is_read_without_the_device(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole = searched(Journal({}, path))
    devices: list[ModelDevice] = []
    again = searched(Journal({}, path), clock=clock_of(SPACE, model_of(SPACE), devices))
    assert again.source == whole.source and not devices


def test_a_journal_of_another_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal({"operator": "softmax", "seed": 1}, path).close()
    with pytest.raises(UsageError, match="seed"):
        Journal({"operator": "softmax", "seed": 2}, path)
    path.write_text("{]\nno\n", "utf-8")
    with pytest.raises(UsageError, match="line 1"):
        Journal({}, path)


def test_without_a_clock_everything_is_built_and_nothing_timed() -> None:
    result = Search(SPACE, SPACE.drawn(8, 1), FakeFarm(SPACE), Journal({"timed": False})).run()  # type: ignore[arg-type]
    assert (result.source, result.best, result.timed) == (None, {}, 0)
    assert result.configurations == 16


def test_a_search_out_of_time_ends_with_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    farm, clock = FakeFarm(SPACE), clock_of(SPACE, model_of(SPACE))
    try:
        cut = Search(SPACE, SPACE.drawn(None, 3), farm, Journal({}, path), clock, seconds=-1.0).run()  # type: ignore[arg-type]
    finally:
        clock.close()
    assert (cut.configurations, cut.best) == (0, {})
    assert values(searched(Journal({}, path)), "BLOCK") == BEST  # and goes on from its journal


def test_what_a_killed_search_took_is_kept_and_counted_on(tmp_path: Path) -> None:
    path, calls = tmp_path / "journal.jsonl", 0
    clock = clock_of(SPACE, model_of(SPACE))
    time_group = clock.time

    def killed(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        clock.held_s += 100.0
        return time_group(*given)

    clock.time = killed  # type: ignore[method-assign]
    try:
        with pytest.raises(KeyboardInterrupt):
            Search(SPACE, SPACE.drawn(None, 3), FakeFarm(SPACE), Journal({}, path), clock).run()  # type: ignore[arg-type]
    finally:
        clock.close()
    before = Journal({}, path).before
    assert 200 <= before.device_s < 300 and before.seconds > 0
    whole = searched(Journal({}, path))
    assert whole.device_s >= before.device_s and whole.seconds > before.seconds
    assert Journal({}, path).before.device_s == whole.device_s


def test_a_space_names_what_does_not_exist() -> None:
    with pytest.raises(UsageError, match="4x4000"):
        space_of(SPACE.spec, "llm", SPACE.source, ["none"])
    with pytest.raises(UsageError, match="nothing to search"):
        space_of(SPACE.spec, "llm", "PARAMS = {}\n\n\ndef run(x, out):\n    pass\n")
    assert list(space_of(SPACE.spec, "llm", SPACE.source, ["4x5000"]).buckets) == ["long"]


@pytest.mark.parametrize("text", ['{"a":1}', '{"a":1}\n', '{"kind":"search"}\n{"half', "[1]\n", "no json\n"])
def test_a_file_that_is_no_journal_of_this_search_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "precious.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError):
        Journal({"operator": "rope"}, path)
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("line", ["{}", "[]", "1", '{"kind":"built"}',
                                  '{"kind":"end","seconds":1e999,"device_s":0,"build_s":0}',
                                  '{"kind":"spent","seconds":1,"device_s":-1,"build_s":0}',
                                  '{"kind":"timed","rung":"x","bucket":"b","params":{}}'])
def test_a_line_that_no_search_writes_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "journal.jsonl"
    Journal({"operator": "rope"}, path).close()
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(UsageError, match="line 2"):
        Journal({"operator": "rope"}, path)
