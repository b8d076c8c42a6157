"""What estimates know of a GPU comes from the driver, and decides which schedule a product takes."""

import dataclasses
from pathlib import Path

import pytest
from test_measured_schedules import entry, write

from lowlp.kernels.linear import measured
from lowlp.kernels.linear.candidates import candidates, for_rows
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.estimates import estimated_us
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.schedules import device as devices
from lowlp.schedules.device import H200, Device, device_ahead, device_from, device_like, device_of

PCIE = "NVIDIA H100 PCIe"
OF_H200 = {
    "MULTIPROCESSOR_COUNT": 132,
    "MEMORY_CLOCK_RATE": 3201000,
    "GLOBAL_MEMORY_BUS_WIDTH": 6144,
    "CLOCK_RATE": 1980000,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
}
OF_PCIE = {**OF_H200, "MULTIPROCESSOR_COUNT": 114, "MEMORY_CLOCK_RATE": 1593000, "GLOBAL_MEMORY_BUS_WIDTH": 5120}
OF_PCIE["CLOCK_RATE"] = 1755000
SPEC = LinearSpec(n=14336, k=4096, codec="int4 g128 f16", aligned=True)
SMALLER = device_from("sm_90a", OF_PCIE)


def test_figures_are_those_that_were_measured_where_they_were() -> None:
    found = device_from("sm_90a", OF_H200)
    assert found.multiprocessors == H200.multiprocessors and found.shared_bytes == H200.shared_bytes
    assert found.bytes_per_us == pytest.approx(H200.bytes_per_us, rel=0.01)
    assert found.cycles_per_us == pytest.approx(H200.cycles_per_us, rel=0.01)
    assert SMALLER.bytes_per_us == pytest.approx(1.74e6, rel=0.01)


def test_what_the_driver_does_not_tell_is_as_on_an_h200() -> None:
    assert device_from("sm_80", {"CLOCK_RATE": 0, "MEMORY_CLOCK_RATE": 1}) == device_like("sm_80")
    assert device_from("sm_90a", {"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 99 * 1024}).shared_bytes == 99 * 1024


@pytest.fixture
def pcie_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, found in {
        "arch_of": lambda ordinal: "sm_90a",
        "attribute": lambda name, ordinal: OF_PCIE[name],
        "device_name": lambda ordinal: PCIE if ordinal else "NVIDIA H200",
        "cuda_device_count": lambda: 2,
        "current_device": lambda: 1,
    }.items():
        monkeypatch.setattr(devices, name, found)
    monkeypatch.setattr(devices, "device_of", device_of.__wrapped__)


@pytest.mark.usefixtures("pcie_here")
def test_devices_that_are_here() -> None:
    assert devices.device_of(0) is H200
    assert devices.device_of(1) == device_ahead("sm_90a", 132, PCIE) == SMALLER
    assert device_ahead("sm_90a", 114) == dataclasses.replace(H200, multiprocessors=114)


def test_devices_that_were_measured_and_are_elsewhere() -> None:
    found = device_ahead("sm_90a", 132, "NVIDIA H100 80GB HBM3")
    assert 0.6 * H200.bytes_per_us < found.bytes_per_us < 0.8 * H200.bytes_per_us
    assert dataclasses.replace(found, bytes_per_us=H200.bytes_per_us) == H200
    assert device_ahead("sm_80", 108, "NVIDIA H100 80GB HBM3") == device_ahead("sm_80", 108)


def test_another_gpu_takes_another_schedule() -> None:
    def alone(device: Device) -> Schedule:
        return schedule_for(SPEC, 1, device, among=())

    # As many rows a block as give each of the SMs a tile.
    assert (alone(H200).rows, alone(SMALLER).rows) == (112, 128)
    for m in (1, 64, 1024):
        us = [estimated_us(SPEC, schedule_for(SPEC, m, device, among=()), m, device) for device in (H200, SMALLER)]
        assert 1.1 * us[0] < us[1]


def test_what_another_gpu_took_is_held_against_the_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = max(candidates(SPEC, 64, SMALLER), key=lambda found: estimated_us(SPEC, found, 64, SMALLER))
    monkeypatch.setattr(measured, "_shipped", tuple)
    estimated, taken = schedule_for(SPEC, 64, SMALLER), for_rows(SPEC, slow, 64, SMALLER)
    for gpu, wanted in (("NVIDIA H200", estimated), (PCIE, taken)):
        monkeypatch.setattr(measured, "_added", ())
        measured.use_tuned(write(tmp_path / "file.json", gpu, entry(slow, SPEC)))
        assert schedule_for(SPEC, 64, SMALLER, gpu=PCIE) == wanted != (taken if wanted == estimated else estimated)
