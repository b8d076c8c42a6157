"""Launching one kernel again and again: what does not change from launch to launch is made ready once.

reading     what turns an argument into a number is chosen per parameter (`lowlp_runtime.arguments`)
shapes      grid, workspace and tensor maps depend on the integer arguments alone, and are kept for those seen last
functions   of the contexts that the kernel was loaded in
memory      each thread has the values of a launch, and the pointers to them, at one address
"""

import ctypes
import functools
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lowlp_runtime import device as devices
from lowlp_runtime import device_workspace
from lowlp_runtime.arguments import ArraysOfLaunch, bind, check_address, check_integer, reader_of
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.dependent_launch import code_waits, is_allowed
from lowlp_runtime.description import KernelDescription
from lowlp_runtime.driver import call, check_status
from lowlp_runtime.grid import evaluate_grid
from lowlp_runtime.launch_call import LaunchConfig, library
from lowlp_runtime.module import LoadedKernel, load_in_current_context
from lowlp_runtime.stream import current_stream, order_after, stream_handle
from lowlp_runtime.tensor_map import PlacedMap
from lowlp_runtime.workspace import WorkspaceLayout

_SLOT_BYTES = 8
_KEPT_SHAPES = 256
# Of a launch: of so many tuples of addresses.
_KEPT_MAPS = 64


class _Shape(NamedTuple):
    """What the integer arguments decide.

    grid       blocks in x, y, z
    workspace  where its parts lie; None without one
    maps       tensor maps, each with the place of its pointer among the parameters
    kept_maps  those made before, by the addresses, with where they lie
    """

    grid: tuple[int, int, int]
    workspace: WorkspaceLayout | None
    maps: tuple[tuple[int, PlacedMap], ...]
    kept_maps: dict[tuple[int | float, ...], tuple[Sequence[Any], list[int]]]


class _Memory(threading.local):
    """One thread's memory for the values of a launch and the pointers to them. It is used anew by every launch: the
    driver copies the values before cuLaunchKernel returns."""

    def __init__(self, slots: int, maps: int, block: tuple[int, int, int], shared_bytes: int) -> None:
        self.slots = ctypes.create_string_buffer(_SLOT_BYTES * max(slots, 1))
        base = ctypes.addressof(self.slots)
        addresses = [base + _SLOT_BYTES * slot for slot in range(slots)] + [0] * maps
        self.pointers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self.pointers_address = ctypes.addressof(self.pointers)
        self.config = LaunchConfig(block, shared_bytes)
        self.config_address = ctypes.addressof(self.config)
        self.context = ctypes.c_uint64()
        self.context_address = ctypes.addressof(self.context)


