"""What the codes of a tensor mean: their type, lookup table or codebooks, and what groups have; checked, and without
the codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.codec import MAX_CODE_BITS, Codec, Table
from lowlp.numeric.dtypes import DType, named_dtype
from lowlp.numeric.group_codes import bytes_of_groups, unpacked_codes
from lowlp.numeric.host_array import AnyArray, as_host_array
from lowlp.numeric.lookup_tables import TABLE_TYPES, check_table_shape, table_bits, table_of
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.numeric.vectors import BookPer, Vectors
from lowlp.weights.codebooks import Books
from lowlp.weights.column_order import column_order
from lowlp.weights.group_arrays import Expected, per_group, read_only
from lowlp.weights.second_scales import SecondScale, kept_scale, second_scale_of
from lowlp.weights.super_scales import fields_of_scales
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

Group = int | Literal["channel", "tensor"]
_NAMES = {kind: name for name, kind in SCALE_DTYPES.items()}
_OF_BOOKS = ("codebooks", "book_scales")
_ARRAYS = ("scales", "zeros", "offsets", "scale2", "lut", "permutation", "super_scales", "super_offsets", *_OF_BOOKS)


def code_dtype(value: object) -> DType:
    """The type of that name, or the type itself. Raises `LowlpValueError` where its codes exceed 8 bits."""
    found = named_dtype(value, "dtype")
    if found.bits > MAX_CODE_BITS:
        raise LowlpValueError(f"dtype: {found.name} has {found.bits} bits; a code has 1..{MAX_CODE_BITS}")
    return found


def table_dtype(value: object, bits: int) -> DType:
    """The type of the codes of a table: unsigned integers. Raises `LowlpValueError` where `value` names another one."""
    found = named_dtype(f"uint{bits}" if value is None else value, "dtype")
    if found.name != f"uint{bits}":
        raise LowlpValueError(
            f"dtype: must be None or uint{bits} with a lut of {1 << bits} values, got {found.name}; the lut gives the "
            "values"
        )
    return found


def group_size_of(k: int, group_size: int | None) -> int:
    """`group_size` as a number: None and -1 mean all of K. Raises where K is no multiple of it."""
    if group_size is None:
        return k
    if not isinstance(group_size, int | np.integer) or isinstance(group_size, bool):
        raise LowlpTypeError(f"group_size: expected an int, or None for a whole row, got {group_size!r:.40}")
    if group_size == -1:
        return k
    if group_size < 1 or k % group_size:
        raise LowlpValueError(f"group_size: must divide K = {k} (or be None or -1 for a whole row), got {group_size}")
    return int(group_size)


def check_whole_codes(group_size: int, vectors: Vectors) -> None:
    """Raises `LowlpValueError` where groups of so many weights end within a code."""
    if group_size % vectors.vector:
        raise LowlpValueError(
            f"group_size: must be a multiple of the {vectors.vector} weights of a code, got {group_size}"
        )


def group_of(k: int, group_size: int | str | None) -> tuple[int, Group]:
    """The weights of a row that share a scale, and the group as a `Codec` names it. Raises as `group_size_of`."""
    if isinstance(group_size, str):
        if group_size != "tensor":
            raise LowlpTypeError(
                f"group_size: expected an int, or None for a whole row, got {group_size!r}; the one name is 'tensor'"
            )
        return k, "tensor"
    size = group_size_of(k, group_size)
    return size, "channel" if group_size is None or group_size == -1 else size


def shape_of_words(shape: object) -> tuple[int, ...]:
    """(N, K) or (E, N, K) as ints. Raises `LowlpTypeError` and `LowlpValueError`, which name `shape`."""
    if not isinstance(shape, tuple | list) or not all(
        isinstance(extent, int | np.integer) and not isinstance(extent, bool) for extent in shape
    ):
        raise LowlpTypeError(f"shape: expected (N, K) or (E, N, K), got {shape!r:.40}")
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise LowlpValueError(
            f"shape: expected (N, K) or (E, N, K) with extents of at least 1, got {tuple(shape)!r:.40}"
        )
    return tuple(int(extent) for extent in shape)


@dataclass(frozen=True, eq=False)
class Meaning:
    """The type of the codes, their groups, and the arrays that `QuantizedTensor` describes, read-only; with experts
    those of all rows, [E N, ...]; what groups have in the order in which columns are packed (`column_order`)."""

    dtype: DType
    group_size: int
    group: Group
    scales: AnyArray
    zeros: AnyArray | None = None
    offsets: AnyArray | None = None
    scale2: SecondScale | None = None
    lut: AnyArray | None = None
    permutation: AnyArray | None = None
    super_scales: AnyArray | None = None
    super_offsets: AnyArray | None = None
    super_group: int | Literal["channel"] | None = None
    packed_type: str = ""
    """Of integer scales and offsets of less than 8 bits, which are stored as `packed_codes`."""
    vectors: Vectors | None = None
    """Of codes of vectors; `dtype` is then that of the matrix of codes. The others as `weights.codebooks.Books` has
    them: of blocks of `book_rows` rows and `book_columns` columns, None for all."""
    codebooks: AnyArray | None = None
    book_scales: AnyArray | None = None
    book_rows: int | None = None
    book_columns: int | None = None

    def arrays(self) -> Iterator[tuple[str, AnyArray]]:
        """What there is of the optional arrays, and scales, by name; scale2 as an array."""
        for name in _ARRAYS:
            array = getattr(self, name)
            if array is not None:
                yield name, np.atleast_1d(array) if name == "scale2" else array

    @property
    def codec(self) -> Codec:
        """The codec."""
        return Codec(
            self.code,
            self.group,
            self.packed_type or _type_name(self.scales),
            None if self.zeros is None else _type_name(self.zeros),
            self._type_of_offsets,
            self.scale2 is not None,
            None if self.super_scales is None else _type_name(self.super_scales),
            self.super_group or "channel",
        )

    @property
    def _type_of_offsets(self) -> str | None:
        if self.offsets is None:
            return None
        return _type_name(self.offsets) if self.super_offsets is None else self.packed_type or _type_name(self.offsets)

    def is_packed(self, name: str) -> bool:
        """Whether an array's numbers are `packed_codes`."""
        return bool(self.packed_type) and (name == "scales" or (name == "offsets" and self.super_offsets is not None))

    def numbers(self, name: str, groups: int, rows: slice = slice(None)) -> AnyArray:
        """Scales, zeros or offsets of some rows, which have so many groups each: [rows, groups], or [1, 1]."""
        array: AnyArray = getattr(self, name)[slice(None) if self.group == "tensor" else rows]
        return unpacked_codes(array, self.packed_type, groups) if self.is_packed(name) else array

    def factors(self, name: str, groups: int, rows: slice) -> NDArray[np.float32]:
        """The same in float32, times super-scales or super-offsets where there are any."""
        numbers = self.numbers(name, groups, rows).astype(np.float32)
        supers = {"scales": self.super_scales, "offsets": self.super_offsets}.get(name)
        if supers is not None:
            shared = self.super_group // self.group_size if isinstance(self.super_group, int) else groups
            numbers *= np.repeat(supers[rows].astype(np.float32), min(shared, groups), axis=1)[:, :groups]
        return numbers

    @property
    def code(self) -> DType | Table | Vectors:
        """The type of the codes, or their table, or what vectors they are."""
        if self.vectors is not None:
            return self.vectors
        return self.dtype if self.lut is None else table_code(self.lut)

    def is_by_row(self, name: str, array: AnyArray) -> bool:
        """Whether an array has an entry for each row, in place of one for all."""
        if name in ("lut", "scale2"):
            return {"lut": array.ndim > 1, "scale2": array.size > 1}[name]
        if name in ("permutation", *_OF_BOOKS):
            return False
        return self.group != "tensor"

    def of_rows(self, rows: slice) -> Meaning:
        """That of some rows."""
        changed = {}
        for name, array in self.arrays():
            if self.is_by_row(name, array):
                changed[name] = kept_scale(array[rows]) if name == "scale2" else array[rows]
            elif name in _OF_BOOKS and self.book_rows:
                changed[name] = array[rows.start // self.book_rows : -(-rows.stop // self.book_rows)]
        return replace(self, **cast(Any, changed))

    def at_rows(self, rows: NDArray[np.intp]) -> Meaning:
        """That of single rows of weights [N, K], in this order."""
        changed: dict[str, Any] = {}
        for name, array in self.arrays():
            if self.is_by_row(name, array):
                changed[name] = array[rows]
            elif name in _OF_BOOKS and self.book_rows:
                # Each row has its own books then.
                changed |= {name: array[rows // self.book_rows], "book_rows": 1}
        return replace(self, **cast(Any, changed))

    def of_expert(self) -> Meaning:
        """That of weights [N, K], from that of one expert of [1, N, K]."""
        if self.vectors is None or len(self.vectors.block) < len("ENK"):
            return self
        block = self.vectors.block[1:]
        books: dict[str, Any] = {"book_rows": block[0] or None}
        if not any(block):
            books |= {name: array[0, 0] for name, array in self.arrays() if name in _OF_BOOKS}
        per: BookPer = tuple(extent or None for extent in block) if any(block) else "tensor"
        return replace(self, vectors=self.vectors.with_book_per(per), **books)

    def of_columns(self, columns: slice) -> Meaning:
        """That of some columns, which are whole groups where there are several in a row."""
        changed: dict[str, Any] = {}
        if self.book_columns:
            blocks = slice(columns.start // self.book_columns, -(-columns.stop // self.book_columns))
            changed |= {name: read_only(array[:, blocks]) for name, array in self.arrays() if name in _OF_BOOKS}
        if not isinstance(self.group, int):
            return replace(self, group_size=columns.stop - columns.start, **changed)
        groups = slice(columns.start // self.group_size, columns.stop // self.group_size)
        for name, array in self.arrays():
            if name.startswith("super_"):
                if isinstance(self.super_group, int):
                    first, stop = columns.start // self.super_group, -(-columns.stop // self.super_group)
                    changed[name] = read_only(array[:, first:stop])
            elif self.is_packed(name):
                first, stop = (bytes_of_groups(self.packed_type, end) for end in (groups.start, groups.stop))
                changed[name] = read_only(array[:, first:stop])
            elif name in ("scales", "zeros", "offsets") or (name == "lut" and array.ndim == 3):
                changed[name] = read_only(array[:, groups])
        return replace(self, **cast(Any, changed))


def meaning_of(
    shape: tuple[int, ...],
    *,
    dtype: str | DType | None,
    scales: object,
    zeros: object,
    offsets: object,
    group_size: int | str | None,
    scale2: object,
    lut: object,
    g_idx: object = None,
    permutation: object = None,
    super_scales: object = None,
    super_offsets: object = None,
    super_group_size: int | None = None,
    scale_dtype: object = None,
) -> Meaning:
    """The arguments of `QuantizedTensor`, checked against each other and the shape (N, K) or (E, N, K)."""
    *outer, k = shape
    table = None if lut is None else read_only(table_of(lut))
    code = code_type(dtype, table)
    size, group = group_of(k, group_size)
    expected = Expected((*outer, k // size), "[N, K / group_size]" if len(outer) == 1 else "[E, N, K / group_size]")
    if group == "tensor":
        expected = Expected((1, 1), "[1, 1] with group_size='tensor'")
    if table is not None:
        check_tables(table, shape, size)
    levels = fields_of_scales(
        scales, offsets, super_scales, super_offsets, k, size, group, super_group_size, scale_dtype, expected
    )
    found = Meaning(
        code,
        size,
        group,
        zeros=None if zeros is None else per_group(zeros, "zeros", expected),
        scale2=None if scale2 is None else second_scale_of(scale2, tuple(outer)),
        lut=table,
        permutation=column_order(k, size, g_idx, permutation),
        **levels,
    )
    found.codec  # noqa: B018  refuses what does not go together
    return found


def vector_meaning_of(shape: tuple[int, ...], books: Books, *, scales: object, group_size: int | str | None) -> Meaning:
    """The same for codes of vectors. `scales` None is one of 1 for all weights, a number or an array of one element is
    one for all, and else their shape says the group where `group_size` does not."""
    *outer, k = shape
    array = np.ones((1, 1), np.float32) if scales is None else _scales_of_vectors(scales)
    group: Group = "channel"
    size = k
    if array.size == 1 and (group_size is None or (isinstance(group_size, str) and group_size == "tensor")):
        group, array = "tensor", array.reshape(1, 1)
    elif group_size is None and array.ndim == len(shape) and array.shape[-1] > 1 and k % array.shape[-1] == 0:
        group = size = k // array.shape[-1]
    else:
        size, group = group_of(k, group_size)
    check_whole_codes(size, books.vectors)
    text = "[N, K / group_size]" if len(outer) == 1 else "[E, N, K / group_size]"
    expected = Expected((1, 1), "[1, 1]") if group == "tensor" else Expected((*outer, k // size), text)
    return Meaning(
        named_dtype(books.vectors.code_dtype.name, "codes"),
        size,
        group,
        per_group(array, "scales", expected),
        vectors=books.vectors,
        codebooks=books.entries,
        book_scales=books.scales,
        book_rows=books.rows,
        book_columns=books.columns,
    )


def _scales_of_vectors(scales: object) -> AnyArray:
    if isinstance(scales, float | int) and not isinstance(scales, bool):
        with np.errstate(over="ignore"):
            return np.asarray(scales, np.float32)
    return as_host_array(scales, "scales")


def check_tables(table: AnyArray, shape: tuple[int, ...], group_size: int) -> None:
    """Raises `LowlpValueError` unless there are as many tables as weights of this shape may have."""
    if len(shape) == 2:
        check_table_shape(table, shape[0], shape[1] // group_size)
    elif table.ndim > 1:
        raise LowlpValueError(f"lut: expected one table [2**b] for weights [E, N, K], got shape {list(table.shape)}")


def code_type(dtype: str | DType | None, table: AnyArray | None) -> DType:
    """The type of the codes, from the arguments `dtype` and `lut`."""
    if table is not None:
        return table_dtype(dtype, table_bits(table))
    if dtype is None:
        raise LowlpTypeError("dtype: expected a name such as 'int6' or a DType, or a lut instead, got None")
    return code_dtype(dtype)


def _type_name(array: AnyArray) -> str:
    return _NAMES.get(array.dtype, array.dtype.name)


def table_code(lut: AnyArray) -> Table:
    """Tables as a codec has them."""
    element = next(name for name, kind in TABLE_TYPES.items() if kind == lut.dtype)
    if lut.ndim > 1:
        return Table(table_bits(lut), element, "channel" if lut.ndim == 2 else "group")
    # The sum makes -0 a 0, so that equal tables print alike.
    return Table(table_bits(lut), element, "tensor", tuple((lut.astype(float) + 0.0).tolist()))
