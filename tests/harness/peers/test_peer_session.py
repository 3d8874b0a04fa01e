"""Libraries and our kernels in the same rounds: interleaved, all samples kept, absent ones named with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from harness.domain.errors import InfrastructureError
from harness.domain.peers import Side
from harness.domain.vocabulary import Backend
from harness.operators import registry
from harness.peers import figures
from harness.peers.process import LibraryDied
from harness.peers.registry import peers_of
from harness.peers.session import Asked, PeerSession, Taken

SPEC = registry.get("softmax")
POINTS = SPEC.workloads["llm"].shapes[Backend.NUMBA]
LABELS = tuple(point.label for point in POINTS)
KERNEL = "sha256:" + "4" * 64


class Process:
    """Answers as the libraries' process does. ``dies`` names (library, shape) whose first try ends it."""

    def __init__(self, log: list[str], *, us: Mapping[str, float], absent: Mapping[str, str] | None = None,
                 dies: set[tuple[str, str]] | None = None, drops: Mapping[str, str] | None = None,
                 dies_in_round: set[str] | None = None) -> None:
        self.log, self.us, self.facts = log, dict(us), {"device": "cpu"}
        self.absent, self.dies, self.drops = dict(absent or {}), dies or set(), dict(drops or {})
        self.dies_in_round = dies_in_round if dies_in_round is not None else set()
        self.sides: dict[str, list[str]] = {}

    def ask(self, request: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        label = request["shape"]
        if request["op"] == "prepare":
            names = [name for name in self.us if name not in request["skip"] and name not in self.absent]
            for name in names:
                if (name, label) in self.dies:
                    raise LibraryDied(name, "it ended by itself")
            self.sides[label] = names
            return {"sides": {name: {"us": self.us[name], "graph": None} for name in names}, "absent": self.absent}
        if request["op"] == "round":
            if label in self.dies_in_round:
                self.dies_in_round.discard(label)
                raise LibraryDied(None, "it did not answer in time")
            self.log.append(f"libraries {label}")
            self.sides[label] = [name for name in self.sides[label] if name not in self.drops]
            return {"us": {name: [self.us[name]] * request["pairs"] for name in self.sides[label]},
                    "dropped": self.drops}
        return {"checks": {name: {"error": 1e-7, "worst_ratio": 0.1, "right": True, "why": ""}
                           for name in self.sides[label]}}

    def close(self) -> None:
        self.log.append("closed")


class Ours:
    """Two kernels at fixed times."""

    def __init__(self, log: list[str], pieces: Sequence[Sequence[str]]) -> None:
        self.log, self.pieces = log, pieces

    def round(self, piece: Sequence[str], pairs: int) -> dict[str, dict[str, tuple[float, ...]]]:
        self.log.append(f"ours {','.join(piece)}")
        return {label: {"baseline": (100.0,) * pairs, "playbook": (40.0,) * pairs} for label in piece}

    def floor_s(self, label: str) -> float:
        return 20e-6

    def rates(self) -> dict[str, float]:
        return {"copy_gbps": 4200.0}

    def close(self) -> None:
        return None


def asked(control: bool = True) -> Asked:
    return Asked("softmax", Backend.NUMBA, "llm", "cpu-test-session", LABELS, ("torch eager", "torch.compile"),
                 ("baseline", "text") if control else None)


def session(start: Callable[[], Process], log: list[str], *, whole: bool = False) -> PeerSession:
    pieces = [LABELS] if whole else [(label,) for label in LABELS]
    return PeerSession(asked(), lambda: Ours(log, pieces), start=lambda request, told: start())  # type: ignore[arg-type,return-value]


US = {"torch eager": 80.0, "torch.compile": 60.0, "baseline": 101.0}


def rows(taken: Taken) -> dict[tuple[str, str, Side], Any]:
    found = figures.rows_of(taken, SPEC, POINTS, "float32", peers_of("softmax"),
                            {"baseline": KERNEL, "playbook": "sha256:" + "5" * 64}, "baseline", {"torch": "2.13.0"})
    return {(row.shape, row.name, row.side): row for row in found}


def test_every_round_holds_both_clocks_for_every_shape() -> None:
    log: list[str] = []
    taken = session(lambda: Process(log, us=US), log).run(5, 4)
    for label in LABELS:
        assert log.count(f"libraries {label}") == log.count(f"ours {label}") == 5
        assert [len(one) for one in taken.peers[label]["torch eager"]] == [4] * 5
    # Neighbours in time: a round of the libraries lies beside one of ours on the same shape.
    turns = [entry.split(" ", 1)[1] for entry in log if entry != "closed"]
    assert turns == [label for _ in range(5) for label in LABELS for _ in range(2)]


def test_a_clock_that_measures_all_shapes_at_once_is_interleaved_too() -> None:
    log: list[str] = []
    session(lambda: Process(log, us=US), log, whole=True).run(3, 2)
    assert log.count("ours " + ",".join(LABELS)) == 3
    assert all(log.count(f"libraries {label}") == 3 for label in LABELS)


def test_rows_name_everybody_and_keep_n_and_spread() -> None:
    log: list[str] = []
    taken = session(lambda: Process(log, us=US), log).run(5, 4)
    found = rows(taken)
    label = LABELS[0]
    eager = found[label, "torch eager", Side.PEER]
    assert (eager.median_us, eager.n, eager.round_us, eager.version) == (80.0, 20, (80.0,) * 5, "2.13.0")
    assert eager.right and eager.roof_share == pytest.approx(0.25)
    assert taken.rates == {"copy_gbps": 4200.0}
    assert found[label, "playbook", Side.OURS].median_us == 40.0
    assert found[label, "baseline", Side.CONTROL].kernel == KERNEL
    absent = found[label, "Liger", Side.PEER]
    assert absent.median_us is None and "NVIDIA" in absent.absent


def test_both_clocks_and_the_best_pair_are_compared() -> None:
    log: list[str] = []
    taken = session(lambda: Process(log, us=US), log).run(5, 4)
    (clock, *_), best = figures.clocks_of(taken, SPEC, "baseline", KERNEL), figures.best_of(taken, rows(taken).values())
    assert (clock.native_us, clock.plan_us) == (101.0, 100.0)
    assert clock.ratio.ratio == pytest.approx(1.01)
    assert {(one.peer, one.kernel) for one in best} == {("torch.compile", "playbook")}
    assert all(one.ratio.ratio == pytest.approx(1.5) for one in best)


def test_a_library_that_ends_its_process_is_left_out_on_that_shape_alone() -> None:
    log: list[str] = []
    dies = {("torch.compile", LABELS[1])}
    found = rows(session(lambda: Process(log, us=US, dies=dies), log).run(2, 2))
    assert "ended by itself" in found[LABELS[1], "torch.compile", Side.PEER].absent
    assert found[LABELS[0], "torch.compile", Side.PEER].n == 4
    assert found[LABELS[1], "torch eager", Side.PEER].n == 4


def test_a_process_lost_in_a_round_costs_that_shape_its_libraries_and_ours_go_on() -> None:
    log: list[str] = []
    lost = {LABELS[0]}
    found = rows(session(lambda: Process(log, us=US, dies_in_round=lost), log).run(3, 2))
    assert "did not answer" in found[LABELS[0], "torch eager", Side.PEER].absent
    assert found[LABELS[0], "torch.compile", Side.PEER].median_us is None
    assert found[LABELS[0], "playbook", Side.OURS].n == 6
    assert found[LABELS[2], "torch eager", Side.PEER].n == 6


def test_a_library_that_fails_in_a_round_is_absent_with_its_words() -> None:
    log: list[str] = []
    found = rows(session(lambda: Process(log, us=US, drops={"torch.compile": "It fails: no memory"}), log).run(2, 2))
    assert found[LABELS[0], "torch.compile", Side.PEER].absent == "It fails: no memory"
    assert found[LABELS[0], "torch eager", Side.PEER].n == 4


def test_a_fault_of_our_kernels_costs_that_shape_alone_and_is_named() -> None:
    log: list[str] = []

    class Failing(Ours):
        def round(self, piece: Sequence[str], pairs: int) -> dict[str, dict[str, tuple[float, ...]]]:
            if piece[0] == LABELS[1] and self.log.count(f"ours {LABELS[1]}"):
                raise InfrastructureError("The device failed twice, in fresh launchers.")
            return super().round(piece, pairs)

    one = PeerSession(asked(), lambda: Failing(log, [(label,) for label in LABELS]),
                      start=lambda request, told: Process(log, us=US))  # type: ignore[arg-type,return-value]
    taken = one.run(3, 2)
    found = rows(taken)
    assert "failed twice" in found[LABELS[1], "playbook", Side.OURS].absent
    assert found[LABELS[0], "playbook", Side.OURS].n == 6 == found[LABELS[1], "torch eager", Side.PEER].n
    assert set(taken.failed) == {LABELS[1]}
    assert {clock.shape for clock in figures.clocks_of(taken, SPEC, "baseline", KERNEL)} == {LABELS[0], LABELS[2]}


def test_without_torch_there_every_library_is_absent_and_ours_are_measured() -> None:
    log: list[str] = []

    def start() -> Process:
        raise InfrastructureError("The libraries' process does not start: no module named torch")

    found = rows(session(start, log).run(2, 3))
    assert "no module named torch" in found[LABELS[0], "torch eager", Side.PEER].absent
    assert found[LABELS[0], "playbook", Side.OURS].n == 6