class Launcher:
    """Launches a kernel; made by `launcher_of`, which keeps it. Any number of threads may use it at once."""

    def __init__(self, binary: KernelBinary) -> None:
        description = binary.description
        self._binary = binary
        self._parameters = description.parameters
        self._readers = [reader_of(parameter) for parameter in description.parameters]
        self._integers = [place for place, p in enumerate(description.parameters) if p.is_integer]
        self._aligned = [
            (place, p.alignment_bytes - 1) for place, p in enumerate(description.parameters) if p.alignment_bytes > 1
        ]
        # The pointer to the workspace is the last value.
        self._values = struct.Struct(description.argument_struct.format + ("Q" if description.workspace else ""))
        slots = len(description.parameters) + bool(description.workspace)
        self._map_slots = range(slots, slots + len(description.tensor_maps))
        self._memory = _Memory(slots, len(description.tensor_maps), description.block, description.shared_bytes)
        self._shape_of = functools.lru_cache(maxsize=_KEPT_SHAPES)(functools.partial(_shape_of, description))
        self._functions: dict[int, LoadedKernel] = {}  # by the number of the context
        self._waits_by_itself = description.dependent_launch

    @property
    def description(self) -> KernelDescription:
        """What is launched."""
        return self._binary.description

    def __call__(self, arguments: Sequence[object] | Mapping[str, object], stream: object = None) -> None:
        """Puts one run on a stream; see `lowlp_runtime.launch`."""
        bound = bind(self.description, arguments)
        handle = current_stream(bound) if stream is None else stream_handle(stream)
        arrays = ArraysOfLaunch(handle)
        values = [read(value, arrays) for read, value in zip(self._readers, bound, strict=True)]
        self.run(values, arrays.device, handle, tuple(dict.fromkeys(arrays.producer_streams)))

    def read(self, place: int, value: object) -> int | float:
        """An argument for the parameter at `place` as `run` takes it. Raises what `lowlp_runtime.launch` raises."""
        return self._readers[place](value, ArraysOfLaunch(0))

    def run(
        self, values: Sequence[int | float], ordinal: int | None, stream: int, producer_streams: Sequence[int] = ()
    ) -> None:
        """Puts one run on a stream, of arguments that are numbers already.

        values            one for each parameter, in order; of a pointer the address
        ordinal           the device of the arrays; None: the driver says it of an address
        stream            a handle
        producer_streams  handles of streams whose work must come first

        Does nothing where the grid has no blocks. Raises `LowlpValueError` for an integer that is out of range and an
        address that is not aligned, `DeviceError` for what the driver refuses.
        """
        for place, mask in self._aligned:
            if values[place] & mask:  # type: ignore[operator]
                check_address(self._parameters[place], int(values[place]))
        shape = self._shape_of(*[values[place] for place in self._integers])
        if shape is None:
            return
        if ordinal is None:
            ordinal = self._device_of(values)
        memory = self._memory
        # Fails without a current context, for which no function is kept.
        failed = library().cuCtxGetId(None, memory.context_address)
        context = memory.context.value
        loaded = None if failed else self._functions.get(context)
        if loaded is not None and loaded.device == ordinal and not producer_streams:
            self._launch(loaded, context, shape, values, stream)
            return
        with devices.on_device(ordinal):
            context = int(call("cuCtxGetId", None))
            loaded = self._functions[context] = load_in_current_context(self._binary, ordinal)
            for producer in producer_streams:
                order_after(stream, producer)
            self._launch(loaded, context, shape, values, stream)

    def _launch(
        self, loaded: LoadedKernel, context: int, shape: _Shape, values: Sequence[int | float], stream: int
    ) -> None:
        """Puts the launch on the stream, in the current context, whose number is `context`."""
        memory = self._memory
        # The maps live until the driver has copied what they hold.
        maps = self._point_at_maps(memory, shape, values) if shape.maps else ()
        if shape.workspace is None:
            self._values.pack_into(memory.slots, 0, *values)
            self._call_driver(loaded, shape, stream, memory)
        else:
            with device_workspace.lock:
                pointer = device_workspace.workspace_pointer(shape.workspace, stream, context)
                self._values.pack_into(memory.slots, 0, *values, pointer)
                self._call_driver(loaded, shape, stream, memory)
        del maps

    def _point_at_maps(self, memory: _Memory, shape: _Shape, values: Sequence[int | float]) -> Sequence[object]:
        addresses = tuple([values[place] for place, _ in shape.maps])
        kept = shape.kept_maps.get(addresses)
        if kept is None:
            maps = [placed.encode(int(values[place])) for place, placed in shape.maps]
            kept = (maps, [int(tensor_map.getPtr()) for tensor_map in maps])
            if len(shape.kept_maps) >= _KEPT_MAPS:
                shape.kept_maps.clear()
            shape.kept_maps[addresses] = kept
        for slot, pointer in zip(self._map_slots, kept[1], strict=True):
            memory.pointers[slot] = pointer
        return kept

    def _call_driver(self, loaded: LoadedKernel, shape: _Shape, stream: int, memory: _Memory) -> None:
        config = memory.config
        config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
        config.hStream = stream
        config.numAttrs = self._waits_by_itself and is_allowed() and code_waits(loaded.arch)
        status = library().cuLaunchKernelEx(memory.config_address, loaded.handle, memory.pointers_address, None)
        if status:
            check_status("cuLaunchKernelEx", status)

    def _device_of(self, values: Sequence[int | float]) -> int:
        """The device of the first address that is not null; without one the current device."""
        addresses = (int(value) for p, value in zip(self._parameters, values, strict=True) if p.is_pointer)
        address = next(filter(None, addresses), 0)
        return devices.device_of_pointer(address) if address else devices.current_device()


def _shape_of(description: KernelDescription, *integers: int) -> _Shape | None:
    """What the integer arguments decide; None for a grid without blocks.

    Raises `LowlpValueError` for a number that does not fit its parameter, or gives no grid, workspace or tensor map.
    """
    parameters = [parameter for parameter in description.parameters if parameter.is_integer]
    values = {parameter.name: number for parameter, number in zip(parameters, integers, strict=True)}
    for parameter, number in zip(parameters, integers, strict=True):
        check_integer(parameter, number)
    grid = evaluate_grid(description.grid, values)
    if 0 in grid:
        return None
    names = [parameter.name for parameter in description.parameters]
    return _Shape(
        grid,
        description.lay_out_workspace(values) if description.workspace else None,
        tuple((names.index(entry.parameter), entry.place(values)) for entry in description.tensor_maps),
        {},
    )


_lock = threading.Lock()
_launchers: dict[str, Launcher] = {}


def launcher_of(kernel: KernelBinary) -> Launcher:
    """The launcher of a kernel: one for all kernels of equal content, kept as long as the process lives."""
    found = _launchers.get(kernel.content_hash)
    if found is None:
        with _lock:
            found = _launchers.setdefault(kernel.content_hash, Launcher(kernel))
    return found
