"""`QuantizedTensor`: packed codes, how a code becomes a value, and the scales of its groups.

    value[n, k] = scale[n, g] * (q[n, k] - zero[n, g])        g = k // group_size
    value[n, k] = (scale[n, g] * q[n, k]) + offset[n, g]
    value[n, k] = scale2 * (scale[n, g] * q[n, k])
    value[n, k] = (super_scale[n, h] * scale[n, g]) * (q[n, k] - zero[n, g])       h = k // super_group_size
    value[n, k] = (super_scale[n, h] * scale[n, g]) * q[n, k] + super_offset[n, h] * offset[n, g]
    value[n, k] = scale[n, g] * (C_0[q_0[n, j]][k % v] + C_1[q_1[n, j]][k % v] + ...)       j = k // v

q is the number that a code means in its type, or its entry of a table. With a permutation p of the columns, as GPTQ's
act-order has one, column p(j) is in group j // group_size.

Sources: Tilus (arXiv 2504.12984), section 6, for the affine form; FLUTE (arXiv 2407.10960) for tables; offsets are
those of MLX and GGUF; float zero points those of HQQ; scale2 is that of NVFP4; integer scales under super-scales those
of GGUF's K-quants and of QServe; codebooks C of vectors of v weights are those of AQLM, GPTVQ and QuIP#.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.codec import prescale_of
from lowlp.numeric.dtypes import DType
from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.lookup_tables import table_of
from lowlp.numeric.vectors import BookPer
from lowlp.weights.boundaries import cut_of, matrices_of, rows_of
from lowlp.weights.codebooks import (
    GivenBooks,
    books_of,
    check_exchanged,
    checked_vector_codes,
    codes_of_columns,
    columns_of_codes,
)
from lowlp.weights.codes import checked_codes, checked_words, codes_without_number, refuse_codes_without_number
from lowlp.weights.dequantize import values_at, values_of_rows
from lowlp.weights.families import family_for, family_named
from lowlp.weights.family_choice import family_for_rows
from lowlp.weights.given_meaning import books_alone, form_and_meaning
from lowlp.weights.group_arrays import read_only
from lowlp.weights.held_weights import HeldWeights
from lowlp.weights.meaning import Meaning, code_type, meaning_of, vector_meaning_of
from lowlp.weights.second_scales import SecondScale
from lowlp.weights.stored_arrays import arguments_of, stored_arrays
from lowlp.weights.words import BAND_ELEMENTS, Words, WordsForm, form_for


class QuantizedTensor(HeldWeights):
    """Weights [N, K] (PyTorch's out_features, in_features), or of E experts [E, N, K], held as packed codes of 1 to 8
    bits, or of 1 to 16 bits that stand for vectors of 2 to 16 weights.

    codes       uint8 [N, K] or [E, N, K]: the low b bits of each, the others 0; two's complement if the type is signed
    dtype       name or `DType` of the codes ('uint4', 'int6', 'f6e3m2', 'bipolar2', ...); with `lut` None or 'uint{b}'
    scales      [N, K / group_size] or [E, N, K / group_size], finite: float16, bfloat16 or float32, or the types
                float8_e8m0fnu and float8_e4m3fn of `ml_dtypes` or PyTorch; [1, 1] with group_size='tensor'
    zeros       optional, integer types only: of the shape of scales, integers (in -32768..32767) or float16, bfloat16
                or float32; in the units of q
    offsets     optional, excludes zeros and scale2: of the shape of scales, float16, bfloat16 or float32; in the units
                of the weights
    group_size  a divisor of K; None or -1: one group a row; 'tensor': one group in all
    scale2      optional, rounded to float32: a finite number, or an array or tensor of one, which multiplies all
                weights; or one for each row, [N] or [E, N]
    lut         optional, values of the codes, finite float16 or float32: [2**b], one table a row [N, 2**b], or one a
                group [N, K / group_size, 2**b]; a list of numbers becomes float32. One for all of [E, N, K]
    g_idx       optional, integers [K]: the group of each column, of which each group has group_size; columns of a group
                are packed side by side, in their order. `codes`, `dequantize()` and x have them as they are
    permutation optional, integers [K], excludes g_idx: column permutation[j] is packed as the j-th
    super_scales  optional, excludes scale2: [N, ceil(K / super_group_size)] or [E, ...], finite float16, bfloat16 or
                float32. Scales are then integers, for groups of a row
    super_offsets  optional, of the shape and type of super_scales: offsets are then integers too. GGUF subtracts
                minima, so here these are -dmin
    super_group_size  a multiple of group_size, of which a row may end with a part; None or -1: one super-group a row
    scale_dtype  type of integer scales and offsets, 'uint4', 'int6', 'uint8' or 'int8'; None: that of their arrays,
                uint8 or int8. Two of uint4 are kept in a byte, four of int6 in three
    codebooks   of codes of vectors: [R, 2**b, v], R = 1 to 4 books for all weights, whose entries add up, b = 1 to 16,
                v = 2, 4, 8 or 16 weights side by side along K; or one set for each block of weights, [blocks of N,
                blocks of K, R, 2**b, v], of experts with E in front. float16, bfloat16, int8 or float8_e4m3fn. Or the
                name of computed ones of v = 8: 'e8p', 'e8p+e81b' or 'e8p+e8p'. Codes are then [N, K / v, R] or [E, N,
                K / v, R], uint8, or uint16 for b > 8, in 0..2**b - 1. Scales are optional: an array as above with
                groups of whole codes, whose size its shape says where `group_size` does not, or a number for all. Of
                the other arguments only the next two and `activation` are allowed
    book_scales  floats, rounded to float32: factors of int8, float8_e4m3fn and computed books, [R] or [blocks of N,
                blocks of K, R]; None: 1, and 1 / 2.04 and 1 / 3.45 of the second computed book, as QuIP# has it
    book_per    the weights of a block, (rows, columns), of experts (1, rows, columns), None for all of an axis; the
                last blocks may be smaller. None: all blocks are alike
    activation  the family: for activations of which type the codes are packed, 'f16', 'bf16', 's8', 'e4m3', or 'b1' for
                products of planes of integer codes. None: 'f16', or 'bf16' for floats with more exponent bits than f16
                has. `lowlp.linear` takes f16 and bf16

    Arrays are numpy's or PyTorch's on the CPU. Codes are packed at once, some rows at a time, and not kept; the others
    are kept without a copy where possible, and read-only: do not change them afterwards. Tensors are equal where codec,
    shape, family and all arrays are, bit for bit; pickles and copies hold these and nothing else. `from_packed` takes
    words that are packed, `from_arrays` what `to_arrays` gave. `qw[a:b]` and `qw[a:b, c:d]` are slices along N and K
    between units.

    Raises `LowlpTypeError` for other types of arguments or elements and `LowlpValueError` for a wrong shape, a code of
    more than b bits or one that means NaN or infinity, scales, zeros, offsets or tables that are not finite, and codes
    that the packed format does not have for that family.
    """

    __slots__ = ()

    def __init__(
        self,
        codes: object,
        *,
        dtype: str | DType | None = None,
        scales: object = None,
        zeros: object = None,
        offsets: object = None,
        group_size: int | Literal["tensor"] | None = None,
        scale2: object = None,
        lut: object = None,
        g_idx: object = None,
        permutation: object = None,
        activation: object = None,
        super_scales: object = None,
        super_offsets: object = None,
        super_group_size: int | None = None,
        scale_dtype: object = None,
        codebooks: object = None,
        book_scales: object = None,
        book_per: BookPer | None = None,
    ) -> None:
        given = books_alone(locals())
        if given is not None:
            self._hold_vectors(codes, given, book_scales, book_per, scales, group_size, activation)
            return
        array = checked_codes(codes, code_type(dtype, None if lut is None else table_of(lut)))
        meaning = meaning_of(
            array.shape,
            dtype=dtype,
            scales=scales,
            zeros=zeros,
            offsets=offsets,
            group_size=group_size,
            scale2=scale2,
            lut=lut,
            g_idx=g_idx,
            permutation=permutation,
            super_scales=super_scales,
            super_offsets=super_offsets,
            super_group_size=super_group_size,
            scale_dtype=scale_dtype,
        )
        form = form_for(array.shape, meaning.group_size, meaning.code, activation)
        may_lack_number = lut is None and codes_without_number(meaning.dtype).size
        all_rows = array.reshape(-1, form.k)

        def read(rows: slice) -> Any:
            if may_lack_number:
                refuse_codes_without_number(all_rows[rows], meaning.dtype, form, rows.start)
            band = all_rows[rows]
            return band if meaning.permutation is None else np.take(band, meaning.permutation, axis=1)

        self._hold(form, meaning, form.pack_from(read))

    @classmethod
    def from_packed(
        cls,
        packed: object,
        shape: Sequence[int],
        *,
        dtype: str | DType | None = None,
        scales: object = None,
        zeros: object = None,
        offsets: object = None,
        group_size: int | Literal["tensor"] | None = None,
        scale2: object = None,
        lut: object = None,
        g_idx: object = None,
        permutation: object = None,
        activation: object = None,
        super_scales: object = None,
        super_offsets: object = None,
        super_group_size: int | None = None,
        scale_dtype: object = None,
        codebooks: object = None,
        book_scales: object = None,
        book_per: BookPer | None = None,
        is_spread: bool = False,
    ) -> QuantizedTensor:
        """Weights whose codes are packed, as `lowlp.pack` and `packed` have them.

        packed  uint32 in the shape of `lowlp.packing.packed_shape`, in the packed format's version of this library,
                with zeros as padding; kept without a copy where it begins at 16 bytes
        shape   (N, K), or (E, N, K)
        permutation  column permutation[j] of the weights is the j-th of the words; with g_idx these are packed group by
                group, the columns of a group in their own order

        is_spread    words are those of `spread()`: of two books that are one, each vector's codes name an entry of both

        The other arguments, and errors, are those of `QuantizedTensor`; `activation` is the family for which they are
        packed.
        """
        arguments = {name: value for name, value in locals().items() if name not in ("cls", "packed", "shape")}
        form, meaning = form_and_meaning(shape, **arguments)
        has_table = lut is not None or codebooks is not None
        words = checked_words(packed, form, meaning.dtype, has_table)
        if meaning.vectors is not None and meaning.vectors.spread == "exchange":
            for rows in form.bands(BAND_ELEMENTS):
                check_exchanged(form.codes(words, rows), meaning.vectors, rows.start)
        return cls.of_parts(form, meaning, words)

    @classmethod
    def of_trusted_words(cls, words: Words, form: WordsForm, **parts: Any) -> QuantizedTensor:
        """As `from_packed` with the other arguments `parts`, of all rows, for words of this form that hold numbers
        only; for the library itself."""
        return cls.of_parts(form, meaning_of((form.rows, form.k), **parts), words)

    @classmethod
    def of_parts(cls, form: WordsForm, meaning: Meaning, words: Words) -> QuantizedTensor:
        """The tensor of parts that are known to fit each other; for the library itself."""
        found = cls.__new__(cls)
        found._hold(form, meaning, words)
        return found

    def _hold_vectors(
        self,
        codes: object,
        given: GivenBooks,
        book_scales: object,
        book_per: BookPer | None,
        scales: object,
        group_size: int | str | None,
        activation: object,
    ) -> None:
        array = checked_vector_codes(codes, given.vectors)
        shape = (*array.shape[:-2], array.shape[-2] * given.vectors.vector)
        books = books_of(given, book_scales, book_per, shape)
        meaning = vector_meaning_of(shape, books, scales=scales, group_size=group_size)
        form = form_for(shape, meaning.group_size, meaning.code, activation)
        all_rows = array.reshape(-1, *array.shape[-2:])
        self._hold(form, meaning, form.pack_from(lambda rows: columns_of_codes(all_rows[rows], books.vectors)))

    @property
    def codes(self) -> NDArray[Any]:
        """uint8 [N, K] or [E, N, K], read-only: unpacked at every use, and not kept. Of vectors [N, K / v, R] or
        [E, N, K / v, R], uint8, or uint16 for codes of more than 8 bits."""
        packed, order = self._form.all_codes(self._words), self._meaning.permutation
        vectors = self._meaning.vectors
        if vectors is not None:
            codes = codes_of_columns(packed.reshape(-1, packed.shape[-1]), vectors)
            return read_only(codes.reshape(*packed.shape[:-1], *codes.shape[1:]))
        return read_only(packed if order is None else packed[..., np.argsort(order)])

    @property
    def scales(self) -> AnyArray:
        """[N, K / group_size], or [1, 1] for the whole tensor; read-only."""
        return self._by_matrix(self._numbers("scales"))

    @property
    def zeros(self) -> AnyArray | None:
        """Of the shape of scales, integers or floats, read-only; None without zero points."""
        return None if self._meaning.zeros is None else self._by_matrix(self._meaning.zeros)

    @property
    def offsets(self) -> AnyArray | None:
        """Of the shape of scales, floats, read-only; None without offsets."""
        return None if self._meaning.offsets is None else self._by_matrix(self._numbers("offsets"))

    @property
    def super_scales(self) -> AnyArray | None:
        """[N, ceil(K / super_group_size)], floats, read-only; None for scales of one level."""
        return None if self._meaning.super_scales is None else self._by_matrix(self._meaning.super_scales)

    @property
    def super_offsets(self) -> AnyArray | None:
        """Of the shape of super_scales, floats, read-only; None where offsets are not integers."""
        return None if self._meaning.super_offsets is None else self._by_matrix(self._meaning.super_offsets)

    @property
    def super_group_size(self) -> int | None:
        """Weights of a row that share a super-scale, K for one a row; None for scales of one level."""
        if self._meaning.super_scales is None:
            return None
        return self._meaning.super_group if isinstance(self._meaning.super_group, int) else self._form.k

    @property
    def scale2(self) -> SecondScale | None:
        """The second scale: a number where all rows have the same, else float32 [N] or [E, N], read-only; None without
        one."""
        scale = self._meaning.scale2
        return scale.reshape(self.shape[:-1]) if isinstance(scale, np.ndarray) else scale

    @property
    def lut(self) -> AnyArray | None:
        """[2**b], [N, 2**b] or [N, K / group_size, 2**b], float16 or float32, read-only; None without tables."""
        return self._meaning.lut

    @property
    def codebooks(self) -> AnyArray | None:
        """[R, 2**b, v], or [blocks of N, blocks of K, R, 2**b, v] with E in front for experts, read-only; None for
        codes of one weight and for computed books."""
        return self._of_blocks(self._meaning.codebooks)

    @property
    def book_scales(self) -> AnyArray | None:
        """[R], or [blocks of N, blocks of K, R] with E in front for experts, float32, read-only; None for books of
        float16 and bfloat16 and codes of one weight."""
        return self._of_blocks(self._meaning.book_scales)

    @property
    def permutation(self) -> AnyArray | None:
        """The columns in the order in which they are packed, int32 [K], read-only; None where that is their own."""
        return self._meaning.permutation

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, K), or (E, N, K)."""
        matrix = (self._form.n, self._form.k)
        return matrix if self._form.experts is None else (self._form.experts, *matrix)

    @property
    def dtype(self) -> DType:
        """The type of the codes; with a table, which gives them another meaning, 'uint{b}'; of vectors that of
        `codes`, 'uint8' or 'uint16'."""
        return self._meaning.dtype

    @property
    def bits(self) -> int:
        """Bits of a code; of vectors of that of a book."""
        return self._codec.bits

    @property
    def group_size(self) -> int:
        """Weights of a row that share a scale; K for one group a row or one in all."""
        return self._meaning.group_size

    def prescale(self, compute: str | DType) -> float | None:
        """As `Codec.prescale`, over all tables of this tensor where there are several."""
        if self.lut is None:
            return self._codec.prescale(compute)
        return prescale_of(self.lut, compute)

    def dequantize(self, rows: slice | AnyArray | None = None) -> NDArray[np.float32]:
        """The exact meaning of the weights, float32 [N, K] or [E, N, K]; or of some rows of [N, K], [rows, K].

        rows  a slice without a step, or integers of one dimension in 0..N-1, in any order and as often as they come;
              None: all. Units that have none of them are not unpacked

        Computed in float32, rounding after each step, in this order: `s * (q - z)`, or `(s * q) + b`; with a second
        scale `s2 * (s * (q - z))`. With super-scales, s is the rounded product `super_scale * scale`, and b of integer
        offsets `super_offset * offset`. Of vectors the entries are added in the order of the books, each times its
        book's scale first where there are such, and the sum is multiplied by the scale:
        `s * ((c_0 * C_0[q_0] + c_1 * C_1[q_1]) + ...)`. Raises `LowlpTypeError` and `LowlpValueError` for `rows`.
        """
        if rows is None:
            every = slice(0, self._form.rows)
            return values_of_rows(self._form, self._words, self._meaning, every).reshape(self.shape)
        found = rows_of(rows, self.shape)
        if isinstance(found, slice):
            return values_of_rows(self._form, self._words, self._meaning, found)
        return values_at(self._form, self._words, self._meaning, found)

    def spread(self) -> QuantizedTensor:
        """The same weights with packed codes of vectors that have a bit more, by which the lanes of a GPU read
        different banks of shared memory (docs/packed-format.md); this tensor where codes cannot have it, or have it.
        Made at the first use, and kept. `lowlp.linear` takes it on a GPU for large weights, and for those whose two
        books are one; for others it is worth it where few rows count and 64 and more do not."""
        vectors = self._meaning.vectors
        if vectors is None or vectors.spread or not vectors.can_spread:
            return self
        with self._lock:
            if self._spread is None:
                meaning = replace(self._meaning, vectors=vectors.as_spread())
                form, mine, words = replace(self._form, code=meaning.code), self._form, self._words

                def read(rows: slice) -> Any:
                    return columns_of_codes(codes_of_columns(mine.codes(words, rows), vectors), vectors.as_spread())

                self._spread = self.of_parts(form, meaning, form.pack_from(read))
            assert isinstance(self._spread, QuantizedTensor)
            return self._spread

    def pack_for(self, activation: object, rows: int | tuple[int, int] | None = None) -> QuantizedTensor:
        """The same weights in the family of an activation type: repacked some rows at a time, with scales and the like
        shared; this tensor where it is of that family.

        rows  of activations, or the fewest and the most: by them planes of single bits are chosen for integers where
              they are faster than bytes

        Raises as `QuantizedTensor` for `activation`, and `LowlpTypeError` and `LowlpValueError` for `rows`.
        """
        n, k = self.shape[-2:]
        wanted = activation if rows is None else family_for_rows(self.codec, n, k, activation, rows)
        family = family_for(self._form.code, family_named(wanted))
        if family == self.family:
            return self
        form = replace(self._form, family=family)
        words = self._others.get(family)
        return self.of_parts(form, self._meaning, self._form.repacked(self._words, family) if words is None else words)

    def to_arrays(self) -> tuple[dict[str, AnyArray], str]:
        """A flat dict of contiguous arrays and a header of JSON text, for files such as those of safetensors:

            arrays, header = qw.to_arrays()
            safetensors.numpy.save_file(arrays, path, metadata={"lowlp": header})

        Arrays are 'packed', 'scales', and those there are of 'zeros', 'offsets', 'scale2', 'lut', 'permutation',
        'super_scales', 'super_offsets', 'codebooks' and 'book_scales'; bfloat16 is stored as uint16, floats of 8 bits
        and packed integer scales as uint8. The header has versions of its own and of the packed format.
        """
        return stored_arrays(self.packed, self.shape, self.family, self._meaning)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, object], header: str) -> QuantizedTensor:
        """The tensor that `to_arrays` gave. Arrays are numpy's or PyTorch's on the CPU, and kept without a copy where
        possible. Raises `LowlpTypeError` and `LowlpValueError` for a header or packed format of another version, by its
        number, and for arrays that are missing, unknown, or of other types and shapes than the header says."""
        return cls.from_packed(**arguments_of(arrays, header))

    def __getitem__(self, index: object) -> QuantizedTensor:
        """Rows `qw[a:b]`, and columns `qw[a:b, c:d]`: between units of the packed format along N, and between units and
        groups along K; or up to the tensor's own ends. Words are views, or packed anew where a matrix of the slice's
        shape has units of another shape. Raises `LowlpValueError`, which names the next boundaries, for other places.
        Weights with a permutation have no slices along K. Of [E, N, K] `qw[e]` is a matrix, and `qw[a:b]` some of them.
        """
        if self._form.experts is not None:
            return self._matrices(index, self._form.experts)
        rows, columns = cut_of(index, self._form, self._meaning)
        meaning = self._meaning if rows == slice(0, self._form.n) else self._meaning.of_rows(rows)
        if columns != slice(0, self._form.k):
            meaning = meaning.of_columns(columns)
        form = self._form.of(rows.stop - rows.start, columns.stop - columns.start, meaning.group_size)
        unit_k = self._form.unit_k
        words = self._words[self._form.units(rows), columns.start // unit_k : -(-columns.stop // unit_k)]
        return self.of_parts(form, meaning, form.in_units_of(words, self._form.placement))

    def _matrices(self, index: object, experts: int) -> QuantizedTensor:
        first, count = matrices_of(index, experts)
        rows = slice(first * self._form.n, (first + (count or 1)) * self._form.n)
        units = self._form.shape_of_matrix[0]
        words = self._words[first * units : (first + (count or 1)) * units]
        meaning = self._meaning.of_rows(rows)
        if count is None:
            meaning = meaning.of_expert()
        return self.of_parts(replace(self._form, experts=count, code=meaning.code), meaning, words)

    def _numbers(self, name: str) -> AnyArray:
        """Scales or offsets of all rows, unpacked where they are of less than 8 bits."""
        array = self._meaning.numbers(name, self._form.k // self._meaning.group_size)
        return read_only(array) if self._meaning.is_packed(name) else array

    def _by_matrix(self, array: AnyArray) -> AnyArray:
        """What groups have in all rows, as users see it."""
        if self._form.experts is None or self._meaning.group == "tensor":
            return array
        return array.reshape(self._form.experts, self._form.n, -1)

    def _of_blocks(self, array: AnyArray | None) -> AnyArray | None:
        """What blocks have in all rows, as users see it."""
        if array is None or self._form.experts is None or self._meaning.book_rows is None:
            return array
        return array.reshape(self._form.experts, -1, *array.shape[1:])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuantizedTensor):
            return NotImplemented
        if self is other:
            return True
        if (self._codec, self.shape, self.family) != (other._codec, other.shape, other.family):
            return False
        if not np.array_equal(self._words, other._words):
            return False
        mine, others = dict(self._meaning.arrays()), dict(other._meaning.arrays())
        return mine.keys() == others.keys() and all(mine[name].tobytes() == others[name].tobytes() for name in mine)

    def __hash__(self) -> int:
        return hash((self._codec, self.shape, self.family))

    def __reduce__(self) -> tuple[Any, ...]:
        return QuantizedTensor.from_arrays, self.to_arrays()

    def __repr__(self) -> str:
        names = ("zeros", "offsets", "scale2", "permutation")
        more = "".join(f", {name}" for name in names if getattr(self._meaning, name) is not None)
        scales = self._meaning.scales.dtype.name
        if self._codec.super_scale:
            scales = self._codec.scale
            more += f", super_scales={self._codec.super_scale} of {self._codec.super_group}"
        group = "tensor" if self._codec.group == "tensor" else self.group_size
        code = self.dtype.name if self.lut is None else f"lut {list(self.lut.shape)}"
        if self._meaning.vectors is not None:
            code = str(self._meaning.vectors)
        return (
            f"QuantizedTensor({code}, shape={self.shape}, group_size={group!r}, "
            f"scales={scales}{more}, family={self.family}, nbytes={self.nbytes})"
        )
