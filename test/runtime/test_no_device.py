"""Without a driver or a device: counting gives 0, everything else says why."""

import importlib
from collections.abc import Iterator
from types import ModuleType

import pytest
from fake_arrays import DLPackArray

from lowlp_runtime import (
    DeviceError,
    KernelBinary,
    LowlpValueError,
    as_device_array,
    compute_capability,
    cuda_device_count,
    launch,
    load_kernel,
    measure,
    why_no_device,
)
from lowlp_runtime import device as devices
from lowlp_runtime import driver as drivers


@pytest.fixture(params=["no bindings", "no libcuda"])
def no_driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    class Bindings(ModuleType):
        def cuInit(self, flags: int) -> None:
            raise RuntimeError("libcuda.so.1 not found")

    def import_module(name: str) -> ModuleType:
        if request.param == "no bindings":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return Bindings(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    drivers.driver.cache_clear()
    devices._count.cache_clear()
    yield {"no bindings": "pip install cuda-bindings", "no libcuda": r"libcuda\.so\.1 not found"}[str(request.param)]
    drivers.driver.cache_clear()


def test_no_device(no_driver: str, kernel: KernelBinary) -> None:
    assert cuda_device_count() == 0
    for action in (
        lambda: compute_capability(),
        lambda: load_kernel(kernel),
        lambda: launch(kernel, [16, 1]),
        lambda: measure(lambda: None),
    ):
        with pytest.raises(DeviceError, match=no_driver):
            action()
    assert why_no_device()


def test_an_array_on_the_host_is_told_that_there_is_no_device(no_driver: str) -> None:
    with pytest.raises(LowlpValueError, match=f"x: .* got one on CPU; this machine has no CUDA device .*{no_driver}"):
        as_device_array(DLPackArray(device=(1, 0)), "x")


def test_measure_checks_its_counts() -> None:
    message = "repeats and fills must be at least 1 and warmups at least 0, got "
    with pytest.raises(LowlpValueError, match=f"{message}0, 1 and 5"):
        measure(lambda: None, repeats=0)
    with pytest.raises(LowlpValueError, match=f"{message}30, 0 and 5"):
        measure(lambda: None, fills=0)
