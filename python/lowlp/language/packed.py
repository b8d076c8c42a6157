"""Weights in the packed format: views of them, and loads of tiles of codes."""

from __future__ import annotations

from collections.abc import Sequence

from lowlp._layout import Placement, ScalarFormat, code_format_name
from lowlp._mlir import ir
from lowlp.errors import LowlpValueError
from lowlp.layouts.register_layout import Layout
from lowlp.numeric.codec import COMPUTE_TYPES, Codec, Table
from lowlp.numeric.dtypes import DType, dtype_among
from lowlp.numeric.dtypes import dtype as named_type
from lowlp.numeric.vectors import Vectors
from lowlp.weights.packing import find_placement, placement_named

from .free_layouts import Choice, packed_units
from .instructions import _extents
from .scalars import Scalar, as_index, describe, is_int
from .source import type_error, value_error
from .tiles import Pointer, Tile, as_dtype, as_extents, emit_tile, named_or_default
from .tracing import Trace, TracedValue, current_trace


class PackedView(TracedValue):
    """Packed weights in global memory, made by `view_packed`: weights [rows, K], or several matrices of them."""

    def __init__(
        self, trace: Trace, value: ir.Value, element: DType, shape: Sequence[int | None], placement: Placement
    ) -> None:
        super().__init__(trace, value)
        self.dtype = element
        self.shape = tuple(shape)
        self.placement = placement

    def describe(self) -> str:
        """For messages."""
        dims = ", ".join("?" if extent is None else str(extent) for extent in self.shape)
        return f"packed weights [{dims}] of {self.dtype.name}"


def view_packed(
    source: Pointer,
    *,
    shape: Sequence[int | Scalar],
    dtype: str | DType | None = None,
    placement: str | None = None,
    codec: Codec | str | None = None,
    family: str | DType | None = None,
    unit_k: int | None = None,
) -> PackedView:
    """A pointer seen as packed weights, as `lowlp.packing.pack` packs them (docs/packed-format.md).

    source     a pointer to uint32; aligned to 16 bytes, wide loads are possible
    shape      rows and K, ints or index scalars, after the number of matrices where there are several; they bound
               every access
    dtype      the type of the codes; the unsigned integer of a table's codes, 'uint16' for more than 8 bits
    placement  where the bits are, by name: 'int6.f16', 'e3m2.bf16', 'lut4.f16'
    codec      instead of both: what the codes mean, a `Codec` or its text, 'int6 g128 f16' or 'int6' alone;
               'vec8:2x8:f16' of vectors
    family     with a codec: what the words were packed for, 'f16', 'bf16', 'int8' or 'f8e4m3'
    unit_k     weights of a row in a unit, 64, 32 or 16, of vectors 16 to 1024; None: what `pack` takes for a matrix
               [rows, K] of this shape, and 64 where rows or K are no ints

    The view is used where it is visible and is no loop-carried value. Raises KernelTypeError and KernelValueError for
    other arguments.
    """
    trace = current_trace("ll.view_packed")
    if not isinstance(source, Pointer):
        raise type_error(f"source: must be a pointer parameter, found {describe(source)}")
    if source.dtype.name != "uint32":
        raise type_error(f"source: must be a pointer to uint32, found one to {source.dtype.name}")
    static, dynamic = _extents("shape", shape, 1)
    if len(static) not in (2, 3):
        raise value_error(f"shape: expected 2 extents, rows and K, or 3 with their number first, found {len(static)}")
    if codec is not None or family is not None:
        if dtype is not None or placement is not None:
            raise value_error("codec, family: given in place of dtype and placement, not with them")
        meaning, found = _codec_and_placement(codec, family)
    else:
        meaning, found = _codec_of_type(dtype, placement)
    found = _in_units(found, unit_k, static)
    unknown = ir.ShapedType.get_dynamic_size()
    dims = "x".join("?" if extent is None else str(extent) for extent in static)
    operation = trace.emit(
        "lowlp.view_packed",
        [trace.type(f"!lowlp.packed<{dims}, #lowlp.codec<{meaning.text}>, {found.family}>")],
        [source.ir_value, *dynamic],
        {"staticShape": ir.DenseI64ArrayAttr.get([unknown if extent is None else extent for extent in static])},
    )
    return PackedView(trace, operation.results[0], _type_in_tiles(meaning), static, found)


def _in_units(placement: Placement, unit_k: object, shape: Sequence[int | None]) -> Placement:
    """The placement in units so wide, or in those of a matrix of this shape."""
    rows, k = shape[-2:]
    if unit_k is None:
        return placement if rows is None or k is None else placement.for_matrix(rows, k)
    allowed = placement.unit_ks
    if not is_int(unit_k):
        raise type_error(f"unit_k: must be an int, found {describe(unit_k)}")
    if unit_k not in allowed:
        raise value_error(f"unit_k: must be one of {', '.join(map(str, allowed))}, found {unit_k}")
    return placement.with_unit_k(int(unit_k))


def _codec_and_placement(codec: object, family: object) -> tuple[Codec, Placement]:
    if not isinstance(codec, Codec | str):
        raise type_error(f"codec: must be a Codec or a text such as 'int6 g128 f16', found {describe(codec)}")
    try:
        found = Codec.parse(codec) if isinstance(codec, str) else codec
        compute = dtype_among(family, "family", COMPUTE_TYPES)
        return found, find_placement(found, compute)
    except LowlpValueError as error:
        raise value_error(str(error)) from None


