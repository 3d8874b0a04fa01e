"""Which GPU a host has and how it is doing, from a driver's files and from a management library made for the test."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from harness import EVALUATOR_VERSION
from harness.backends.triton.launcher import process
from harness.domain.vocabulary import Backend
from harness.hardware import gpu, nvml
from harness.hardware.detect import environment
from harness.hardware.nvml import Card

UUID = "GPU-0a1b2c3d-0102-0304-0506-0708090a0b0c"
INFORMATION = f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 43\nGPU UUID: \t {UUID}\nBus Type: \t PCIe\n"
VERSIONS = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version:  gcc 12.2.0\n",
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025\nGCC version:  12.2\n",
)


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A host with the kernel module's files and nothing else; returns the folder of cards."""
    monkeypatch.delenv(gpu.VISIBLE, raising=False)
    monkeypatch.setattr(nvml, "NODE", tmp_path / "nvidiactl")
    monkeypatch.setattr(nvml, "MODULE", tmp_path / "module")
    monkeypatch.setattr(nvml, "library", lambda: None)
    monkeypatch.setattr(gpu, "_launches", lambda: True)
    (tmp_path / "nvidiactl").touch()
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "version").write_text(VERSIONS[0])
    return tmp_path / "module" / "gpus"


def put(cards, number, information):
    (cards / f"0000:{number:02x}:00.0").mkdir(parents=True)
    (cards / f"0000:{number:02x}:00.0" / "information").write_text(information)


def test_without_a_driver_nothing_is_asked_and_nothing_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(nvml, "NODE", tmp_path / "absent")
    monkeypatch.setattr(nvml, "library", lambda: pytest.fail("no driver, no library"))
    assert nvml.cards() == () and gpu.gpu_name() is None and not gpu.present("nvidia-h200")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_kernel_modules_files_name_card_and_driver(driver, version):
    put(driver, 0x1b, INFORMATION)
    (driver.parent / "version").write_text(version)
    assert nvml.cards() == (Card("NVIDIA H200", "580.95.05", UUID),)
    assert gpu.present("nvidia-h200") and not gpu.present("nvidia-h100") and not gpu.present("interpreter")


def test_a_host_that_may_not_launch_has_no_gpu(driver, monkeypatch):
    put(driver, 0x1b, INFORMATION)
    monkeypatch.setattr(gpu, "_launches", lambda: False)
    assert gpu.gpu_name() is None


@pytest.mark.parametrize(("title", "name"), [
    ("NVIDIA H200", "nvidia-h200"), ("NVIDIA H200 NVL", "nvidia-h200-nvl"),
    ("NVIDIA H100 80GB HBM3", "nvidia-h100"), ("NVIDIA H100 PCIe", "nvidia-h100-pcie"),
    ("NVIDIA A100-SXM4-80GB", "nvidia-a100"), ("NVIDIA A100-SXM4-40GB", "nvidia-a100-sxm4-40gb"),
    ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"),
])
def test_only_the_very_board_that_is_known_gets_its_name(title, name):
    assert gpu.name_of(Card(title, "580.95.05", UUID)) == name


def test_a_card_split_into_instances_is_other_hardware():
    assert gpu.name_of(Card("NVIDIA H200", "580.95.05", UUID, partitioned=True)) == "nvidia-h200-partitioned"


@pytest.mark.parametrize(("setting", "uuid"), [
    (None, "GPU-aa"), ("0", "GPU-aa"), ("1,0", "GPU-bb"), ("GPU-bb", "GPU-bb"), ("", None), ("-1", None), ("7", None),
    ("MIG-bb", None), ("GPU-cc", None),
])
def test_hidden_devices_stay_hidden(setting, uuid):
    found = gpu.visible((Card("NVIDIA H200", "1.1", "GPU-aa"), Card("NVIDIA H200", "1.1", "GPU-bb")), setting)
    assert (found.uuid if found else None) == uuid


def test_the_environment_class_of_a_device_names_gpu_driver_compiler_and_evaluator(driver):
    put(driver, 0x1b, INFORMATION)
    found = environment(Backend.TRITON, "nvidia-h200")
    device, by, compiler, evaluator = found.class_.split("/")
    assert (device, by, evaluator) == ("nvidia-h200", "driver-580", f"eval-{EVALUATOR_VERSION}")
    assert compiler == "triton-" + ".".join(found.packages["triton"].split(".")[:2])
    assert (found.gpu, found.driver) == ("NVIDIA H200", "580.95.05")
    assert environment(Backend.TRITON).class_.startswith("interpreter/")


