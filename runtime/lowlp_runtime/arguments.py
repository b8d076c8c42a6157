"""Arguments of a launch: bound to parameters, checked, and read as the numbers that the driver takes.

How a parameter's arguments are read is decided once, by `reader_of`.
"""

import operator
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from lowlp_runtime.array import DeviceArray, as_device_array, torch_element
from lowlp_runtime.description import INTEGER_KINDS, KernelDescription, Parameter
from lowlp_runtime.dlpack import is_contiguous
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError


class ArraysOfLaunch:
    """What the arrays of one launch say beside their addresses; readers write it down.

    stream            handle of the launch's stream
    device            the device of the arrays; None where no argument names one
    places            of each array that names its device: the parameter and that device
    producer_streams  streams whose work must come first
    owners            keeps alive what was made while reading
    """

    __slots__ = ("device", "owners", "places", "producer_streams", "stream", "tensor_class")

    def __init__(self, stream: int) -> None:
        self.stream = stream
        self.device: int | None = None
        self.places: list[tuple[str, int]] = []
        self.producer_streams: list[int] = []
        self.owners: list[object] = []
        # PyTorch is never imported: who holds a tensor has imported it.
        self.tensor_class: Any = getattr(sys.modules.get("torch"), "Tensor", ())

    def found_on(self, name: str, device: int) -> None:
        """Notes the device of an array. Raises `LowlpValueError` where another array is on another one."""
        self.places.append((name, device))
        if self.device is None:
            self.device = device
        elif self.device != device:
            places = ", ".join(f"{array} on {place}" for array, place in self.places)
            raise LowlpValueError(f"arrays must be on one CUDA device, got {places}")


Reader: TypeAlias = Callable[[Any, ArraysOfLaunch], "int | float"]


def reader_of(parameter: Parameter) -> Reader:
    """What turns an argument for the parameter into a number, or raises `LowlpTypeError` or `LowlpValueError`.

    Whether an address is aligned, and an integer in range, is not its business: see `check_address`, `check_integer`.
    """
    if parameter.is_pointer:
        return _pointer_reader(parameter)
    if parameter.is_integer:
        return lambda value, _: value if type(value) is int else _integer(parameter, value)
    return lambda value, _: _float(parameter, value)


def _pointer_reader(parameter: Parameter) -> Reader:
    name = parameter.name
    fitting: set[object] = set()  # the element types of PyTorch that fit, as far as they have been seen

    def read(value: Any, arrays: ArraysOfLaunch) -> int:
        if type(value) is int:
            if not 0 <= value < 2**64:
                raise LowlpValueError(f"{name}: an address must be in 0..2**64-1, got {value}")
            return value
        if isinstance(value, arrays.tensor_class) and value.is_cuda:
            if value.dtype not in fitting:
                _check_element(parameter, torch_element(value, name))
                fitting.add(value.dtype)
            if not value.is_contiguous():
                raise strided(name, tuple(value.shape), tuple(value.stride()), "x.contiguous()")
            arrays.found_on(name, value.get_device())
            address: int = value.data_ptr()
            if not address:
                _check_not_null(parameter, value.numel())
            return address
        array = as_device_array(value, name, arrays.stream)
        _check_array(parameter, array)
        if array.device is not None:
            arrays.found_on(name, array.device)
        if array.producer_stream is not None:
            arrays.producer_streams.append(array.producer_stream)
        arrays.owners.append(array.owner)
        return array.pointer

    return read


def bind(description: KernelDescription, arguments: Sequence[object] | Mapping[str, object]) -> Sequence[object]:
    """The arguments in the order of the parameters. Raises `LowlpTypeError` for a missing, unknown or superfluous
    one.
    """
    parameters = description.parameters
    if isinstance(arguments, list | tuple) and len(arguments) == len(parameters):
        return arguments
    names = [parameter.name for parameter in parameters]
    signature = f"{description.name}({', '.join(names)})"
    if isinstance(arguments, Mapping):
        missing = [name for name in names if name not in arguments]
        unknown = [str(name) for name in arguments if name not in names]
        if missing or unknown:
            parts = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"unknown: {', '.join(unknown)}"] * bool(
                unknown
            )
            raise LowlpTypeError(f"arguments of {signature}: {'; '.join(parts)}")
        return tuple(arguments[name] for name in names)
    if not isinstance(arguments, Sequence) or isinstance(arguments, str | bytes):
        raise LowlpTypeError(
            f"arguments of {signature}: expected a sequence or a mapping, got {type(arguments).__name__}"
        )
    if len(arguments) != len(names):
        raise LowlpTypeError(f"arguments of {signature}: expected {len(names)}, got {len(arguments)}")
    return tuple(arguments)


def strided(name: str, shape: Sequence[int], strides_elements: Sequence[int], copy: str) -> LowlpValueError:
    """What is wrong with an array whose elements have gaps or another order; `copy` says how to make one without."""
    return LowlpValueError(
        f"{name}: a kernel takes the elements as they lie in memory, row after row, and an array of shape "
        f"{tuple(shape)} with strides {tuple(strides_elements)} is not laid out so; pass {copy}. A kernel with strides "
        "among its parameters takes the memory as an array of one dimension"
    )


def check_address(parameter: Parameter, address: int) -> None:
    """Raises `LowlpValueError` unless the address is the multiple that the kernel's accesses need."""
    if address % parameter.alignment_bytes:
        raise LowlpValueError(
            f"{parameter.name}: address {address:#x} must be a multiple of {parameter.alignment_bytes} bytes"
        )


def check_integer(parameter: Parameter, number: int) -> None:
    """Raises `LowlpValueError` unless the argument fits its type, and is the multiple that the kernel was compiled
    for.
    """
    bits = INTEGER_KINDS[parameter.kind]
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise LowlpValueError(
            f"{parameter.name}: must be in -2**{bits - 1}..2**{bits - 1}-1 ({parameter.kind}), got {number}"
        )
    if number % parameter.divisible_by:
        raise LowlpValueError(f"{parameter.name}: must be a multiple of {parameter.divisible_by}, got {number}")


def _check_array(parameter: Parameter, array: DeviceArray) -> None:
    _check_element(parameter, array.dtype_name)
    if not is_contiguous(array.shape, array.strides_elements):
        raise strided(parameter.name, array.shape, array.strides_elements, "a copy of it")
    if array.read_only and parameter.writable:
        raise LowlpValueError(f"{parameter.name}: the kernel writes to it, and the array is read-only")
    if not array.pointer:
        _check_not_null(parameter, array.size)


def _check_element(parameter: Parameter, found: str) -> None:
    wanted = parameter.element
    if found != wanted and not (found[1:] == wanted[1:] and {found[0], wanted[0]} == {"i", "u"}):
        raise LowlpTypeError(f"{parameter.name}: expected elements of type {wanted}, got {found}")


def _check_not_null(parameter: Parameter, size: int) -> None:
    if size:
        raise LowlpValueError(f"{parameter.name}: array of {size} elements at address 0")


def _integer(parameter: Parameter, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise LowlpTypeError(
            f"{parameter.name}: expected an int ({parameter.kind}), got {type(value).__name__}"
        ) from None


def _float(parameter: Parameter, value: Any) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise LowlpTypeError(f"{parameter.name}: expected a float ({parameter.kind}), got {type(value).__name__}")
    try:
        number = float(value)
        if parameter.kind == "f32":
            struct.pack("<f", number)
    except OverflowError:
        raise LowlpValueError(f"{parameter.name}: {value!r} is out of range of {parameter.kind}") from None
    return number
