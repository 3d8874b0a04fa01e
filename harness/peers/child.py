"""The libraries' process: ``python -B -m harness.peers.child``. One JSON request a line in, JSON answers out.

Libraries are trusted code; the process is disposable because they may crash, hang or leave a device in a bad state.
Before anything is tried for the first time, a line ``{"trying": name}`` says so, for whoever finds the process dead.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TextIO

import torch

from harness.domain.vocabulary import Backend
from harness.evaluation.timing.device.contents import Factors
from harness.operators import registry
from harness.operators.base import OperatorSpec
from harness.peers.base import Absent, Problem
from harness.peers.checks import Kept, check, choose, document, keep
from harness.peers.places import Cpu, Gpu, Place
from harness.peers.registry import CLEAN, here, peers_of
from harness.peers.ring import Contents, Ring, contents_of
from harness.peers.sides import Maker, SideFailed, control_side, peer_side, round_of, warm

MOST_SPACER = 64 << 20
Told = Callable[[str], None]


@dataclass
class Shape:
    """A prepared shape: contents, also on the device, sides that work, and what is still to be checked."""

    contents: Contents
    first: dict[str, torch.Tensor]
    makers: list[Maker] = field(default_factory=list)
    batch: int = 1
    kept: dict[str, Kept] = field(default_factory=dict)


class Libraries:
    """One operator's libraries on one device."""

    def __init__(self, request: dict[str, Any], told: Told) -> None:
        """``request``: operator, backend, workload, ``peers`` to try (names) and ``control`` (its name and source, or
        null); for a CPU its ``cores``, ``cache_bytes`` and ``memory_bytes``."""
        self.spec: OperatorSpec = registry.get(request["operator"])
        self.backend, self.workload = Backend(request["backend"]), str(request["workload"])
        self._wanted, self._control = request["peers"], request["control"]
        self._random = random.Random(secrets.randbits(64))
        self.place = self._open(request)
        self._seed = secrets.randbits(128)
        factors = Factors(self._seed, "peers")
        factors.close()
        self._table = factors.values
        self._there = self._table.to(self.place.device)
        self._shapes: dict[str, Shape] = {}
        self._told = told

    def _open(self, request: dict[str, Any]) -> Place:
        if self.backend is Backend.TRITON:
            return Gpu()
        cores = request["cores"]
        os.sched_setaffinity(0, cores)
        torch.set_num_threads(len(cores))
        return Cpu(int(request["cache_bytes"]), int(request["memory_bytes"]), cores)

    def prepare(self, label: str, skip: Collection[str] = ()) -> dict[str, Any]:
        """Contents and working sides of a shape, but those to ``skip``; which libraries are absent, and why."""
        began = time.monotonic()
        point = next(p for p in self.spec.workloads[self.workload].shapes[self.backend] if p.label == label)
        contents = contents_of(self.spec, point, self.backend, self.workload, self._seed, self._random,
                               CLEAN.get(self.spec.name))
        made = time.monotonic()
        first = {name: values.to(self.place.device) for name, values in contents.inputs.items()}
        slot = {name: values.clone() for name, values in first.items()}  # some libraries write to their inputs
        shape = Shape(contents, first)
        kinds = {attribute.name: attribute.kind for attribute in self.spec.attributes}
        attributes = {name: int(value) if kinds.get(name) == "int" else value
                      for name, value in contents.attributes.items()}
        problem = Problem(point.dims, attributes, slot, self.place.device)
        absent: dict[str, str] = {}
        for name, make in self._makers(problem, contents.dtype).items():
            if name in skip:
                continue
            self._told(name)
            try:
                maker = make()
                warm(maker, slot, self.place)
                shape.makers.append(maker)
            except Absent as why:
                absent[name] = str(why)
            except Exception as error:  # noqa: BLE001 - whatever a library raises, it is not to be had for this shape
                absent[name] = " ".join(f"It fails on this shape: {type(error).__name__}: {error}".split())[:400]
                self._ensure_alive(absent[name])
            else:
                self._ensure_alive(name)
        if shape.makers:
            shape.batch = self.place.batch(min(maker.us for maker in shape.makers))
            self._shapes[label] = shape
        del slot, problem
        self.place.rest()
        return {"sides": {maker.name: {"us": maker.us, "graph": self._captured(maker)} for maker in shape.makers},
                "absent": absent, "batch": shape.batch, "contents_s": round(made - began, 2),
                "libraries_s": round(time.monotonic() - made, 2)}

    def _ensure_alive(self, words: str) -> None:
        """A kernel that failed leaves a device of no more use: this process ends, and whoever started it knows what was
        tried last."""
        if self.place.device != "cuda":
            return
        try:
            torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001 - the context is lost, whatever it says
            sys.stderr.write(f"The device's context is lost: {error}. {words}\n")
            sys.stderr.flush()
            os._exit(3)

    def _captured(self, maker: Maker) -> bool | None:
        return maker.graph if self.place.device == "cuda" else None

    def _makers(self, problem: Problem, dtype: str) -> dict[str, Callable[[], Maker]]:
        found: dict[str, Callable[[], Maker]] = {
            peer.name: (lambda peer=peer: peer_side(peer, problem))  # type: ignore[misc]
            for peer in peers_of(self.spec.name) if here(peer, self.backend) is None and peer.name in self._wanted}
        if self._control is not None:
            name, source = self._control["name"], self._control["source"]
            found[name] = lambda: control_side(name, source, self.spec, problem, dtype, self.backend)
        return found

    def round(self, label: str, pairs: int) -> dict[str, Any]:
        """One round with fresh buffers; the microseconds of every side. A side that fails is dropped, and the round
        begins anew without it."""
        shape = self._shapes[label]
        dropped: dict[str, str] = {}
        while True:
            try:
                return {"us": self._round(shape, pairs), "dropped": dropped}
            except SideFailed as failed:
                self._told(failed.name)
                self._ensure_alive(failed.text)
                dropped[failed.name] = failed.text
                shape.makers = [maker for maker in shape.makers if maker.name != failed.name]
                shape.kept.pop(failed.name, None)
            self.place.rest()

    def _round(self, shape: Shape, pairs: int) -> dict[str, list[float]]:
        slots = shape.contents.slots(self.place.cache_bytes, self.place.memory_bytes, shape.batch,
                                     self.place.most_slots)
        spacer = self._random.randrange(MOST_SPACER) // 512 * 512
        ring = Ring(shape.contents, shape.first, self._there, slots, spacer)
        rows = choose(shape.contents, self._random)

        def kept(side: str, start: int, outputs: dict[str, torch.Tensor]) -> None:
            shape.kept[side] = keep(outputs, rows, start)

        us = round_of(shape.makers, ring, self.place, shape.batch, pairs, self._random, shape.contents.starts.draw,
                      kept)
        del ring
        self.place.rest()
        return us

    def check(self, label: str) -> dict[str, Any]:
        """Hold what every side left in its last round against float64."""
        shape = self._shapes[label]
        peers = {maker.name: maker.peer for maker in shape.makers}
        return {"checks": {name: document(check(kept, shape.contents, self._table, peers[name]))
                           for name, kept in shape.kept.items()}}


