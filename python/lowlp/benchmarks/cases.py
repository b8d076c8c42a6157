"""What is measured: kinds of weights, shapes, numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lowlp.numeric.codec import Codec, Table
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.tables import nf
from lowlp_runtime.errors import LowlpValueError

GROUP_SIZE: Final = 128
ACTIVATION: Final = "f16"
SCALE_BYTES: Final = 2


@dataclass(frozen=True)
class WeightKind:
    """Weights as a user asks for them.

    name    as the command line and results name it
    codec   what their codes mean, in groups of `GROUP_SIZE`
    label   as tables name it
    """

    name: str
    codec: Codec
    label: str

    @property
    def bits(self) -> int:
        """Of a code."""
        return self.codec.bits

    @property
    def dtype(self) -> str:
        """The type of the codes; of a table the unsigned integer."""
        return f"uint{self.bits}" if isinstance(self.codec.code, Table) else self.codec.code.name

    @property
    def table(self) -> bool:
        """Whether a table gives the values."""
        return self.codec.table is not None

    @property
    def zero_bytes(self) -> int:
        """Of the zero point of a group; 0 without."""
        return 1 if self.codec.zeros else 0

    def codec_for(self, group_size: int) -> Codec:
        """The codec with groups of another size."""
        codec = self.codec
        return Codec(codec.code, group_size, codec.scale, codec.zeros, codec.offsets, codec.scale2)


@dataclass(frozen=True, order=True)
class Shape:
    """The weights' shape [N, K]."""

    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.n}x{self.k}"


def _plain(name: str) -> WeightKind:
    return WeightKind(name, Codec(dtype(name), GROUP_SIZE), name)


KINDS: Final = {
    kind.name: kind
    for kind in (
        *map(_plain, ("int4", "int8", "int6", "f6e3m2", "int3", "f3e1m1", "int5", "f5e2m2", "int7", "int2", "int1")),
        WeightKind("uint4z", Codec(dtype("uint4"), GROUP_SIZE, zeros="uint8"), "uint4 with zero points"),
        WeightKind("nf4", Codec(Table(4, "f32", "tensor", nf(4)), GROUP_SIZE), "NF4 table"),
    )
}
"""All kinds, by name, in the order in which they are measured."""

SHAPES: Final = tuple(
    Shape(n, k) for n, k in ((57344, 8192), (8192, 8192), (8192, 28672), (10240, 8192), (4096, 4096), (28672, 4096))
)
ROWS: Final = (1, 8, 16, 32, 64, 128, 256, 1024, 4096)

QUICK_SHAPES: Final = SHAPES[:2]
QUICK_ROWS: Final = (1, 16, 64, 256)


def parse_kinds(text: str) -> tuple[WeightKind, ...]:
    """The kinds named in 'int4,nf4'. Raises `LowlpValueError`."""
    names = text.split(",")
    for name in names:
        if name not in KINDS:
            raise LowlpValueError(f"--types: must be among {', '.join(KINDS)}, got {name!r}")
    return tuple(KINDS[name] for name in dict.fromkeys(names))


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """The shapes in '8192x8192,4096x4096', each NxK with K a multiple of the group size. Raises `LowlpValueError`."""
    shapes = []
    for part in text.split(","):
        numbers = part.split("x")
        if len(numbers) != 2 or not all(number.isdecimal() and int(number) for number in numbers):
            raise LowlpValueError(f"--shapes: expected NxK,... with N and K of at least 1, got {part!r}")
        shape = Shape(int(numbers[0]), int(numbers[1]))
        if shape.k % GROUP_SIZE:
            raise LowlpValueError(f"--shapes: K must be a multiple of the group size {GROUP_SIZE}, got {part!r}")
        shapes.append(shape)
    return tuple(dict.fromkeys(shapes))


def parse_rows(text: str) -> tuple[int, ...]:
    """The numbers of rows in '1,16,64', ascending. Raises `LowlpValueError`."""
    parts = text.split(",")
    for part in parts:
        if not part.isdecimal() or not int(part):
            raise LowlpValueError(f"--m: expected numbers of at least 1, got {part!r}")
    return tuple(sorted({int(part) for part in parts}))
