"""Launching a kernel: arguments checked against its description, then one cuLaunchKernel.

A launch synchronises nothing and allocates nothing on the device, so it can be captured in a CUDA graph. (The first
launch in a context loads the kernel; `load_kernel` does that ahead. A kernel with a workspace may allocate one for its
stream or capture, see `lowlp_runtime.device_workspace`.) Arrays are ordered by the stream alone, as with
any other asynchronous library: keep them alive until the work is done, or let their library's allocator know the
stream.
"""

import ctypes
import operator
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lowlp_runtime import device as devices
from lowlp_runtime.array import DeviceArray, as_device_array
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.description import INTEGER_KINDS, KernelDescription, Parameter
from lowlp_runtime.device_workspace import workspace_pointer
from lowlp_runtime.driver import call
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.module import LoadedKernel, load_in_current_context
from lowlp_runtime.stream import current_stream, order_after, stream_handle
from lowlp_runtime.tensor_map import add_to_pointers

_SLOT_BYTES = 8


class PreparedArguments(NamedTuple):
    """Arguments in the form that the driver takes.

    slots             8 bytes for each parameter, see `KernelDescription.argument_struct`
    integers          the integer arguments by name, for the grid
    device            the device of the arrays; None where no argument names one
    address           where no array names a device: the first pointer that is not null, for the driver to say; else 0
    producer_streams  streams whose work must come first
    owners            keeps alive what was made while reading the arguments
    """

    slots: bytes
    integers: dict[str, int]
    device: int | None
    address: int
    producer_streams: tuple[int, ...]
    owners: tuple[object, ...]


class _Buffers(threading.local):
    """One thread's memory for the values of a launch and the pointers to them. It is used anew by every launch: the
    driver copies the values before cuLaunchKernel returns."""

    def __init__(self) -> None:
        self.grow(32)

    def grow(self, count: int) -> None:
        self.count = count
        self.slots = ctypes.create_string_buffer(_SLOT_BYTES * count)
        base = ctypes.addressof(self.slots)
        self.pointers = (ctypes.c_void_p * count)(*(base + _SLOT_BYTES * i for i in range(count)))
        self.pointers_address = ctypes.addressof(self.pointers)


_buffers = _Buffers()


def launch(
    kernel: KernelBinary,
    arguments: Sequence[object] | Mapping[str, object],
    stream: object = None,
) -> None:
    """Puts one run of the kernel on a stream, and returns at once.

    kernel     what to run; code for the arrays' device is chosen and loaded when first needed
    arguments  one for each parameter, in order or by name. Pointers: a CUDA array of the element type (signed and
               unsigned integers of one width are interchangeable), or an address as an int. Integers and floats:
               Python's or numpy's.
    stream     an int handle, a stream of cuda-python or PyTorch, an object with `__cuda_stream__`; None: PyTorch's
               current stream where an argument is a CUDA tensor, else the legacy default stream

    Where the grid has no blocks (an M of 0, say) nothing is launched. Raises `LowlpTypeError` and `LowlpValueError`,
    which name the parameter, for arguments that do not fit the description, `DeviceError` for what the driver refuses.
    """
    description = kernel.description
    values = bind(description, arguments)
    handle = current_stream(values) if stream is None else stream_handle(stream)
    prepared = prepare(description, values, handle)
    x, y, z = description.evaluate_grid(prepared.integers)
    if not (x and y and z):
        return
    ordinal = prepared.device
    if ordinal is None:
        ordinal = devices.device_of_pointer(prepared.address) if prepared.address else devices.current_device()
    with devices.on_device(ordinal):
        loaded = load_in_current_context(kernel, ordinal)
        for producer in prepared.producer_streams:
            order_after(handle, producer)
        maps = _encode_tensor_maps(description, prepared)
        if not description.workspace:
            _launch(loaded, (x, y, z), prepared.slots, maps, handle)
            return
        with workspace_pointer(description.lay_out_workspace(prepared.integers), handle) as pointer:
            _launch(loaded, (x, y, z), prepared.slots + struct.pack("<Q", pointer), maps, handle)


def _launch(
    loaded: LoadedKernel, grid: tuple[int, int, int], slots: bytes, maps: Sequence[object], stream: int
) -> None:
    """cuLaunchKernel with the values in `slots`, 8 bytes each, and behind them the tensor maps."""
    description = loaded.binary.description
    count = len(slots) // _SLOT_BYTES
    if count > _buffers.count:
        _buffers.grow(count)
    ctypes.memmove(_buffers.slots, slots, len(slots))
    pointers, pointers_address = None, _buffers.pointers_address
    if maps:
        # Kept until the driver has copied what it points to.
        base = ctypes.addressof(_buffers.slots)
        pointers = add_to_pointers([base + _SLOT_BYTES * i for i in range(count)], maps)
        pointers_address = ctypes.addressof(pointers)
    call(
        "cuLaunchKernel",
        loaded.function,
        *grid,
        *description.block,
        description.shared_bytes,
        stream,
        pointers_address,
        0,
    )


