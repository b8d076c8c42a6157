"""Shared memory of products that may begin early: no multiprocessor takes more blocks than an even share."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import lowlp
from lowlp_runtime.even_blocks import reserved_shared_bytes

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))
from fake_driver import FakeDriver, fake_driver
from fake_torch import FakeDevice, FakeTensor, FakeTorch, fake_torch
from test_tensor_map import encoded

__all__ = ["encoded", "fake_driver", "fake_torch"]

PER_SM, RESERVED, MULTIPROCESSORS = 233472, 1024, 132


def fitting(shared_bytes: int) -> int:
    """How many blocks a multiprocessor has room for."""
    return PER_SM // (shared_bytes + RESERVED)


def test_room_for_an_even_share(fake_torch: FakeTorch, fake_driver: FakeDriver, encoded: list[object]) -> None:
    """Of a launch; of more blocks than are resident, and where it begins after the one in front, what it needs."""
    fake_driver.contexts = [100]
    qw = lowlp.QuantizedTensor(
        np.zeros((4096, 256), np.uint8), dtype="int4", scales=np.ones((4096, 2), np.float16), group_size=128
    )
    kernel = lowlp.compile_linear(n=4096, k=256, m=(1, 1), weight="int4", dependent_launch=True)
    description = kernel.description
    fake_driver.slots = len(description.parameters)
    for alone in (False, True):
        x = FakeTensor((1, 256), fake_torch.float16, FakeDevice(0))  # type: ignore[attr-defined]
        if alone:
            with lowlp.no_dependent_launch():
                lowlp.linear(x, qw)
        else:
            lowlp.linear(x, qw)
        launch = fake_driver.launches[-1]
        blocks = launch["grid"][0]
        share = -(-blocks // MULTIPROCESSORS)
        assert fitting(description.shared_bytes) > share, "has room for more by itself"
        assert (fitting(launch["shared_bytes"]) == share) is not alone
        assert alone or share * (launch["shared_bytes"] + RESERVED) <= PER_SM
    # More blocks than are resident.
    many = MULTIPROCESSORS * (fitting(description.shared_bytes) + 1)
    assert reserved_shared_bytes(description, many, 0) == description.shared_bytes
    assert reserved_shared_bytes(replace(description, dependent_launch=False), 1, 0) == description.shared_bytes
    # And the driver lets blocks ask for it.
    dynamic = [rest[-1] for name, *rest in fake_driver.calls if name == "cuFuncSetAttribute"]
    assert max(dynamic) >= max(launch["shared_bytes"] for launch in fake_driver.launches)
