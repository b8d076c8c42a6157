"""Launches in which some arguments stay, on a fake driver: what reaches it, and in which memory."""

from typing import Any

import pytest
from fake_driver import FakeDriver
from saved_kernel import describe
from test_tensor_map import MAP, encoded

from lowlp_runtime import KernelBinary, LowlpTypeError, LowlpValueError, Parameter, TensorMap, WorkspacePart
from lowlp_runtime.launcher import launcher_of

__all__ = ["encoded"]

FAR = 0x7F0000000000
KEPT = {"n": 1000, "weights": FAR, "factor": 1.0}
PARAMETERS = (
    Parameter("x", "pointer", "f16", 2),
    Parameter("weights", "pointer", "u32", 16),
    Parameter("out", "pointer", "i32", 4, writable=True),
    Parameter("n", "i32"),
    Parameter("factor", "f32"),
)


@pytest.fixture
def gpu(fake_driver: FakeDriver) -> FakeDriver:
    fake_driver.contexts = [100]
    return fake_driver


def with_parameters(kernel: KernelBinary, **changes: Any) -> KernelBinary:
    return KernelBinary(describe(parameters=PARAMETERS, **changes), cubins=kernel.cubins)


def test_the_others_come_in_the_order_of_the_parameters(kernel: KernelBinary, gpu: FakeDriver) -> None:
    gpu.slots = 5
    bound = launcher_of(with_parameters(kernel)).bind(KEPT)
    for x, out in ((2, 4), (6, 8)):
        bound.run((x, out), 0, 5)
    one = 0x3F800000
    assert [launch["values"] for launch in gpu.launches] == [(2, FAR, 4, 1000, one), (6, FAR, 8, 1000, one)]
    assert {(launch["grid"], launch["stream"]) for launch in gpu.launches} == {((8, 1, 1), 5)}


def test_the_others_come_in_an_order_of_names(kernel: KernelBinary, gpu: FakeDriver) -> None:
    gpu.slots = 5
    launcher = launcher_of(with_parameters(kernel))
    launcher.bind(KEPT, order=["out", "x"]).run((4, 2), 0, 5)
    assert gpu.launches[0]["values"] == (2, FAR, 4, 1000, 0x3F800000)
    for kept, order in ((KEPT, ["x"]), (KEPT, ["x", "out", "n"]), ({**KEPT, "m": 1}, None)):
        with pytest.raises(LowlpTypeError, match=r"arguments of add_one\(x, .*\): expected each once, got n, weights"):
            launcher.bind(kept, order)


def test_what_stays_is_checked_once_and_the_others_at_each_launch(kernel: KernelBinary, gpu: FakeDriver) -> None:
    launcher = launcher_of(with_parameters(kernel))
    with pytest.raises(LowlpValueError, match="weights: address 0x7f0000000008 must be a multiple of 16 bytes"):
        launcher.bind({**KEPT, "weights": FAR + 8})
    with pytest.raises(LowlpValueError, match=r"n: must be in -2\*\*31"):
        launcher.bind({**KEPT, "n": 2**31})
    bound = launcher.bind(KEPT)
    with pytest.raises(LowlpValueError, match="out: address 0x6 must be a multiple of 4 bytes"):
        bound.run((2, 6), 0, 0)
    assert gpu.launches == []


def test_maps_of_what_stays_are_made_once(kernel: KernelBinary, gpu: FakeDriver, encoded: list[Any]) -> None:
    maps = [MAP, TensorMap("weights", 4, (64, 32), (128,), (8, 8)), TensorMap("x", 2, (64,), (), (8,))]
    bound = launcher_of(with_parameters(kernel, tensor_maps=maps)).bind(KEPT)
    assert [call[2] for call in encoded] == [FAR]
    gpu.slots = 8
    found = []
    for x, out in ((32, 64), (32, 64), (32, 128), (32, 64)):
        bound.run((x, out), 0, 0)
        # Of a map the fake driver sees the first 8 bytes.
        found.append([number.to_bytes(8, "little")[:5] for number in gpu.launches[-1]["values"][5:]])
    assert [call[2] for call in encoded] == [FAR, 64, 32, 128]
    first = [b"map 2", b"map 1", b"map 3"]
    assert found == [first, first, [b"map 4", b"map 1", b"map 3"], first]


def test_a_launch_within_a_launch_has_memory_of_its_own(
    kernel: KernelBinary, gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another thread launches between the writing of values and the launch."""
    gpu.slots = 5
    bound = launcher_of(with_parameters(kernel)).bind(KEPT)
    original, inner = gpu.launch, [(6, 8), (2, 4)]

    def launch(*arguments: Any) -> None:
        if inner:
            bound.run(inner.pop(), 0, 0)
        original(*arguments)

    monkeypatch.setattr(gpu, "launch", launch)
    bound.run((10, 12), 0, 0)
    values = [launch["values"] for launch in gpu.launches]
    assert [(found[0], found[2]) for found in values] == [(6, 8), (2, 4), (10, 12)]


def test_the_workspace_stands_behind_the_parameters(kernel: KernelBinary, gpu: FakeDriver) -> None:
    gpu.slots = 6
    part = WorkspacePart("sums", ("*", ("param", "n"), 4))
    bound = launcher_of(with_parameters(kernel, workspace=(part,))).bind(KEPT)
    for stream in (7, 9, 7):
        bound.run((2, 4), 0, stream)
    first, second, third = (launch["values"] for launch in gpu.launches)
    assert first[:5] == second[:5] == (2, FAR, 4, 1000, 0x3F800000)
    assert first == third
    assert 0 != first[5] != second[5] != 0


def test_memory_is_used_again(kernel: KernelBinary, gpu: FakeDriver) -> None:
    bound = launcher_of(with_parameters(kernel)).bind(KEPT)
    for contexts in ([100], [], [101], [100]):
        gpu.contexts = contexts
        bound.run((2, 4), 0, 0)
        bound.run((2, 4), 1, 0)
    assert [launch["context"] for launch in gpu.launches] == [100, 101] * 4
    assert len(bound._blocks) == 1


def test_an_integer_that_decides_no_shape_is_a_value_like_others(kernel: KernelBinary, gpu: FakeDriver) -> None:
    parameters = (*PARAMETERS, Parameter("step", "i32", divisible_by=2))
    launcher = launcher_of(KernelBinary(describe(parameters=parameters), cubins=kernel.cubins))
    bound = launcher.bind({"n": 1000})
    gpu.slots = 6
    for step in (2, 4):
        bound.run((2, FAR, 4, 1.0, step), 0, 0)
    assert [launch["values"][5] for launch in gpu.launches] == [2, 4]
    for step, message in ((2**31, r"step: must be in -2\*\*31"), (3, "step: must be a multiple of 2, got 3")):
        with pytest.raises(LowlpValueError, match=message):
            bound.run((2, FAR, 4, 1.0, step), 0, 0)
    assert len(gpu.launches) == 2
