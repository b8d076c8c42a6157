"""What is measured: kinds of weights, shapes, numbers of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from lowlp.numeric.lookup_tables import nf
from lowlp_runtime.errors import LowlpValueError

if TYPE_CHECKING:
    from lowlp.numeric.codec import Codec

GROUP_SIZE: Final = 128
ACTIVATION: Final = "f16"
_BYTES: Final = {"": 0, "uint8": 1, "e8m0": 1, "e4m3": 1, "f16": 2, "bf16": 2, "f32": 4}


@dataclass(frozen=True)
class WeightKind:
    """Weights as a user asks for them.

    name        as the command line and results name it
    dtype       type of the codes; of a table the unsigned integer
    bits        of a code
    zeros       type of the zero points, 'uint8' or 'f16'; '' without
    values      of the codes, where a table gives them; else none
    title       as tables name it; '': as `dtype`
    group       weights of a row that share a scale; 0: all of them
    scale       type of the scales; those of e4m3 have a second one, of the tensor
    activation  type of the activations that they meet, and of results: 'f16' or 'bf16'
    vectors     what codes of vectors are, as `Codec` writes it, 'vec8:2x8:f16' for example; '' for codes of one weight
    skewed      codes are drawn by Zipf's law, in proportion to 1, 1/2, 1/3 and so on; else all alike
    frequent    those that are drawn most come first, so that kernels keep them in shared memory
    version     one of `VERSIONS`, as which its kernels are divided; '': as `linear` chooses
    """

    name: str
    dtype: str
    bits: int
    zeros: str = ""
    values: tuple[float, ...] = ()
    title: str = ""
    group: int = GROUP_SIZE
    scale: str = "f16"
    activation: str = ACTIVATION
    vectors: str = ""
    version: str = ""
    skewed: bool = False
    frequent: bool = False

    @property
    def label(self) -> str:
        """As tables name it."""
        return self.title or self.dtype

    @property
    def table(self) -> bool:
        """Whether a table gives the values."""
        return bool(self.values)

    @property
    def is_positive(self) -> bool:
        """Whether no weight is negative."""
        return self.dtype.startswith("uint") and not (self.zeros or self.table)

    @property
    def second_scale(self) -> bool:
        """Whether the tensor has a scale beside those of its groups."""
        return self.scale == "e4m3"

    @property
    def is_scaled_exactly(self) -> bool:
        """Whether the activation type holds all scales. Where it does not, as with f32 or with two levels, weights are
        made in f32 and rounded once, which takes longer."""
        return not self.second_scale and self.scale in (self.activation, "e8m0" if self.activation == "bf16" else "")

    @property
    def scale_bytes(self) -> int:
        """Of the scale of a group."""
        return _BYTES[self.scale]

    @property
    def zero_bytes(self) -> int:
        """Of the zero point of a group; 0 without."""
        return _BYTES[self.zeros]

    def group_in(self, k: int) -> int:
        """Weights that share a scale, of rows of k."""
        return self.group or k

    @property
    def codec(self) -> Codec:
        """What the codes mean."""
        return self.codec_for(self.group)

    def codec_in(self, n: int, k: int) -> Codec:
        """The codec of weights [n, k] as `lowlp.linear` takes it, with spread codes where these are worth it."""
        from lowlp.kernels.linear.codebooks.entries import is_worth_spreading
        from lowlp.numeric.codec import Codec

        vectors = self.codec.vectors
        if vectors is None or not is_worth_spreading(vectors, n, k):
            return self.codec
        return Codec.parse(str(self.codec).replace(str(vectors), str(vectors.as_spread())))

    def codec_for(self, group_size: int) -> Codec:
        """The codec with groups of another size. Needs the extension, which what runs on a GPU does not."""
        from lowlp.numeric.codec import Codec, Table
        from lowlp.numeric.dtypes import dtype

        if self.vectors:
            return Codec.parse(f"{self.vectors} {group_size or 'channel'} {self.scale}")
        code = Table(self.bits, "f32", "tensor", self.values) if self.values else dtype(self.dtype)
        return Codec(code, group_size or "channel", self.scale, self.zeros or None, scale2=self.second_scale)


@dataclass(frozen=True, order=True)
class Shape:
    """The weights' shape [N, K]."""

    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.n}x{self.k}"


def _plain(name: str) -> WeightKind:
    return WeightKind(name, name, int(name.lstrip("intf")[0]))


KINDS: Final = {
    kind.name: kind
    for kind in (
        *map(_plain, ("int4", "int8", "int6", "f6e3m2", "int3", "f3e1m1", "int5", "f5e2m2", "int7", "int2", "int1")),
        WeightKind("uint4z", "uint4", 4, zeros="uint8", title="uint4 with zero points"),
        WeightKind("nf4", "uint4", 4, values=tuple(nf(4).tolist()), title="NF4 table"),
    )
}
"""Codes of one weight, by name, in the order in which they are measured."""