def _encode_tensor_maps(description: KernelDescription, prepared: PreparedArguments) -> list[object]:
    """The tensor maps of a launch, in the order in which the kernel takes them."""
    names = [parameter.name for parameter in description.parameters]
    maps = []
    for tensor_map in description.tensor_maps:
        (address,) = struct.unpack_from("<Q", prepared.slots, _SLOT_BYTES * names.index(tensor_map.parameter))
        maps.append(tensor_map.encode(address, prepared.integers))
    return maps


def bind(description: KernelDescription, arguments: Sequence[object] | Mapping[str, object]) -> tuple[object, ...]:
    """The arguments in the order of the parameters. Raises `LowlpTypeError` for a missing, unknown or superfluous
    one.
    """
    parameters = description.parameters
    if isinstance(arguments, list | tuple) and len(arguments) == len(parameters):
        return tuple(arguments)
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


def prepare(description: KernelDescription, values: Sequence[object], stream: int) -> PreparedArguments:
    """Checks bound arguments against the description and packs them; see `launch` for what is raised."""
    packed: list[int | float] = []
    integers: dict[str, int] = {}
    ordinal: int | None = None
    arrays: list[DeviceArray] = []
    for parameter, value in zip(description.parameters, values, strict=True):
        kind = parameter.kind
        if kind == "pointer":
            if type(value) is int:
                pointer = value
                if not 0 <= pointer < 2**64:
                    raise LowlpValueError(f"{parameter.name}: an address must be in 0..2**64-1, got {pointer}")
            else:
                array = as_device_array(value, parameter.name, stream)
                pointer = array.pointer
                _check_array(parameter, array)
                arrays.append(array)
                if ordinal is None:
                    ordinal = array.device
            if pointer % parameter.alignment_bytes:
                raise LowlpValueError(
                    f"{parameter.name}: address {pointer:#x} must be a multiple of {parameter.alignment_bytes} bytes"
                )
            packed.append(pointer)
        elif kind in INTEGER_KINDS:
            integers[parameter.name] = number = _integer(parameter, value)
            packed.append(number)
        else:
            packed.append(_float(parameter, value))
    for array in arrays:
        if array.device is not None and array.device != ordinal:
            raise LowlpValueError(f"arrays must be on one CUDA device, got {_places(description, values, stream)}")
    return PreparedArguments(
        description.argument_struct.pack(*packed),
        integers,
        ordinal,
        _first_address(description, packed) if ordinal is None else 0,
        tuple(dict.fromkeys(array.producer_stream for array in arrays if array.producer_stream is not None)),
        tuple(array.owner for array in arrays),
    )


def _first_address(description: KernelDescription, packed: Sequence[int | float]) -> int:
    pointers = (int(value) for p, value in zip(description.parameters, packed, strict=True) if p.is_pointer)
    return next((pointer for pointer in pointers if pointer), 0)


def _places(description: KernelDescription, values: Sequence[object], stream: int) -> str:
    pairs = [(p, value) for p, value in zip(description.parameters, values, strict=True) if p.is_pointer]
    named = [(p.name, as_device_array(value, p.name, stream)) for p, value in pairs if not isinstance(value, int)]
    return ", ".join(f"{name} on {array.device}" for name, array in named if array.device is not None)


def _check_array(parameter: Parameter, array: DeviceArray) -> None:
    wanted, dtype = parameter.element, array.dtype_name
    if dtype != wanted and not (dtype[1:] == wanted[1:] and {dtype[0], wanted[0]} == {"i", "u"}):
        raise LowlpTypeError(f"{parameter.name}: expected elements of type {wanted}, got {dtype}")
    if array.read_only and parameter.writable:
        raise LowlpValueError(f"{parameter.name}: the kernel writes to it, and the array is read-only")
    if not array.pointer and array.size:
        raise LowlpValueError(f"{parameter.name}: array of {array.size} elements at address 0")


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


def _integer(parameter: Parameter, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise LowlpTypeError(
            f"{parameter.name}: expected an int ({parameter.kind}), got {type(value).__name__}"
        ) from None
    check_integer(parameter, number)
    return number


def _float(parameter: Parameter, value: object) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise LowlpTypeError(f"{parameter.name}: expected a float ({parameter.kind}), got {type(value).__name__}")
    try:
        number = float(value)
        if parameter.kind == "f32":
            struct.pack("<f", number)
    except OverflowError:
        raise LowlpValueError(f"{parameter.name}: {value!r} is out of range of {parameter.kind}") from None
    return number
