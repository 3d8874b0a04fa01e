"""The warm server of one mode: imports once, then forks one keeper with one candidate process per request."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
from pathlib import Path
from typing import Any

from harness.evaluation.sandbox import child, frames, jail, linux, users, walls, watch
from harness.evaluation.sandbox.faults import Notes
from harness.evaluation.sandbox.keeper import Keeper

TMP_BYTES = 64 << 20


class Server:
    """Answers the judge's requests on ``sock`` until it hangs up."""

    def __init__(self, sock: socket.socket, module: str, package_root: str, stage: str) -> None:
        self._sock = sock
        self._module = module
        self._readable = walls.readable_paths(package_root)
        self._stage = stage
        self._notes = Notes()
        self._jailed = False
        self._privileged = False
        self._opened = 0

    def run(self) -> None:
        """Preload, confine, report, serve."""
        importlib.import_module(self._module).preload()
        importlib.import_module("harness.evaluation.sandbox.escape")
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
        trouble = ""
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers reap themselves
        self._privileged = os.geteuid() == 0
        try:
            if not self._stage:
                raise OSError("not asked for")
            jail_stage = Path(self._stage, "root")
            jail_stage.mkdir()
            self._privileged = jail.enter(self._readable, str(jail_stage)) and self._privileged
            self._jailed = True
        except OSError as error:
            trouble = f"no private namespaces: {error}"
        linux.prctl(linux.PR_SET_DUMPABLE, 0)  # nothing of it and its keepers is for a candidate of the same user
        gc.collect()
        gc.freeze()
        ready = {"ready": True, "jail": self._jailed, "uid": self._privileged, "threads": threads, "trouble": trouble}
        frames.send(self._sock, ready)
        while True:
            try:
                asked, fds = frames.receive(self._sock)
            except frames.Closed:
                return
            self._open(asked, fds)

    def _open(self, asked: dict[str, Any], fds: list[int]) -> None:
        control, channel, *group = fds
        self._opened += 1
        use_jail = self._jailed and asked.get("jail", True)
        config = {
            "uid": users.of_candidate(self._opened) if self._privileged and asked.get("uid", True) else None,
            "jail": use_jail,
            "tmp": jail.TMP if use_jail else asked["tmp"],
            "readable": self._readable,
            "data_bytes": asked["data_bytes"],
            "cores": asked.get("cores"),
            "without": asked.get("without", ()),
            "module": "harness.evaluation.sandbox.escape" if asked.get("probe") else self._module,
        }
        if os.fork() == 0:
            try:
                self._sock.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self._keep(config, socket.socket(fileno=control), socket.socket(fileno=channel), *group)
            finally:
                os._exit(0)
        frames.close_all(fds)

    def _keep(self, config: dict[str, Any], control: socket.socket, channel: socket.socket,
              group: int | None = None) -> None:
        """Between server and keeper stands a short-lived process, because a pid namespace starts with a fork."""
        if config["jail"]:
            linux.unshare(linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
            if os.fork() != 0:
                os._exit(0)
            jail.private(TMP_BYTES, config["uid"])
        else:
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
            if config["uid"] is not None:
                try:
                    os.chown(config["tmp"], config["uid"], config["uid"])
                except OSError as error:  # root by name only
                    config["uid"], config["uid_refused"] = None, f"it cannot be given its folder: {error.strerror}"
        self._notes.renew()

        def become(output: int) -> None:
            control.close()
            child.become(config, channel, output, self._notes, group)

        allowance = watch.Allowance(
            memory_bytes=config["data_bytes"], tmp=None if config["jail"] else config["tmp"], tmp_bytes=TMP_BYTES,
        )
        Keeper(control, config["jail"], self._notes, allowance).keep(become, channel)
