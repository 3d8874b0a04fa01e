"""A site of its own on this machine: an empty database, people, ``manage.py serve``, and its end."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from scripts.gpu_host.visitor import Failed

ROOT = Path(__file__).resolve().parents[2]
MANAGE = ROOT / "manage.py"
STOP_S = 30.0
LOG_TAIL = 4000


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Site:
    """``serve`` in ``folder``; nothing is read from or written to the checkout's own ``var/``."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What its processes are started with."""
        return os.environ | {
            "DJANGO_SETTINGS_MODULE": "kernelopt_site.settings.base", "KERNELOPT_VAR": str(self.folder),
            "KERNELOPT_SQLITE": str(self.folder / "kernelopt.sqlite3"), "KERNELOPT_DATABASE_URL": "",
            "KERNELOPT_ENDPOINTS": str(self.folder / "endpoints.toml"), "KERNELOPT_DEMO": "0",
            "KERNELOPT_SELF_REVIEW": "0", "PYTHONUNBUFFERED": "1",
        }

    def manage(self, *words: str, given: str = "") -> None:
        """Run a management command; ``given`` is its standard input.

        Raises:
            Failed: it did not end well.
        """
        done = subprocess.run([sys.executable, str(MANAGE), *words], cwd=ROOT, env=self.environment,
                              input=given.encode(), capture_output=True, check=False)
        if done.returncode:
            raise Failed(f"manage.py {words[0]} ended with {done.returncode}: {done.stderr.decode()[-LOG_TAIL:]}")

    def replay(self, archive: bytes) -> str:
        """Unpack a campaign's conversation and play it again by command, without the site; its lines, one a round.

        Raises:
            Failed: it does not come out as it did.
        """
        folder = self.folder / "replay"
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            packed.extractall(folder)
        stored = next(folder.rglob("model.json"), folder / "model.json").parent
        done = subprocess.run([sys.executable, "-m", "harness", "replay", str(stored)], cwd=ROOT, env=self.environment,
                              capture_output=True, check=False)
        said = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode:
            raise Failed(f"replay ended with {done.returncode}: {said[-LOG_TAIL:]}{done.stderr.decode()[-LOG_TAIL:]}")
        return said

    def start(self) -> None:
        """Start ``serve``; it migrates, seeds and supervises by itself."""
        with (self.folder / "serve.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(MANAGE), "serve", "--port", str(self.port)], cwd=ROOT, env=self.environment,
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    @property
    def up(self) -> bool:
        """Whether ``serve`` itself still runs."""
        return self.process is not None and self.process.poll() is None

    def log(self) -> str:
        """The end of what ``serve`` and its children printed, refused requests left out: some are asked on purpose."""
        path = self.folder / "serve.log"
        lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        return "\n".join(line for line in lines if "django.request" not in line)[-LOG_TAIL:]

    def stop(self) -> list[str]:
        """Ask ``serve`` to end; command lines of processes that it left behind, which are killed."""
        if self.process is None:
            return []
        tree = psutil.Process(self.process.pid).children(recursive=True) if self.up else []
        if self.up:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        _, left = psutil.wait_procs(tree, timeout=2.0)
        for one in left:
            one.kill()
        self.process = None
        return [" ".join(one.cmdline()) if one.is_running() else str(one.pid) for one in left]