def answer(libraries: Libraries, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request after the first."""
    operation = request["op"]
    if operation == "prepare":
        return libraries.prepare(request["shape"], request["skip"])
    if operation == "round":
        return libraries.round(request["shape"], int(request["pairs"]))
    if operation == "check":
        return libraries.check(request["shape"])
    raise ValueError(f"the libraries' process does not know the request '{operation}'")


def main() -> None:
    """Serve standard input until it ends."""
    out: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries print; the answers stay clean

    def say(document_: dict[str, Any]) -> None:
        out.write(json.dumps(document_) + "\n")
        out.flush()

    libraries: Libraries | None = None
    with torch.no_grad():
        for line in sys.stdin:
            request = json.loads(line)
            try:
                if libraries is None:
                    libraries = Libraries(request, lambda name: say({"trying": name}))
                    facts = torch.cuda.get_device_name(0) if libraries.place.device == "cuda" else "cpu"
                    say({"device": facts, "cache_bytes": libraries.place.cache_bytes,
                         "cudnn": torch.backends.cudnn.version(), "cuda": torch.version.cuda})
                else:
                    say(answer(libraries, request))
            except Exception as error:  # noqa: BLE001 - the other side decides what it means
                say({"failed": f"{type(error).__name__}: {error}"[:1000]})
    out.flush()
    os._exit(0)  # a library's own clean-up may hang, and nothing is left to save


if __name__ == "__main__":
    main()
