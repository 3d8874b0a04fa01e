"""A host without Triton: what needs no compiler works, CPU kernels are judged, all the rest says what is missing.

The host is a Python environment made of links to this one's packages, all but Triton, so that sandboxes lack it too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from harness.backends import present
from harness.backends.present import absent, ensure_present
from harness.cli.selftest import chosen_kernels
from harness.domain.codec import schema
from harness.domain.errors import UsageError
from harness.domain.vocabulary import Backend

ROOT = Path(__file__).parents[3]
TRITON = ROOT / "harness/operators/softmax/baselines/triton.py"
WRONG = ROOT / "harness/operators/softmax/wrong/numba/store_past_end.py"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("host")
    venv.EnvBuilder(symlinks=True, with_pip=False).create(home)
    packages = next((home / "lib").glob("python3*")) / "site-packages"
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not entry.name.lower().startswith("triton"):
            (packages / entry.name).symlink_to(entry)
    return home / "bin/python"


def ran(python: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(python), "-m", "harness", *map(str, arguments)], cwd=ROOT, capture_output=True,
                          text=True, timeout=180, check=False)


def test_listing_tiers_and_stored_results_need_no_compiler(python: Path, tmp_path: Path) -> None:
    listed = ran(python, "operators", "--json")
    assert listed.returncode == 0 and json.loads(listed.stdout)["operators"][0]["name"] == "rms_norm"
    assert ran(python, "tier", TRITON, TRITON).stdout.startswith("none")
    stored = tmp_path / "report.json"
    stored.write_text(json.dumps(schema("report")["examples"][0]))
    shown = ran(python, "report", "--show", stored)
    assert shown.returncode == 0, shown.stderr
    assert "torch.compile" in shown.stdout and (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("arguments", [
    ("plan", "--operator", "softmax", "--hardware", "nvidia-h200", TRITON),
    ("parity", "--operator", "softmax", TRITON),
    ("optimize", "--operator", "softmax", "--backend", "triton", "--rounds", "1"),
    ("selftest", "--backend", "triton"),
], ids=lambda arguments: arguments[0])
def test_what_needs_triton_says_so_in_one_sentence(python: Path, arguments: tuple[object, ...]) -> None:
    done = ran(python, *arguments)
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("Triton is not installed on this host") and "Traceback" not in done.stderr


def test_a_triton_kernel_is_not_charged_for_it(python: Path) -> None:
    done = ran(python, "evaluate", "--operator", "softmax", "--backend", "triton", "--json", TRITON)
    verdict = json.loads(done.stdout)
    assert done.returncode == 2
    assert (verdict["outcome"], verdict["blame"]) == ("unsupported_here", "infrastructure")
    assert verdict["reasons"][0]["code"] == present.CODE
    assert (ROOT / "docs/troubleshooting" / f"{present.CODE}.md").is_file()


@pytest.mark.sandbox
def test_a_cpu_kernel_is_judged(python: Path) -> None:
    done = ran(python, "evaluate", "--operator", "softmax", "--backend", "numba", "--json", WRONG)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["outcome"] == "out_of_bounds"


class Blocking:
    """Keeps packages out of this process, as a finder that comes before all others."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(("blocked", "backend", "words"), [
    (("triton",), Backend.TRITON, "Triton is not installed"), (("triton",), Backend.NUMBA, None),
    (("numba",), Backend.NUMBA, "Numba is not installed"), (("torch",), Backend.NUMBA, "PyTorch is not installed"),
    (("triton", "torch"), Backend.TRITON, "Triton and PyTorch are not installed"), ((), Backend.TRITON, None)])
def test_what_is_missing_is_named_without_importing_anything(
        monkeypatch: pytest.MonkeyPatch, blocked: tuple[str, ...], backend: Backend, words: str | None) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in blocked:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Blocking(*blocked), *sys.meta_path])
    found = absent(backend)
    assert found is None if words is None else found is not None and found.startswith(words)
    if words is not None:
        with pytest.raises(UsageError, match="not installed"):
            ensure_present(backend)
        assert not [kernel for kernel in chosen_kernels(quick=True) if kernel.backend == backend]
    assert not set(blocked) & set(sys.modules)
