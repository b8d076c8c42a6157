"""Tensor maps, on a fake driver: what a launch asks for, what reaches the kernel, and what is refused."""

import ctypes
import json
from types import SimpleNamespace
from typing import Any

import pytest
from fake_driver import FakeDriver
from saved_kernel import describe

from lowlp_runtime import (
    KernelBinary,
    KernelDescription,
    LowlpTypeError,
    LowlpValueError,
    TensorMap,
    launch,
    tensor_map,
)

MAP = TensorMap("out", 4, (("param", "n"), 48), (("*", ("param", "n"), 32),), (16, 32), 128)


class FakeMap:
    """128 bytes at an address, like CUtensorMap."""

    def __init__(self, text: bytes) -> None:
        self.memory = ctypes.create_string_buffer(text.ljust(128, b"\0"), 128)

    def getPtr(self) -> int:
        return ctypes.addressof(self.memory)


@pytest.fixture
def encoded(fake_driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The arguments of every call of cuTensorMapEncodeTiled."""
    calls: list[tuple[Any, ...]] = []

    def encode(*arguments: Any) -> tuple[int, FakeMap]:
        calls.append(arguments)
        return fake_driver.CUresult.CUDA_SUCCESS, FakeMap(b"map %d" % len(calls))

    names = {
        "CUtensorMapDataType": [f"DATA_TYPE_UINT{bits}" for bits in (8, 16, 32)],
        "CUtensorMapSwizzle": ["SWIZZLE_NONE", "SWIZZLE_32B", "SWIZZLE_64B", "SWIZZLE_128B"],
        "CUtensorMapInterleave": ["INTERLEAVE_NONE"],
        "CUtensorMapL2promotion": ["L2_PROMOTION_L2_256B"],
        "CUtensorMapFloatOOBfill": ["FLOAT_OOB_FILL_NONE"],
    }
    for enum, members in names.items():
        values = {f"CU_TENSOR_MAP_{name}": name for name in members}
        monkeypatch.setattr(fake_driver, enum, SimpleNamespace(**values), raising=False)
    monkeypatch.setattr(fake_driver, "cuuint64_t", int, raising=False)
    monkeypatch.setattr(fake_driver, "cuuint32_t", int, raising=False)
    monkeypatch.setattr(fake_driver, "cuTensorMapEncodeTiled", encode, raising=False)
    monkeypatch.setattr(tensor_map, "driver", lambda: fake_driver)
    tensor_map._encode.cache_clear()
    return calls


def with_maps(kernel: KernelBinary, *maps: TensorMap) -> KernelBinary:
    return KernelBinary(describe(tensor_maps=maps), cubins=kernel.cubins)


def test_a_launch_encodes_each_map_once(kernel: KernelBinary, encoded: list[Any], fake_driver: FakeDriver) -> None:
    address = 1 << 39
    binary = with_maps(kernel, MAP)
    launch(binary, [address, 100])
    launch(binary, [address, 100])
    assert encoded == [
        ("DATA_TYPE_UINT32", 2, address, [48, 100], [3200], [32, 16], [1, 1], "INTERLEAVE_NONE", "SWIZZLE_128B",
         "L2_PROMOTION_L2_256B", "FLOAT_OOB_FILL_NONE"),
    ]  # fmt: skip
    launch(binary, [address, 108])
    assert [call[3] for call in encoded] == [[48, 100], [48, 108]]
    assert [entry["n"] for entry in fake_driver.launches] == [100, 100, 108]


def test_the_map_is_the_last_argument(
    kernel: KernelBinary, encoded: list[Any], fake_driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    original = fake_driver.launch

    def look(config: Any, function: int, pointers: int) -> None:
        slots = (ctypes.c_void_p * 3).from_address(pointers)
        seen.append(ctypes.string_at(slots[2] or 0, 5))
        original(config, function, pointers)

    monkeypatch.setattr(fake_driver, "launch", look)
    launch(with_maps(kernel, MAP), [1 << 39, 64])
    assert seen == [b"map 1"] and len(encoded) == 1


def test_one_dimension_has_no_stride(kernel: KernelBinary, encoded: list[Any]) -> None:
    launch(with_maps(kernel, TensorMap("out", 1, (("param", "n"),), (), (256,))), [1 << 39, 64])
    assert encoded[0][:6] == ("DATA_TYPE_UINT8", 1, 1 << 39, [64], [16], [256])


def test_an_empty_grid_needs_no_map(kernel: KernelBinary, encoded: list[Any]) -> None:
    launch(with_maps(kernel, MAP), [1 << 39, 0])
    assert encoded == []


def test_tensors_without_a_map_are_refused(kernel: KernelBinary, encoded: list[Any]) -> None:
    with pytest.raises(
        LowlpValueError, match=r"^out: strides of the tensor must be multiples of 16 bytes .*got \[20\]"
    ):
        launch(with_maps(kernel, TensorMap("out", 4, (8, 5), (("*", ("param", "n"), 4),), (8, 4))), [1 << 39, 5])
    with pytest.raises(LowlpValueError, match=r"^out: extents of the tensor must be in 1\.\.2\*\*32, got \[-3, 64\]"):
        launch(with_maps(kernel, TensorMap("out", 4, (("+", ("param", "n"), -8), 64), (256,), (8, 8))), [1 << 39, 5])
    assert encoded == []


def test_a_description_keeps_its_maps(kernel: KernelBinary) -> None:
    description = describe(tensor_maps=[MAP])
    data = json.loads(json.dumps(description.to_json()))
    assert KernelDescription.from_json(data) == description
    assert KernelDescription.from_json(data).tensor_maps == (MAP,)
    assert "tensor_maps" not in describe().to_json()
    saved = KernelBinary(description, cubins=kernel.cubins)
    assert KernelBinary.from_bytes(saved.to_bytes()).description.tensor_maps == (MAP,)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"element_bytes": 8}, "element_bytes must be 1, 2 or 4, got 8"),
        ({"box": (300, 32)}, r"box: extents must be in 1\.\.256, got 300"),
        ({"box": (16,)}, "expected 1 to 5 extents, as many of the box and one stride less, got 2, 1 and 1"),
        ({"swizzle": 64}, "swizzle must be 0, or 32, 64 or 128 as the 128 bytes of a row, got 64"),
    ],
)
def test_wrong_maps_are_refused(changes: dict[str, Any], text: str) -> None:
    fields = {name: getattr(MAP, name) for name in TensorMap.__dataclass_fields__}
    with pytest.raises(LowlpValueError, match=text):
        TensorMap(**{**fields, **changes})
    for name in ("parameter", "extents", "box"):
        with pytest.raises(LowlpTypeError, match=f"tensor map: {name}: expected"):
            TensorMap(**{**fields, name: 5})


def test_maps_must_fit_the_parameters() -> None:
    with pytest.raises(LowlpValueError, match="tensor_maps: 'n' is no pointer; pointers: out"):
        describe(tensor_maps=[TensorMap("n", 4, (4, 4), (16,), (4, 4))])
    with pytest.raises(LowlpValueError, match="tensor_maps: 'k' is no integer parameter"):
        describe(tensor_maps=[TensorMap("out", 4, (("param", "k"), 4), (16,), (4, 4))])
    with pytest.raises(LowlpTypeError, match="tensor_maps: expected a sequence of TensorMap"):
        describe(tensor_maps=[4])
