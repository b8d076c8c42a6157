"""A kernel and those of its arguments that stay from launch to launch: what they decide is made ready once.

shape      grid, workspace and tensor maps; the integer arguments that decide them stay
functions  of the contexts that the kernel was loaded in
memory     what the driver reads at a launch, in one block that holds all that stays already:

               configuration | other values | workspace | values that stay | pointers to values | pointers to maps
                      ^ from the stream on to the workspace: written by every launch, at once

A launch takes a block that no other launch uses, or makes one: any number of threads may launch at once.
Those with a workspace wait for each other, see `lowlp_runtime.device_workspace`.
"""

import ctypes
import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lowlp_runtime import device as devices
from lowlp_runtime import device_workspace
from lowlp_runtime.arguments import check_address, check_integer
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.dependent_launch import code_waits, is_allowed
from lowlp_runtime.driver import call, check_status
from lowlp_runtime.even_blocks import reserved_shared_bytes
from lowlp_runtime.grid import evaluate_grid
from lowlp_runtime.launch_call import EARLY, STREAM_FORMAT, STREAM_OFFSET, LaunchConfig, library
from lowlp_runtime.module import load_in_current_context
from lowlp_runtime.stream import order_after
from lowlp_runtime.tensor_map import PlacedMap

_SLOT_BYTES = 8
# Tensor maps are kept for so many tuples of addresses.
_KEPT_MAPS = 64


class LoadedFunction(NamedTuple):
    """The kernel in one context: its device, its handle, and whether its code waits for the kernel in front."""

    device: int
    handle: ctypes.c_void_p
    waits: bool


class BoundLaunch:
    """Launches of a kernel in which some arguments stay. Any number of threads may use it at once.

    kernel     what is launched
    functions  of the kernel, by the number of the context; added to
    kept       the arguments that stay, by place among the parameters; `shape_parameters` are among them
    others     the places of all other parameters, in the order in which `run` takes them
    ordinal    of the device of all launches: those that begin early spread evenly over it (`even_blocks`); None: any

    Raises `LowlpValueError` for a number that does not fit its parameter, or gives no grid, workspace or tensor map.
    """

    def __init__(
        self,
        kernel: KernelBinary,
        functions: dict[int, LoadedFunction],
        kept: Mapping[int, int | float],
        others: Sequence[int],
        ordinal: int | None = None,
    ) -> None:
        description = kernel.description
        parameters = description.parameters
        integers = {}
        for place, value in kept.items():
            if parameters[place].is_pointer:
                check_address(parameters[place], int(value))
            elif parameters[place].is_integer:
                check_integer(parameters[place], int(value))
                integers[parameters[place].name] = int(value)
        self._kernel = kernel
        self._functions = functions
        self._kept = kept
        self._others = list(others)
        self._aligned = [
            (at, parameters[place].alignment_bytes - 1, parameters[place])
            for at, place in enumerate(self._others)
            if parameters[place].alignment_bytes > 1
        ]
        self._integers = [
            (at, parameters[place]) for at, place in enumerate(self._others) if parameters[place].is_integer
        ]
        self._grid = evaluate_grid(description.grid, integers)
        self._is_empty = 0 in self._grid
        self._shared_bytes = description.shared_bytes
        if ordinal is not None:
            self._shared_bytes = reserved_shared_bytes(description, math.prod(self._grid), ordinal)
        has_workspace = bool(description.workspace) and not self._is_empty
        self._workspace = description.lay_out_workspace(integers) if has_workspace else None
        self._place_maps({} if self._is_empty else integers)
        formats = [parameters[place].slot_format for place in self._others]
        self._pack = struct.Struct(STREAM_FORMAT + "".join(formats) + "Q" * has_workspace).pack_into
        self._blocks: list[_Block] = []

    def _place_maps(self, integers: Mapping[str, int]) -> None:
        """Makes those maps that stay, and says of the others whose addresses they take."""
        description = self._kernel.description
        names = [parameter.name for parameter in description.parameters]
        self._maps: list[Any] = []  # None: of an address that does not stay
        self._changing: list[tuple[int, PlacedMap]] = []
        places = []
        for at, entry in enumerate(description.tensor_maps if not self._is_empty else ()):
            placed, place = entry.place(integers), names.index(entry.parameter)
            if place in self._kept:
                address = int(self._kept[place])
                # The driver makes none in a thread without a context.
                with devices.on_device(devices.device_of_pointer(address)):
                    self._maps.append(placed.encode(address))
            else:
                self._maps.append(None)
                self._changing.append((at, placed))
                places.append(self._others.index(place))
        # Of the values of a launch: the address, or all addresses, that maps are made for.
        self._addresses_of: Callable[[Sequence[Any]], Any] | None = operator.itemgetter(*places) if places else None
        self._kept_maps: dict[Any, list[Any]] = {}

    def run(
        self, values: Sequence[int | float], ordinal: int | None, stream: int, producer_streams: Sequence[int] = ()
    ) -> None:
        """Puts one run on a stream.

        values            the arguments that do not stay, as numbers, in the order of `others`; of a pointer the address
        ordinal           the device of the arrays; None: the driver says it of an address
        stream            a handle
        producer_streams  handles of streams whose work must come first

        Does nothing where the grid has no blocks. Raises `LowlpValueError` for an integer out of range, and an address
        that is not aligned or has no tensor map, `DeviceError` for what the driver refuses.
        """
        for at, mask, parameter in self._aligned:
            if values[at] & mask:  # type: ignore[operator]
                check_address(parameter, int(values[at]))
        for at, parameter in self._integers:
            check_integer(parameter, int(values[at]))
        if self._is_empty:
            return
        if ordinal is None:
            ordinal = self._device_of(values)
        try:
            block = self._blocks.pop()
        except IndexError:
            block = _Block(self._kernel, self._grid, self._shared_bytes, self._kept, self._others, self._maps)
        # Fails without a current context, for which no function is kept.
        failed = block.read_context(None, block.context_pointer)
        function = None if failed else self._functions.get(block.context.value)
        if function is None or function.device != ordinal or producer_streams:
            self._blocks.append(block)
            self._run_in_context_of(values, ordinal, stream, producer_streams)
            return
        if self._addresses_of is not None:
            addresses = self._addresses_of(values)
            if addresses != block.addresses:
                block.point_at(addresses, self._maps_for(addresses))
        early = function.waits and is_allowed()
        if self._workspace is None:
            self._pack(block.memory, STREAM_OFFSET, stream, EARLY, early, *values)
            status = block.launch(block.config_pointer, function.handle, block.parameters_pointer, None)
        else:
            with device_workspace.lock:
                pointer = device_workspace.workspace_pointer(self._workspace, stream, block.context.value)
                self._pack(block.memory, STREAM_OFFSET, stream, EARLY, early, *values, pointer)
                status = block.launch(block.config_pointer, function.handle, block.parameters_pointer, None)
        if status:
            check_status("cuLaunchKernelEx", status)
        # The driver has copied what the block holds.
        self._blocks.append(block)

    def _run_in_context_of(
        self, values: Sequence[int | float], ordinal: int, stream: int, producer_streams: Sequence[int]
    ) -> None:
        """As `run`, in the current context where that is one of the device, else in its primary context; loads the
        kernel there."""
        with devices.on_device(ordinal):
            loaded = load_in_current_context(self._kernel, ordinal)
            waits = self._kernel.description.dependent_launch and code_waits(loaded.arch)
            function = LoadedFunction(ordinal, ctypes.c_void_p(loaded.handle), waits)
            self._functions[int(call("cuCtxGetId", None))] = function
            for producer in producer_streams:
                order_after(stream, producer)
            self.run(values, ordinal, stream)

    def _device_of(self, values: Sequence[int | float]) -> int:
        """The device of the first address that is not null; without one the current device."""
        parameters = self._kernel.description.parameters
        found = [*zip(self._others, values, strict=True), *self._kept.items()]
        addresses = (int(value) for place, value in found if parameters[place].is_pointer)
        address = next(filter(None, addresses), 0)
        return devices.device_of_pointer(address) if address else devices.current_device()

    def _maps_for(self, addresses: Any) -> list[Any]:
        """All maps, those of these addresses among them."""
        found = self._kept_maps.get(addresses)
        if found is None:
            found = list(self._maps)
            several = addresses if len(self._changing) > 1 else (addresses,)
            for (at, placed), address in zip(self._changing, several, strict=True):
                found[at] = placed.encode(int(address))
            if len(self._kept_maps) >= _KEPT_MAPS:
                self._kept_maps.clear()
            self._kept_maps[addresses] = found
        return found


