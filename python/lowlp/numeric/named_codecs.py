"""Names of whole codecs: of the codes, the group and the scales.

mxfp4, mxfp6e3m2, mxfp6e2m3, mxfp8e4m3, mxfp8e5m2, mxint8   groups of 32, e8m0 scales (OCP MX 1.0, table 1)
nvfp4                                                       groups of 16, e4m3 scales, a second one of the tensor
nf2 to nf8                                                  the table `nf(b)`; groups and scales of any kind

and of learnt codebooks, with entries of f16 and scales of rows unless others are asked for:

aqlm-1x8, aqlm-2x8, aqlm-1x16   1 or 2 books of 8 or 16 bits for vectors of 8 weights (AQLM, arXiv 2401.06118)
aqlm-3                          2 books of 12 bits for vectors of 8 (the 3 bits of AQLM)
gptvq-2                         a book of 8 bits for vectors of 4 in each 256 x 256 weights (GPTVQ, arXiv 2402.15319)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from lowlp_runtime.errors import LowlpValueError


@dataclass(frozen=True)
class NamedCodec:
    """What a name says.

    dtype       name of the type of the codes; '' with a table
    table_bits  of `nf`; 0 without a table
    group_size  None: any
    scale       type of the scales; '': any
    """

    name: str
    dtype: str = ""
    table_bits: int = 0
    group_size: int | None = None
    scale: str = ""

    def __str__(self) -> str:
        """As arguments of `quantize`."""
        if self.table_bits:
            return f"lut=nf({self.table_bits})"
        return f"dtype={self.dtype!r}, group_size={self.group_size}, scale_dtype={self.scale!r}"

    def check(self, argument: str, value: object, wanted: object) -> None:
        """Raises `LowlpValueError` where an argument that the name decides is given otherwise."""
        if value != wanted:
            raise LowlpValueError(f"{argument}: {self.name} has {wanted}, got {value!r:.40}; {self.name} is {self}")


_MX: Final = {
    **{f"mxfp{code[1]}{code[2:]}": code for code in ("f6e3m2", "f6e2m3", "f8e4m3", "f8e5m2")},
    "mxfp4": "f4e2m1",
    "mxint8": "int8",
}
NAMED_CODECS: Final = {
    codec.name: codec
    for codec in (
        *(NamedCodec(name, code, group_size=32, scale="e8m0") for name, code in _MX.items()),
        NamedCodec("nvfp4", "f4e2m1", group_size=16, scale="e4m3"),
        *(NamedCodec(f"nf{bits}", table_bits=bits) for bits in range(2, 9)),
    )
}


@dataclass(frozen=True)
class NamedBooks:
    """What a name of learnt codebooks says: arguments of `vq`, and `book_per`."""

    vector: int
    bits: int
    books: int
    book_per: Literal["tensor"] | tuple[int, int] = "tensor"


NAMED_BOOKS: Final = {
    "aqlm-1x8": NamedBooks(8, 8, 1),
    "aqlm-2x8": NamedBooks(8, 8, 2),
    "aqlm-1x16": NamedBooks(8, 16, 1),
    "aqlm-3": NamedBooks(8, 12, 2),
    "gptvq-2": NamedBooks(4, 8, 1, (256, 256)),
}