def _codec_of_type(dtype: object, placement: object) -> tuple[Codec, Placement]:
    """Codes alone, of a type as which tiles hold them and a placement that has such."""
    element = as_dtype("dtype", dtype)
    if not isinstance(placement, str):
        raise type_error(f"placement: must be a name such as 'int6.f16', found {describe(placement)}")
    try:
        found = placement_named(placement, "placement")
    except LowlpValueError as error:
        raise value_error(str(error)) from None
    stored = found.name.partition(".")[0]
    code: DType | Table = element
    if stored.startswith("lut"):
        code = Table(found.bits, "f16", "tensor")
        allowed = f"uint{found.bits if found.code_bytes == 1 else 16}"
        fits = element.name == allowed
    else:
        scalar = ScalarFormat.parse(element.name)
        fits = scalar.has_codes and code_format_name(scalar) == stored
        allowed = f"{stored} or u{stored}" if stored.startswith("int") else f"f{found.bits}{stored}"
    if not fits:
        raise value_error(f"dtype: must be {allowed} for the placement {found.name}, found {element.name}")
    return Codec.codes_alone(code), found


def _type_in_tiles(codec: Codec) -> DType:
    """As which tiles hold codes: bipolar numbers and indices as unsigned integers, of more than 8 bits as uint16, of
    vectors with 9 to 15 bits as uint32; where the codes of a vector have several widths, bytes."""
    code = codec.code
    if isinstance(code, Vectors) and len(set(code.bits_of_books)) > 1:
        return named_type("uint8")
    if isinstance(code, DType) and not code.name.startswith("bipolar"):
        return code
    bits = code.stored_bits if isinstance(code, Vectors) else codec.bits
    if bits > 8:
        bits = 32 if isinstance(code, Vectors) and bits < 16 else 16
    return named_type(f"uint{bits}")


def _offsets_of(view: PackedView, offsets: object) -> list[Scalar]:
    if isinstance(offsets, str) or not isinstance(offsets, Sequence):
        raise type_error(f"offsets: must be a list of ints and index scalars, found {describe(offsets)}")
    if len(offsets) != len(view.shape):
        wanted = "a row and k" if len(view.shape) == 2 else "which matrix, a row and k"
        raise value_error(f"offsets: expected {wanted}, found {len(offsets)}")
    return [as_index(f"offsets[{dim}]", offset) for dim, offset in enumerate(offsets)]


def load_packed(
    view: PackedView,
    *,
    offsets: Sequence[int | Scalar],
    layout: Layout | str | None = None,
    shape: Sequence[int] | None = None,
    first_step: int = 0,
    book: int | None = None,
    in_bounds: bool = False,
) -> Tile:
    """A tile of codes loaded from packed weights, as operand A of `dot` (Tilus, section 6.2).

    offsets     the row, a multiple of the rows of a unit, and k, one of its weights of a row, after which matrix it is
                of several; the CPU target reports others
    layout      how threads hold the tile: for a placement of units of R tiles of 16 rows and S steps of 16 along K,
                `local(R, n).column_local(2, 2).spatial(8, 4).local(1, 2)` with n = S steps, or fewer; more units in
                front of it. With fewer, the next n steps of the tile are those of the next unit. R tiles may lie in as
                many warps: `spatial(R, 1).local(1, n)...`
    shape       its extents instead, whole units of rows and along K, to leave the layout to the compiler: the warps of
                the block share the rows
    first_step  the first of a unit's steps that is taken, 0 to S - 1; S = 4 in units of 64 weights of a row
    book        of vectors: whose codes; where these have several widths, which byte of all codes of a vector. None: all
                books', beside each other for each vector: what takes no instructions
    in_bounds   promises that all of the tile lies in the view

    Of vectors of v weights the tile is codes, K / v in a row, with steps of four codes along K, S = U / 4v in units U
    wide, and `layout` is given: `local(R, n).local(2, 1).spatial(8, 4)` for one book; followed by
    `local(1, v)` it is the weights'. With all r books it ends in `local(1, r)`.

    Codes outside of the view are those of stored bits zero. Raises VerificationError for a layout that takes no units,
    KernelTypeError and KernelValueError for other arguments.
    """
    trace = current_trace("ll.load_packed")
    if not isinstance(view, PackedView):
        raise type_error(f"view: must be a view made by ll.view_packed, found {describe(view)}")
    starts = _offsets_of(view, offsets)
    if not is_int(first_step):
        raise type_error(f"first_step: must be an int, found {describe(first_step)}")
    if book is not None and not is_int(book):
        raise type_error(f"book: must be an int or None, found {describe(book)}")
    numbers = {"step": first_step} if book is None else {"step": first_step, "book": book}
    named: dict[str, ir.Attribute] = {
        name: ir.IntegerAttr.get(trace.type("i64"), int(number)) for name, number in numbers.items()
    }
    if in_bounds:
        named["in_bounds"] = ir.UnitAttr.get()
    held, choice = _units_held(view, layout, shape)
    return emit_tile("lowlp.load_packed", view.dtype, held, [view, *starts], named, choice)


def _units_held(view: PackedView, layout: Layout | str | None, shape: object) -> tuple[Layout, Choice]:
    """The layout that the user has named, or the one in which `dot` takes whole units."""
    if layout is not None or shape is None:
        return named_or_default(layout, shape, view.dtype)
    extents = as_extents("shape", shape)
    if len(extents) != 2:
        raise value_error(f"shape: expected 2 extents, rows and K, found {len(extents)}")
    placement = view.placement
    if placement.vector > 1:
        raise value_error(f"layout: must be given for codes of vectors, {placement.name}, in place of a shape")
    num_threads = current_trace("ll.load_packed").num_threads
    held = packed_units(extents[0], extents[1], placement.row_tiles, placement.unit_k // 16, num_threads)
    if held is None:
        raise value_error(
            f"shape: the placement {placement.name} has units of {placement.unit_rows} rows by {placement.unit_k} "
            f"along K, which do not divide {extents[0]} x {extents[1]}"
        )
    return held, Choice.NEEDED