class Library:
    """A management library with one card, of which ``lacks`` names calls that this driver does not have."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, reasons=0, lacks=(), running=()):
        self.reasons, self.lacks, self.running = reasons, lacks, running

    def _answer(self, name, value):
        if name in self.lacks:
            raise RuntimeError("Function Not Found")
        return value

    def nvmlSystemGetDriverVersion(self): return b"580.95.05"
    def nvmlDeviceGetCount(self): return 1
    def nvmlDeviceGetHandleByIndex(self, index): return "handle"
    def nvmlDeviceGetHandleByUUID(self, uuid): return "handle" if uuid == UUID else self._answer("", None)
    def nvmlDeviceGetName(self, handle): return "NVIDIA H200"
    def nvmlDeviceGetUUID(self, handle): return UUID
    def nvmlDeviceGetMigMode(self, handle): return self._answer("mig", (1, 1))
    def nvmlDeviceGetClockInfo(self, handle, kind): return {1: 1980, 2: 3201}[kind]
    def nvmlDeviceGetTemperature(self, handle, kind): return 41
    def nvmlDeviceGetPowerUsage(self, handle): return self._answer("power", 118_500)
    def nvmlDeviceGetCurrentClocksEventReasons(self, handle): return self._answer("events", self.reasons)
    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle): return self.reasons
    def nvmlDeviceGetComputeRunningProcesses(self, handle): return [SimpleNamespace(pid=pid) for pid in self.running]


def test_the_library_tells_names_and_partitions(driver, monkeypatch):
    monkeypatch.setattr(nvml, "library", lambda: Library())
    assert nvml.cards() == (Card("NVIDIA H200", "580.95.05", UUID, partitioned=True),)
    monkeypatch.setattr(nvml, "library", lambda: Library(lacks=("mig",)))
    assert nvml.cards() == (Card("NVIDIA H200", "580.95.05", UUID),)


def test_a_reading_holds_clocks_power_reasons_and_processes(monkeypatch):
    monkeypatch.setattr(nvml, "library", lambda: Library(reasons=0x4 | 0x40, running=(9, 7)))
    seen = nvml.read(UUID.removeprefix("GPU-").replace("-", "").upper())
    assert (seen.sm_mhz, seen.memory_mhz, seen.power_w, seen.celsius) == (1980, 3201, 118.5, 41)
    assert seen.slowed == ("hardware thermal slowdown",) and seen.capped and seen.processes == (7, 9)


def test_older_drivers_and_missing_answers_are_borne(monkeypatch):
    monkeypatch.setattr(nvml, "library", lambda: Library(reasons=0x8, lacks=("events", "power")))
    seen = nvml.read(UUID)
    assert seen.slowed == ("hardware slowdown",) and seen.power_w is None
    assert nvml.read("GPU-" + "0" * 32) is None
    monkeypatch.setattr(nvml, "library", lambda: None)
    assert nvml.read(UUID) is None


def test_processes_that_do_not_descend_from_the_evaluation_are_strangers(tmp_path):
    for pid, parent in ((500, 400), (400, 300), (300, 1), (900, 1)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a (b) c) S {parent} {pid} 0 0")
    assert nvml.strangers((500, 300), 300, tmp_path) == 0
    assert nvml.strangers((500, 900), 300, tmp_path) == 1
    (tmp_path / "900" / "cmdline").write_bytes(process.START.encode() + b"\0/srv\x005")
    assert nvml.strangers((500, 900), 300, tmp_path) == 0  # idle: whoever asks holds the device's lock
    assert nvml.strangers((77,), 300, tmp_path) == 0  # another namespace's number: our own launcher
    assert nvml.strangers((77, 78), 300, tmp_path) == 1


def test_asking_for_the_gpu_loads_no_framework():
    code = ("import sys; from harness.hardware import gpu; gpu.present('nvidia-h200'); "
            "print([m for m in ('torch', 'triton', 'numba') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
