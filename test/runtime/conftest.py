"""Fixtures of the run time's tests, none of which needs a GPU."""

from collections.abc import Iterator

import pytest
from fake_driver import FakeDriver
from saved_kernel import kernel

from lowlp_runtime import device, device_workspace, module
from lowlp_runtime import driver as drivers

__all__ = ["fake_driver", "kernel"]


def _forget() -> None:
    for cached in (device._count, device._device, device.attribute, device._primary_context):
        cached.cache_clear()
    module._loaded.clear()
    device_workspace._buffers.clear()
    device_workspace._captured.clear()


@pytest.fixture
def fake_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """The package on a machine with two fake GPUs of compute capability 9.0."""
    fake = FakeDriver()
    for user in (drivers, device, module, device_workspace):
        monkeypatch.setattr(user, "driver", lambda: fake)
    monkeypatch.setattr("lowlp_runtime.stream.driver", lambda: fake)
    monkeypatch.setattr("lowlp_runtime.linkers.driver", lambda: fake)
    _forget()
    yield fake
    _forget()