class _Block:
    """What the driver reads at a launch; see the top of this file.

    memory     all of it, contiguous
    context    where the driver writes the number of the current context
    addresses  those that the maps are for; None: not yet
    """

    __slots__ = (
        "_maps",
        "_maps_at",
        "addresses",
        "config_pointer",
        "context",
        "context_pointer",
        "launch",
        "memory",
        "parameters_pointer",
        "read_context",
    )

    def __init__(
        self,
        kernel: KernelBinary,
        grid: tuple[int, int, int],
        shared_bytes: int,
        kept: Mapping[int, int | float],
        others: Sequence[int],
        maps: Sequence[Any],
    ) -> None:
        functions = library()
        self.launch, self.read_context = functions.cuLaunchKernelEx, functions.cuCtxGetId
        description = kernel.description
        # The slots of parameters, and of the workspace after them: those that change come first.
        count = len(description.parameters)
        slots = [*others, *([count] if description.workspace else []), *kept]
        begin = ctypes.sizeof(LaunchConfig)
        self._maps_at = begin + _SLOT_BYTES * 2 * len(slots)
        self.memory = ctypes.create_string_buffer(self._maps_at + _SLOT_BYTES * len(maps))
        base = ctypes.addressof(self.memory)
        config = LaunchConfig.from_buffer(self.memory)
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = description.block
        config.sharedMemBytes = shared_bytes
        for at, place in enumerate(slots):
            if place in kept:
                slot_format = "<" + description.parameters[place].slot_format
                struct.pack_into(slot_format, self.memory, begin + _SLOT_BYTES * at, kept[place])
        pointers = [base + begin + _SLOT_BYTES * slots.index(place) for place in sorted(slots)]
        struct.pack_into(f"<{len(slots)}Q", self.memory, begin + _SLOT_BYTES * len(slots), *pointers)
        self.config_pointer = ctypes.c_void_p(base)
        self.parameters_pointer = ctypes.c_void_p(base + begin + _SLOT_BYTES * len(slots))
        self.context = ctypes.c_uint64()
        self.context_pointer = ctypes.byref(self.context)
        self.addresses: Any = None
        if None not in maps:
            self.point_at(None, maps)

    def point_at(self, addresses: Any, maps: Sequence[Any]) -> None:
        """Hands the kernel these maps, which are for these addresses, and keeps them alive."""
        pointers = [int(tensor_map.getPtr()) for tensor_map in maps]
        struct.pack_into(f"<{len(maps)}Q", self.memory, self._maps_at, *pointers)
        self.addresses, self._maps = addresses, maps
