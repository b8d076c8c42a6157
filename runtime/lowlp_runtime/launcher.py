"""Launching one kernel again and again: how arguments are read is chosen once, and launches are bound once a shape.

reading  what turns an argument into a number is chosen per parameter (`lowlp_runtime.arguments`)
shapes   what integer arguments decide is kept for those seen last (`lowlp_runtime.bound_launch`)
"""

import functools
import threading
from collections.abc import Mapping, Sequence

from lowlp_runtime.arguments import ArraysOfLaunch, bind, reader_of
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.bound_launch import BoundLaunch, LoadedFunction
from lowlp_runtime.description import KernelDescription
from lowlp_runtime.errors import LowlpTypeError
from lowlp_runtime.stream import current_stream, stream_handle

_KEPT_SHAPES = 256


class Launcher:
    """Launches a kernel; made by `launcher_of`, which keeps it. Any number of threads may use it at once."""

    def __init__(self, binary: KernelBinary) -> None:
        parameters = binary.description.parameters
        self._binary = binary
        self._readers = [reader_of(parameter) for parameter in parameters]
        of_shape = binary.description.shape_parameters()
        self._of_shape = [place for place, parameter in enumerate(parameters) if parameter.name in of_shape]
        self._others = [place for place, parameter in enumerate(parameters) if parameter.name not in of_shape]
        self._functions: dict[int, LoadedFunction] = {}
        self._for_shape = functools.lru_cache(maxsize=_KEPT_SHAPES)(self._bind_shape)

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
        launch = self._for_shape(*[values[place] for place in self._of_shape])
        producers = tuple(dict.fromkeys(arrays.producer_streams))
        launch.run([values[place] for place in self._others], arrays.device, handle, producers)

    def read(self, name: str, value: object) -> int | float:
        """An argument for the parameter of this name as a number. Raises what `lowlp_runtime.launch` raises."""
        return self._readers[self._place_of(name)](value, ArraysOfLaunch(0))

    def bind(
        self, kept: Mapping[str, int | float], order: Sequence[str] | None = None, ordinal: int | None = None
    ) -> BoundLaunch:
        """Launches in which these arguments stay, numbers by name; what decides shapes is among them.

        order    the names of all others, as `BoundLaunch.run` is to take them; None: in the order of the parameters
        ordinal  of the device of all launches, over which blocks of products spread evenly; None: any

        Raises `LowlpTypeError` for names that are no parameters, or that are lacking, `LowlpValueError` for an integer
        that is out of range and an address that is not aligned, `DeviceError`.
        """
        names = [parameter.name for parameter in self.description.parameters]
        others = [name for name in names if name not in kept] if order is None else list(order)
        if sorted([*kept, *others]) != sorted(names):
            raise LowlpTypeError(
                f"arguments of {self.description.name}({', '.join(names)}): expected each once, got "
                f"{', '.join([*kept, *others])}"
            )
        by_place = {names.index(name): value for name, value in kept.items()}
        return BoundLaunch(self._binary, self._functions, by_place, [names.index(name) for name in others], ordinal)

    def _place_of(self, name: str) -> int:
        for place, parameter in enumerate(self.description.parameters):
            if parameter.name == name:
                return place
        raise LowlpTypeError(f"{name}: is no parameter of kernel {self.description.name!r}")

    def _bind_shape(self, *integers: int) -> BoundLaunch:
        return BoundLaunch(
            self._binary, self._functions, dict(zip(self._of_shape, integers, strict=True)), self._others
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
