"""Tensor maps: how a tensor in global memory looks to the tensor copies of a kernel (CUDA driver API, CUtensorMap).

The description of a kernel says which it needs, with extents and strides as functions of its integer parameters. A
launch makes them for its arguments and hands them to the kernel after its parameters.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lowlp_runtime import grid as grids
from lowlp_runtime.driver import call, driver
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

ELEMENT_BYTES = (1, 2, 4)
SWIZZLES = (0, 32, 64, 128)
MAP_BYTES = 128
_MAX_RANK = 5
_MAX_BOX = 256
# CUDA driver API, cuTensorMapEncodeTiled: globalAddress, globalDim and globalStrides.
_ALIGNMENT_BYTES = 16
_MAX_EXTENT = 2**32
_MAX_STRIDE = 2**40


@dataclass(frozen=True)
class TensorMap:
    """A tensor map that a kernel needs; dimensions count from the outermost.

    parameter      the pointer to the tensor, by name
    element_bytes  1, 2 or 4
    extents        of the tensor, in elements: an expression for each of its 1 to 5 dimensions (see
                   `lowlp_runtime.grid`)
    strides        in bytes, for each dimension but the last, whose elements are neighbours
    box            the extents of what one copy takes, 1 to 256 each
    swizzle        0, or the 32, 64 or 128 bytes of a row of the box

    Raises `LowlpValueError` or `LowlpTypeError` for anything else.
    """

    parameter: str
    element_bytes: int
    extents: tuple[grids.GridExpression, ...]
    strides: tuple[grids.GridExpression, ...]
    box: tuple[int, ...]
    swizzle: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.parameter, str):
            raise LowlpTypeError(f"tensor map: parameter: expected a name, got {self.parameter!r}")
        for name in ("extents", "strides"):
            value = getattr(self, name)
            if not isinstance(value, list | tuple):
                raise LowlpTypeError(f"tensor map: {name}: expected a list of expressions, got {value!r}")
            object.__setattr__(self, name, tuple(grids.freeze(expression) for expression in value))
        if not isinstance(self.box, list | tuple):
            raise LowlpTypeError(f"tensor map: box: expected a list of ints, got {self.box!r}")
        object.__setattr__(self, "box", tuple(self.box))
        rank = len(self.extents)
        if not 1 <= rank <= _MAX_RANK or len(self.strides) != rank - 1 or len(self.box) != rank:
            raise LowlpValueError(
                f"tensor map: expected 1 to {_MAX_RANK} extents, as many of the box and one stride less, "
                f"got {rank}, {len(self.box)} and {len(self.strides)}"
            )
        for extent in self.box:
            if not isinstance(extent, int) or isinstance(extent, bool) or not 1 <= extent <= _MAX_BOX:
                raise LowlpValueError(f"tensor map: box: extents must be in 1..{_MAX_BOX}, got {extent!r}")
        if self.element_bytes not in ELEMENT_BYTES:
            raise LowlpValueError(f"tensor map: element_bytes must be 1, 2 or 4, got {self.element_bytes!r}")
        row_bytes = self.box[-1] * self.element_bytes
        if self.swizzle not in SWIZZLES or self.swizzle not in (0, row_bytes):
            raise LowlpValueError(
                f"tensor map: swizzle must be 0, or 32, 64 or 128 as the {row_bytes} bytes of a row, "
                f"got {self.swizzle!r}"
            )

    def to_json(self) -> dict[str, object]:
        """The map as JSON; its fields are the constructor's arguments."""
        return {
            "parameter": self.parameter,
            "element_bytes": self.element_bytes,
            "extents": [grids.thaw(expression) for expression in self.extents],
            "strides": [grids.thaw(expression) for expression in self.strides],
            "box": list(self.box),
            "swizzle": self.swizzle,
        }

    def place(self, values: Mapping[str, int]) -> "PlacedMap":
        """The map's extents and strides for these integer arguments, by name.

        Raises `LowlpValueError`, which names the parameter, for a tensor that has no map.
        """
        extents = tuple(grids.evaluate(expression, values) for expression in self.extents)
        strides = tuple(grids.evaluate(expression, values) for expression in self.strides)
        for extent in extents:
            if not 1 <= extent <= _MAX_EXTENT:
                raise LowlpValueError(
                    f"{self.parameter}: extents of the tensor must be in 1..2**32, got {list(extents)}"
                )
        for stride in strides:
            if stride % _ALIGNMENT_BYTES or not 0 <= stride < _MAX_STRIDE:
                raise LowlpValueError(
                    f"{self.parameter}: strides of the tensor must be multiples of 16 bytes below 2**40, "
                    f"got {list(strides)}"
                )
        return PlacedMap(self.parameter, self.element_bytes, extents, strides, self.box, self.swizzle)


class PlacedMap(NamedTuple):
    """A tensor map but for the address: see `TensorMap`; extents in elements, strides in bytes."""

    parameter: str
    element_bytes: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    def encode(self, address: int) -> Any:
        """The CUtensorMap for a tensor at `address`.

        Raises `LowlpValueError`, which names the parameter, for an address that has no map, `DeviceError` for what the
        driver refuses.
        """
        if address % _ALIGNMENT_BYTES:
            raise LowlpValueError(f"{self.parameter}: address {address:#x} must be a multiple of 16 bytes")
        return _encode(address, self)


@functools.lru_cache(maxsize=256)
def _encode(address: int, placed: PlacedMap) -> Any:
    """Calls the driver, which counts dimensions from the innermost. What a map says depends on its arguments alone, so
    maps are kept for later launches."""
    _, element_bytes, extents, strides, box, swizzle = placed
    cuda = driver()
    types = cuda.CUtensorMapDataType
    swizzles = cuda.CUtensorMapSwizzle
    return call(
        "cuTensorMapEncodeTiled",
        {
            1: types.CU_TENSOR_MAP_DATA_TYPE_UINT8,
            2: types.CU_TENSOR_MAP_DATA_TYPE_UINT16,
            4: types.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        }[element_bytes],
        len(extents),
        address,
        [cuda.cuuint64_t(extent) for extent in reversed(extents)],
        # One dimension has no stride, but the driver takes no empty list.
        [cuda.cuuint64_t(stride) for stride in reversed(strides or (_ALIGNMENT_BYTES,))],
        [cuda.cuuint32_t(extent) for extent in reversed(box)],
        [cuda.cuuint32_t(1)] * len(extents),
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        {
            0: swizzles.CU_TENSOR_MAP_SWIZZLE_NONE,
            32: swizzles.CU_TENSOR_MAP_SWIZZLE_32B,
            64: swizzles.CU_TENSOR_MAP_SWIZZLE_64B,
            128: swizzles.CU_TENSOR_MAP_SWIZZLE_128B,
        }[swizzle],
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
