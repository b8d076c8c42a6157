"""Reading arrays of other libraries: CUDA array interface, DLPack, and what is refused."""

import pytest
from fake_arrays import DLPackArray, InterfaceArray

from lowlp_runtime import DeviceArray, LowlpTypeError, LowlpValueError, as_device_array


@pytest.mark.parametrize(
    ("typestr", "name"),
    [("<f2", "f16"), ("<f4", "f32"), ("<f8", "f64"), ("|u1", "u8"), ("|i1", "i8"), ("<i8", "i64"), ("|b1", "bool")],
)
def test_interface_types(typestr: str, name: str) -> None:
    assert as_device_array(InterfaceArray(typestr=typestr)).dtype_name == name


def test_interface_strides_become_elements() -> None:
    array = as_device_array(InterfaceArray(shape=(4, 6), typestr="<f2", strides=(64, 2)))
    assert (array.shape, array.strides_elements, array.size) == ((4, 6), (32, 1), 24)
    assert as_device_array(InterfaceArray(shape=(4, 6, 2))).strides_elements == (12, 2, 1)
    assert array.device is None


def test_interface_stream_and_read_only() -> None:
    array = as_device_array(InterfaceArray(read_only=True, more={"stream": 1234}))
    assert array.read_only
    assert array.producer_stream == 1234


@pytest.mark.parametrize("typestr", [">f4", "<c8", "<V2", "|f1", "<U1"])
def test_interface_refuses_types(typestr: str) -> None:
    with pytest.raises(LowlpTypeError, match=f"x: typestr '{typestr}' is not supported".replace("|", r"\|")):
        as_device_array(InterfaceArray(typestr=typestr), "x")


def test_interface_refuses_odd_strides_masks_and_nonsense() -> None:
    with pytest.raises(LowlpValueError, match=r"x: strides .* do not fit elements of 4 bytes"):
        as_device_array(InterfaceArray(shape=(2, 2), strides=(10, 4)), "x")
    with pytest.raises(LowlpTypeError, match="x: masked arrays"):
        as_device_array(InterfaceArray(more={"mask": object()}), "x")
    with pytest.raises(LowlpTypeError, match="x: malformed __cuda_array_interface__"):
        as_device_array(InterfaceArray(more={"data": None}), "x")


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize(
    ("code", "bits", "name"),
    [
        (0, 32, "i32"),
        (1, 8, "u8"),
        (2, 16, "f16"),
        (4, 16, "bf16"),
        (6, 8, "bool"),
        (10, 8, "f8e4m3"),
        (12, 8, "f8e5m2"),
    ],
)
def test_dlpack(versioned: bool, code: int, bits: int, name: str) -> None:
    array = as_device_array(DLPackArray(code, bits, (3, 5), byte_offset=64, versioned=versioned))
    assert array == DeviceArray(0x7F0000000040, (3, 5), (5, 1), name, 1)


def test_dlpack_passes_the_stream_on() -> None:
    source = DLPackArray(strides=(1,), read_only=True)
    assert as_device_array(source, stream=77).read_only
    as_device_array(source, stream=0)
    assert source.streams == [77, 1]


@pytest.mark.parametrize(("code", "bits"), [(5, 64), (2, 8), (17, 4), (0, 4)])
def test_dlpack_refuses_types(code: int, bits: int) -> None:
    with pytest.raises(LowlpTypeError, match=rf"element type \(code {code}, {bits} bits, 1 lanes\) is not supported"):
        as_device_array(DLPackArray(code, bits))


def test_dlpack_refuses_later_versions() -> None:
    with pytest.raises(LowlpTypeError, match=r"version 2\.0; expected 1\.x"):
        as_device_array(DLPackArray(major=2))


def test_host_memory_is_refused() -> None:
    with pytest.raises(LowlpValueError, match="x: expected an array on a CUDA device, got one on CPU"):
        as_device_array(DLPackArray(device=(1, 0)), "x")
    numpy = pytest.importorskip("numpy")
    with pytest.raises(LowlpValueError, match="x: expected an array on a CUDA device, got one on CPU"):
        as_device_array(numpy.zeros(3), "x")


def test_capsules_of_numpy_are_read() -> None:
    numpy = pytest.importorskip("numpy")
    from lowlp_runtime.dlpack import read_capsule

    matrix = numpy.arange(12, dtype=numpy.float16).reshape(3, 4)[:, ::2]
    for options in ({}, {"max_version": (1, 0)}):
        found = read_capsule(matrix.__dlpack__(**options))
        assert (found.shape, found.strides_elements, found.dtype_name) == ((3, 2), (4, 2), "f16")
        assert found.pointer == matrix.ctypes.data


def test_torch_tensors_on_the_host_are_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(LowlpValueError, match="x: expected a tensor on a CUDA device, got one on 'cpu'"):
        as_device_array(torch.zeros(3, dtype=torch.bfloat16), "x")


@pytest.mark.parametrize("value", [None, [1, 2], "text", 3.0])
def test_other_objects_are_refused(value: object) -> None:
    with pytest.raises(LowlpTypeError, match=f"x: expected a CUDA array .* got {type(value).__name__}"):
        as_device_array(value, "x")
