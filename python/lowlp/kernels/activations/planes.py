"""Bit planes of codes that a block holds, and of codes in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from lowlp import language as ll
from lowlp.activations.kinds import ActivationKind
from lowlp.layouts.register_layout import Layout, local, spatial
from lowlp.numeric.bit_planes import BIT_OF_CODE, WORD_CODES

_THREADS: Final = 128
_WORD_BYTES: Final = 4


@dataclass(frozen=True)
class PlanesView:
    """Planes in memory: [outer, rows, bits, words], of rows of `k` codes."""

    view: ll.GlobalView
    words: int
    k: int


def planes_view(operands: dict[str, Any], bits: int, words: int, k: int) -> PlanesView:
    """Of the parameters `planes`, `plane_stride`, `plane_row_stride`, `plane_outer_stride`, and numbers of rows."""
    shape = [operands["outer"], operands["rows"], bits, words]
    strides = [operands["plane_outer_stride"], operands["plane_row_stride"], operands["plane_stride"], 1]
    return PlanesView(ll.view_global(operands["planes"], shape=shape, strides=strides), words, k)


def plane_strides() -> dict[str, ll.Parameter]:
    """The parameters that say, in words, how far planes, rows and outer indices are apart."""
    return dict.fromkeys(("plane_stride", "plane_row_stride", "plane_outer_stride"), ll.i64)


def store_planes(
    codes: ll.Tile, by_words: Layout, kind: ActivationKind, planes: PlanesView, rows: list[Any], word: Any
) -> None:
    """Stores planes of codes [rows, numbers], of which the first is the first one of a word.

    by_words  of the same tile, each thread with 32 numbers side by side
    rows      where the first row is, [outer, row]
    word      the number of the first word in its row
    """
    bits = kind.dtype.bits
    if kind.low:
        codes = _counted_from_zero(codes, bits)
    together = codes if codes.layout == by_words else ll.convert_layout(codes, by_words)
    count, numbers = together.shape
    layout = by_words.reshape(count, numbers // WORD_CODES, WORD_CODES)
    made = ll.encode(ll.view(together, dtype="uint8", layout=layout), planes=bits)
    if rest := planes.k % WORD_CODES:
        # Beyond the end of a row bits are 0, also of codes that mean 0.
        last = sum(1 << BIT_OF_CODE[code] for code in range(rest))
        place = ll.iota(2, layout=made.layout, dtype="int32")
        if not isinstance(word, int) or word:
            place = place + ll.full(word, "int32", layout=made.layout)
        made = ll.where(ll.equal(place, planes.words - 1), made & last, made)
    ll.store_global(made, planes.view, offsets=[*rows, 0, word])


def _counted_from_zero(codes: ll.Tile, bits: int) -> ll.Tile:
    """Codes of int b plus 2^(b - 1), in the low b bits: the highest of them inverted."""
    words = spatial(codes.layout.num_threads) * local(codes.layout.num_local // _WORD_BYTES)
    inverted = ll.view(codes, dtype="uint32", layout=words) ^ (0x01010101 << (bits - 1))
    return ll.view(inverted, dtype="uint8", layout=codes.layout)


def planes_kernel(kind: ActivationKind, k: int, aligned: bool) -> ll.Kernel:
    """The block program that makes planes of codes.

    Parameters: codes, rows of k one after the other, 16-byte aligned where `aligned`, k then a multiple of 16; planes
    and their strides; numbers rows and outer, which is 1.
    """
    by_words = spatial(1, _THREADS) * local(1, WORD_CODES)
    numbers = _THREADS * WORD_CODES

    def trace(**operands: Any) -> None:
        row, part = ll.block_indices()
        view = ll.view_global(operands["codes"], shape=[operands["rows"], k])
        codes = ll.load_global(view, offsets=[row, part * numbers], layout=by_words)
        planes = planes_view(operands, kind.dtype.bits, -(-k // WORD_CODES), k)
        store_planes(codes, by_words, kind, planes, [0, row], part * _THREADS)

    parts = -(-k // numbers)
    element = "int8" if kind.low else "uint8"
    parameters = {"codes": ll.pointer(element, align=16 if aligned else None), "planes": ll.pointer("uint32", align=16)}
    return ll.make_kernel(
        trace,
        name=f"planes_of_{kind.name}",
        parameters=parameters | plane_strides() | {"rows": ll.i32, "outer": ll.i32},
        grid=lambda rows: (rows, parts),
        num_threads=_THREADS,
    )