FORMAT_KINDS: Final = {
    kind.name: kind
    for kind in (
        WeightKind("mxfp4", "f4e2m1", 4, title="MXFP4", group=32, scale="e8m0", activation="bf16"),
        WeightKind("nvfp4", "f4e2m1", 4, title="NVFP4", group=16, scale="e4m3", activation="bf16"),
    )
}
"""Weights as formats of checkpoints have them, with bf16 activations; measured where they are named."""


def _books(name: str, bits: int, vectors: str, title: str) -> WeightKind:
    return WeightKind(name, vectors, bits, title=title, group=0, vectors=vectors)


BOOK_KINDS: Final = {
    kind.name: kind
    for kind in (
        _books("aqlm-2x8", 8, "vec8:2x8:f16", "AQLM 2x8"),
        _books("aqlm-1x8", 8, "vec8:1x8:f16", "AQLM 1x8"),
        _books("gptvq-2", 8, "vec4:1x8:f16:256x256", "GPTVQ-2"),
        _books("vec2", 8, "vec2:1x8:f16", "<2, 8, 1>"),
        _books("aqlm-3", 12, "vec8:2x12:f16", "AQLM-3"),
        _books("aqlm-3-int8", 12, "vec8:2x12:int8", "AQLM-3, int8 books"),
        _books("aqlm-3-e4m3", 12, "vec8:2x12:f8e4m3", "AQLM-3, e4m3 books"),
        _books("quip-4", 16, "e8p+e8p", "QuIP#-4"),
        _books("e8p", 16, "e8p", "E8P, 2 bits"),
        _books("aqlm-1x16", 16, "vec8:1x16:f16", "AQLM 1x16"),
    )
}
"""Codebooks with scales of rows, by name: those of VQ-LLM's paper and of checkpoints."""

UNIFORM, ZIPF, FREQUENT = "aqlm-1x16", "aqlm-1x16-zipf", "aqlm-1x16-zipf-frequent"
SKEWED_KINDS: Final = {
    ZIPF: replace(BOOK_KINDS[UNIFORM], name=ZIPF, title="AQLM 1x16, Zipf", skewed=True),
    FREQUENT: replace(
        BOOK_KINDS[UNIFORM], name=FREQUENT, title="AQLM 1x16, Zipf, by frequency", skewed=True, frequent=True
    ),
}
"""Codes of which some are frequent."""

VERSIONS: Final = ("gc", "sc", "o1", "o2", "o3", "o4")
"""Of products with codebooks, by VQ-LLM's table IV."""
ABLATED: Final = ("quip-4", "aqlm-3", "gptvq-2")
"""The paper's configurations of weights."""


def version_name(kind: str, version: str) -> str:
    """The name of a version of a kind; '': the kind's own."""
    return f"{kind}-{version}" if version else kind


def _versions(kind: WeightKind) -> list[WeightKind]:
    return [
        replace(kind, name=version_name(kind.name, version), title=f"{kind.label} {version.upper()}", version=version)
        for version in VERSIONS
    ]


VERSION_KINDS: Final = {kind.name: kind for name in ABLATED for kind in _versions(BOOK_KINDS[name])}

ALL_KINDS: Final = {**KINDS, **FORMAT_KINDS, **BOOK_KINDS, **SKEWED_KINDS, **VERSION_KINDS}

SHAPES: Final = tuple(
    Shape(n, k) for n, k in ((57344, 8192), (8192, 8192), (8192, 28672), (10240, 8192), (4096, 4096), (28672, 4096))
)
ROWS: Final = (1, 8, 16, 32, 64, 128, 256, 1024, 4096)
BOOK_SHAPES: Final = tuple(Shape(n, k) for n, k in ((57344, 8192), (8192, 8192), (4096, 4096), (8192, 28672)))
BOOK_ROWS: Final = (1, 8, 16, 32, 64, 1024, 4096)

ABLATION_SHAPES: Final = (BOOK_SHAPES[0], BOOK_SHAPES[2])
ABLATION_ROWS: Final = (1, 16)

QUICK_SHAPES: Final = SHAPES[:2]
QUICK_ROWS: Final = (1, 16, 64, 256)


def parse_kinds(text: str, among: Mapping[str, WeightKind] = KINDS) -> tuple[WeightKind, ...]:
    """The kinds named in 'int4,nf4'. Raises `LowlpValueError`."""
    names = text.split(",")
    for name in names:
        if name not in among:
            raise LowlpValueError(f"--types: must be among {', '.join(among)}, got {name!r}")
    return tuple(among[name] for name in dict.fromkeys(names))


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
