"""Kernels that wait by themselves for the one in front: launched early, unless that is switched off."""

import json
import threading
from typing import Any

import pytest
from fake_driver import FakeDriver
from saved_kernel import describe

from lowlp_runtime import KernelBinary, KernelDescription, LowlpTypeError, WorkspacePart, launch, no_dependent_launch

FAR = 0x7F0000000000


def waiting(kernel: KernelBinary, **changes: Any) -> KernelBinary:
    return KernelBinary(describe(dependent_launch=True, **changes), cubins=kernel.cubins)


def started_early(gpu: FakeDriver) -> list[bool]:
    return ["early" in entry for entry in gpu.launches]


def test_it_is_launched_early_with_the_same_arguments(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    for binary in (kernel, waiting(kernel)):
        launch(binary, [FAR, 1000], stream=5)
        launch(binary, [FAR + 256, 10], stream=6)
    assert started_early(fake_driver) == [False, False, True, True]
    plain, early = fake_driver.launches[:2], fake_driver.launches[2:]
    assert [{**entry, "early": True} for entry in plain] == early


def test_it_can_be_switched_off(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    binary = waiting(kernel)

    @no_dependent_launch()
    def within_a_function() -> None:
        launch(binary, [FAR, 1])

    launch(binary, [FAR, 1])
    with no_dependent_launch():
        launch(binary, [FAR, 1])
        with no_dependent_launch():
            launch(binary, [FAR, 1])
        launch(binary, [FAR, 1])
        other = threading.Thread(target=launch, args=(binary, [FAR, 1]))
        other.start()
        other.join()
    within_a_function()
    launch(binary, [FAR, 1])
    assert started_early(fake_driver) == [True, False, False, False, True, False, True]


def test_an_error_ends_the_block(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    with pytest.raises(RuntimeError, match="mine"), no_dependent_launch():
        raise RuntimeError("mine")
    launch(waiting(kernel), [FAR, 1])
    assert started_early(fake_driver) == [True]


def test_code_for_older_architectures_cannot_wait(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    launch(KernelBinary(describe(dependent_launch=True), ptx={"sm_80": kernel.ptx["sm_80"]}), [FAR, 1])
    assert started_early(fake_driver) == [False]


def test_with_a_workspace(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    fake_driver.reads_workspace = True
    part = WorkspacePart("locks", 4, zeroed=True)
    launch(waiting(kernel, workspace=(part,)), [FAR, 1], stream=5)
    (begin,) = {call[1] for call in fake_driver.named("cuMemsetD8Async")}
    assert fake_driver.launches[0]["workspace"] == begin + 256
    assert started_early(fake_driver) == [True]


def test_saved_kernels_say_so(kernel: KernelBinary) -> None:
    data = json.loads(json.dumps(waiting(kernel).description.to_json()))
    assert KernelDescription.from_json(data).dependent_launch
    assert KernelBinary.from_bytes(waiting(kernel).to_bytes()).description.dependent_launch
    assert "dependent_launch" not in describe().to_json()
    assert not KernelDescription.from_json(describe().to_json()).dependent_launch
    assert waiting(kernel).content_hash != KernelBinary(describe(), cubins=kernel.cubins).content_hash
    with pytest.raises(LowlpTypeError, match="dependent_launch: expected bool, got 1"):
        KernelDescription.from_json({**describe().to_json(), "dependent_launch": 1})
