"""Quantisation of weights: round to nearest, per group of K.

The scale is rounded to its own type first, and the codes are computed from the rounded scale: they are the best for the
scale that is stored. Rounding goes up where the nearest scale would leave the largest weight out of range, so for
integers |w - value| <= |scale| / 2 within the range of the codes, and that is all weights but those that int2 and int3
clip.

    integers, zero_point=False   s = max|w| / (2^(b-1) - 1), q = w / s. Unsigned types hold q + 2^(b-1) with zero
                                 points of 2^(b-1) everywhere; where no weight of the tensor is negative they hold q
                                 alone, with s = max|w| / (2^b - 1) and no zero points.
      int2, int3                 the lowest code is used too: s = -m / 2^(b-1) with m the weight of largest magnitude,
                                 so s may be negative, as in GGUF's Q4_0. Weights of the other sign beyond
                                 (2^(b-1) - 1) / 2^(b-1) |m| become that. e8m0 has no sign, and takes the line above
      of one bit                 the same: q is -1 or 0, and the value -s, which is m, or 0
    integers, zero_point=True    s = (max(w, 0) - min(w, 0)) / (2^b - 1), z = -min(w, 0) / s: integers
      'float'                    the same, z not rounded to an integer (HQQ): float16 with such scales, else float32
      'offset'                   o = min(w), rounded down to the type of the scales (e8m0 and e4m3: float32),
                                 s = (max(w) - o) / (2^b - 1), value s * q + o
    floats                       s = max|w| / (largest finite value)
    bipolar                      s = max|w| / (2^b - 1); for bipolar1 the mean of |w|, its least-squares choice
                                 (XNOR-Net, arXiv 1603.05279, section 3.1)
    tables                       s = the least with which the table spans the weights: for nf(b) max|w|; the nearest
                                 entry to w / s, midway between two the lower one

Scales in two levels are made of these: `lowlp.weights.quantize.two_level_scales`.

OCP MX's and NVFP4's own scales are those of the publications: `lowlp.scale_types`. Scales of e4m3 are those above over
a second scale of the tensor, with which the largest is 448 (NVFP4: max|w| / (6 * 448)).

A group of zeros has the scale 1 and dequantises to zeros (in bipolar types, which have no zero: 0, or 2^-127 in e8m0).

On CUDA tensors the same is computed on their GPU, bit for bit, but for bipolar1 and `search`, whose sums each library
takes in an order of its own.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.array_ops import ArrayOps
from lowlp.numeric.codec import OFFSET_TYPES, Codec, Table
from lowlp.numeric.dtypes import DType
from lowlp.numeric.group_codes import PACKED_CODE_TYPES
from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.lookup_tables import TABLE_TYPES, nf, table_bits, table_of
from lowlp.numeric.named_codecs import NAMED_BOOKS, NAMED_CODECS, NamedCodec
from lowlp.numeric.scale_types import scale_type
from lowlp.numeric.vector_ops import library_of
from lowlp.numeric.vectors import BookPer, Vectors
from lowlp.numeric.vectors import vq as make_vq
from lowlp.weights.meaning import check_tables, code_dtype, group_of, table_code, table_dtype
from lowlp.weights.quantize.group_scales import Extremes, GroupScales, ScaleRule
from lowlp.weights.quantize.nearest_codes import Encoder, IntegerEncoder, TableEncoder, TypeEncoder
from lowlp.weights.quantize.progress_bar import shown
from lowlp.weights.quantize.two_level_scales import TwoLevelRule
from lowlp.weights.quantize.vector_quantization import quantize_by_books, shares_of_importance
from lowlp.weights.quantize.weight_arrays import checked_seed, checked_shape
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.words import Words, WordsForm, empty_words, form_for
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

__all__ = ["QuantizedTensor", "quantize"]

T = TypeVar("T")
_ZERO_POINTS: dict[object, str] = {True: "zeros", "float": "float zeros", "offset": "offsets"}


class _Default(int):
    """A number that nobody gave."""


class _DefaultName(str):
    """A name that nobody gave."""

    __slots__ = ()


_GROUP_SIZE = _Default(128)
_SCALE = _DefaultName("f16")
_SCALE_OF_BF16 = _DefaultName("bf16")
SEARCH_FACTORS = tuple(1 - i / 40 for i in range(21))
"""What `search=True` tries: 1, 0.975, ..., 0.5 times the scale; of e8m0 scales 1, 2 and 1/2 times."""


def scale_by_default(family: str) -> str:
    """The scale_dtype of weights for activations of this type alone: theirs, so that bf16 x bf16 is rounded once in it,
    where f16 scales have to be multiplied in f32. As if nobody gave it: codecs that have scales of their own, books,
    and zero points in the type of the scales, pass it over."""
    return _SCALE_OF_BF16 if family == "bf16" else _SCALE


def quantize(
    w: object,
    dtype: object = None,
    group_size: int | Literal["tensor"] | None = _GROUP_SIZE,
    zero_point: bool | Literal["float", "offset"] = False,
    scale_dtype: object = _SCALE,
    progress: bool = False,
    *,
    lut: object = None,
    search: bool | Sequence[float] = False,
    activation: object = None,
    vq: Vectors | None = None,
    book_per: BookPer = "tensor",
    importance: object = None,
    seed: int = 0,
    rows: int | tuple[int, int] | None = None,
) -> QuantizedTensor:
    """Quantises weights, each group of a row by itself, to nearest with ties to even; or vectors of them by codebooks.

    w            [N, K], or of experts [E, N, K], float16, bfloat16, float32 or float64, finite in float32; numpy, or
                 PyTorch on the CPU, or on a GPU, which then computes; the result is in host memory
    dtype        any type of 1 to 8 bits; None: 'int6', or 'uint{b}' with a lut; or the name of a whole codec, which
                 decides its groups and scales: 'mxfp4', 'nvfp4', 'nf4', 'aqlm-2x8' and the like
                 (`lowlp.numeric.named_codecs`);
                 or a `Codec`, which says the group, the scales and the rest too; of codecs with super-scales, integer
                 offsets have the type of the scales
    group_size   a divisor of K; None or -1: one group a row; 'tensor': one scale for all weights
    zero_point   integers only, for weights that are not centred at 0: True for an integer zero point a group, 'float'
                 for one that is not rounded, 'offset' for `s * q + b` (unsigned types)
    scale_dtype  'f16', 'bf16', 'f32'; 'e8m0', powers of two, as in MXFP4, MXFP6 and MXFP8 with groups of 32; 'e4m3',
                 with a second scale of the tensor, as in NVFP4 with groups of 16; types of torch and numpy too
    progress     show a bar, where tqdm is installed
    lut          values of the codes: [2**b], one table a row [N, 2**b], or one a group [N, K / group_size, 2**b], as
                 `QuantizedTensor` takes them; `lowlp.nf(4)` for example
    search       True: of the scales that are 1, 0.975, ..., 0.5 times that of the formula (of e8m0 scales 1, 2 and 1/2
                 times) each group takes the one of least squared error, of equal ones the first; or other positive
                 factors, with 1 tried before them. Takes as many times as long as there are factors.
    activation   the family: for activations of which type the codes are packed, as `QuantizedTensor` has it; None:
                 'f16'
    rows         with the type of quantised activations, how many rows of them there are, or the fewest and the most:
                 by them codes of integers are packed for products of bytes or of planes of bits (`pack_for`)
    vq           `lowlp.vq(vector=8, bits=8, books=2)` and the like: codebooks are learnt from the weights, by k-means
                 (`lowlp.weights.quantize.learnt_codebooks` says how). Goes with book_per, importance, seed, group_size
                 (a row, if it is not given) and scale_dtype ('f16', 'bf16' or 'f32')
    book_per     with vq, which weights share books: 'tensor', or blocks by their rows and columns, (256, 256) for
                 example, of experts (1, 256, 256); None is all of an axis
    importance   with vq or search, weights of squared errors: [K], for example the mean squares of calibration inputs,
                 or of w's shape; None: all alike
    seed         with vq, where books start, and which vectors of large matrices they are learnt from. The same seed
                 gives the same codes on every device, but for entries nearer to a tie than 1e-12

    The formulas are at the head of this module. Works in float32 on a few rows at a time, on up to 8 cores, and packs
    these before it takes the next ones. Raises
    `LowlpTypeError` for other types and `LowlpValueError` for a wrong shape, weights that are NaN or infinite, a group
    size that does not divide K, zero points with a type that has none, and weights too large for the type of the scale.
    Scales too small for it become its smallest positive value.
    """
    if rows is not None:
        found = quantize(
            w, dtype, group_size, zero_point, scale_dtype, progress, lut=lut, search=search, activation=activation,
            vq=vq, book_per=book_per, importance=importance, seed=seed,
        )  # fmt: skip
        return found.pack_for(activation, rows)
    checked_seed(seed)
    if isinstance(dtype, str) and dtype in NAMED_BOOKS and vq is None:
        named = NAMED_BOOKS[dtype]
        if book_per not in ("tensor", named.book_per):
            raise LowlpValueError(f"book_per: {dtype} has {named.book_per}, got {book_per!r:.40}")
        dtype, vq, book_per = None, make_vq(named.vector, named.bits, named.books), named.book_per
    if vq is not None:
        _refuse_with_books(dtype=dtype, zero_point=zero_point, lut=lut, search=search)
        group = None if group_size is _GROUP_SIZE else group_size
        scale_dtype = str(_SCALE) if isinstance(scale_dtype, _DefaultName) else scale_dtype
        return quantize_by_books(w, vq, book_per, group, scale_dtype, importance, seed, progress, activation)
    _refuse_without_books(book_per, importance, search)
    if isinstance(dtype, Codec):
        if group_size is not _GROUP_SIZE or not isinstance(scale_dtype, _DefaultName) or zero_point or lut is not None:
            raise LowlpValueError("dtype: a Codec says group_size, zero_point, scale_dtype and lut; leave them out")
        return _quantize_by_codec(w, dtype, progress, search, activation, importance)
    if isinstance(dtype, str) and dtype in NAMED_CODECS:
        dtype, group_size, scale_dtype, lut = _arguments_of(NAMED_CODECS[dtype], group_size, scale_dtype, lut)
    group_size = int(_GROUP_SIZE) if group_size is _GROUP_SIZE else group_size
    if isinstance(scale_dtype, _DefaultName):
        is_float = isinstance(zero_point, str) and zero_point in ("float", "offset")
        scale_dtype = str(_SCALE if is_float else scale_dtype)
    ops, weights = library_of(w, "w")
    return quantize_with(
        ops,
        weights,
        dtype,
        group_size,
        zero_point,
        scale_dtype,
        progress,
        lut,
        search,
        activation,
        importance=importance,
    )


def _refuse_with_books(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise LowlpValueError(f"{name}: not allowed with vq, which says what codes mean; got {value!r:.40}")


def _refuse_without_books(book_per: object, importance: object, search: object) -> None:
    if not (isinstance(book_per, str) and book_per == "tensor"):
        raise LowlpValueError("book_per: goes with vq, which is not given")
    if importance is not None and search is False:
        raise LowlpValueError("importance: goes with vq or search, of which neither is given")


def _arguments_of(codec: NamedCodec, group_size: Any, scale_dtype: object, lut: object) -> tuple[Any, Any, Any, Any]:
    """What a name stands for: type of the codes, group, type of the scales, table. What is given must agree."""
    if lut is not None:
        raise LowlpValueError(f"lut: {codec.name} says what codes mean, so no lut may be given")
    if codec.table_bits:
        return None, group_size, scale_dtype, nf(codec.table_bits)
    if group_size is not _GROUP_SIZE:
        codec.check("group_size", group_size, codec.group_size)
    if not isinstance(scale_dtype, _DefaultName):
        codec.check("scale_dtype", scale_type(scale_dtype), codec.scale)
    return codec.dtype, codec.group_size, codec.scale, None


def _quantize_by_codec(
    w: object,
    codec: Codec,
    progress: bool,
    search: bool | Sequence[float],
    activation: object,
    importance: object,
) -> QuantizedTensor:
    """Raises `LowlpValueError` for a codec that `quantize` does not make: one with tables that it does not know, or
    with zero points of another type."""
    code = codec.code
    if isinstance(code, Vectors):
        group = None if codec.group == "channel" else codec.group
        return quantize_by_books(w, code, code.book_per, group, codec.scale, importance, 0, progress, activation)
    table = codec.table
    zero_point: bool | Literal["float", "offset"] = codec.zeros is not None
    if codec.offsets is not None or codec.zeros in OFFSET_TYPES:
        zero_point = "float" if codec.offsets is None else "offset"
    ops, weights = library_of(w, "w")
    found = quantize_with(
        ops,
        weights,
        None if isinstance(code, Table) else code,
        None if codec.group == "channel" else codec.group,
        zero_point,
        "f32" if codec.super_scale else codec.scale,
        progress,
        None if table is None else np.asarray(codec.values(), TABLE_TYPES[table.element]),
        search,
        activation,
        codec if codec.super_scale else None,
        importance,
    )
    if found.codec != codec:
        raise LowlpValueError(f"dtype: quantize makes {found.codec} of such weights, not {codec}")
    return found


def quantize_with(
    ops: ArrayOps,
    w: Any,
    dtype: object,
    group_size: int | str | None,
    zero_point: bool | str,
    scale_dtype: object,
    progress: bool,
    lut: object,
    search: bool | Sequence[float],
    activation: object = None,
    levels: Codec | None = None,
    importance: object = None,
) -> QuantizedTensor:
    """`quantize` in the array library of w; `levels`: the codec of scales in two levels."""
    table = None if lut is None else table_of(lut)
    found = code_dtype("int6" if dtype is None else dtype) if table is None else table_dtype(dtype, table_bits(table))
    shape = checked_shape(w)
    size, group = group_of(shape[-1], group_size)
    if table is not None:
        check_tables(table, shape, size)
    scale = scale_type(scale_dtype)
    code = found if table is None else table_code(table)
    form = form_for(shape, size, code, activation)
    method = _method(found, zero_point, table)
    job = _Job(ops, w.reshape(-1, shape[-1]), form, progress)
    extremes = job.extremes(found.name == "bipolar1")
    if method == "symmetric" and not found.is_signed and extremes.low.min() >= 0:
        method = "magnitudes"
    if group == "tensor" and (table is None or table.ndim == 1):
        extremes = extremes.of_tensor()
    rule = ScaleRule(method, found, scale, table, group == "tensor")
    if levels is not None:
        shared = levels.super_group // size if isinstance(levels.super_group, int) else shape[-1] // size
        rule = TwoLevelRule(method, found, scale, table, codec=levels, groups_of_super=shared)
    encoder = _encoder(ops, rule)
    scale2 = rule.scale2(extremes)
    factors = _search_factors(search, scale)
    chosen = rule.choose(extremes, scale2)
    if factors:
        shares = shares_of_importance(importance, shape)
        best = job.best_factors(rule, encoder, extremes, scale2, factors, shares)
        chosen = rule.choose(extremes.shrunk(best, method != "offsets"), scale2)
    return QuantizedTensor.of_trusted_words(
        job.words(encoder, chosen),
        form,
        dtype=found,
        zeros=chosen.zeros,
        group_size=None if group == "channel" else group,
        scale2=scale2,
        lut=table,
        **_stored_scales(chosen, levels),
    )


def _stored_scales(chosen: GroupScales, levels: Codec | None) -> dict[str, Any]:
    """Scales and offsets as `QuantizedTensor` takes them."""
    if levels is None or chosen.level is None:
        return {"scales": chosen.scales, "offsets": chosen.offsets}
    found: dict[str, Any] = {"scales": chosen.level.integers, "super_scales": chosen.level.supers}
    found["super_group_size"] = levels.super_group if isinstance(levels.super_group, int) else None
    # Those of 8 bits are of the types of their arrays, scales and offsets each.
    found["scale_dtype"] = levels.scale if levels.scale in PACKED_CODE_TYPES else None
    found["offsets"] = chosen.offsets
    if chosen.level_of_offsets is not None:
        found["offsets"], found["super_offsets"] = chosen.level_of_offsets
    return found


def _method(dtype: DType, zero_point: object, table: AnyArray | None) -> str:
    """The method of `ScaleRule`; 'magnitudes' is chosen later, by the weights."""
    if isinstance(zero_point, bool | np.bool_):
        zero_point = bool(zero_point)
    elif not isinstance(zero_point, str) or zero_point not in ("float", "offset"):
        raise LowlpTypeError(f"zero_point: expected a bool, got {zero_point!r:.40}; or 'float' or 'offset'")
    if zero_point and (table is not None or not dtype.is_integer):
        what = f"a lut of {1 << dtype.bits} values" if table is not None else f"dtype {dtype.name}"
        raise LowlpValueError(f"zero_point: allowed for integer types only, got {what}")
    if zero_point == "offset" and dtype.is_signed:
        raise LowlpValueError(f"zero_point: 'offset' is allowed for unsigned types only, got dtype {dtype.name}")
    if zero_point:
        return _ZERO_POINTS[zero_point]
    if table is not None:
        return "table"
    return "symmetric" if dtype.is_integer else "type"


def _encoder(ops: ArrayOps, rule: ScaleRule) -> Encoder:
    if rule.table is not None:
        return TableEncoder(ops, rule.table)
    if rule.method == "type":
        return TypeEncoder(ops, rule.dtype)
    half = 1 << (rule.dtype.bits - 1)
    low, high = (-half, half - 1) if rule.dtype.is_signed else (0, 2 * half - 1)
    if rule.method == "symmetric" and not rule.has_negative_scales:
        # As far down as up.
        low += 1
    return IntegerEncoder(ops, rule.dtype, low, high, whole_shift=rule.method != "float zeros")


def _search_factors(search: object, scale: str) -> tuple[float, ...]:
    """The factors to try, 1 first; none without a search."""
    if isinstance(search, bool | np.bool_):
        default = (1.0, 2.0, 0.5) if scale == "e8m0" else SEARCH_FACTORS
        return default if search else ()
    try:
        if isinstance(search, str | bytes | bytearray | Mapping | Set):
            raise TypeError
        factors = tuple(float(factor) for factor in cast(Iterable[float], search))
    except (TypeError, ValueError, RuntimeError):
        raise LowlpTypeError(f"search: expected a bool or a sequence of numbers, got {search!r:.40}") from None
    for factor in factors:
        if not 0 < factor < math.inf:
            raise LowlpValueError(f"search: factors must be positive and finite, got {factor}")
    return (1.0, *(factor for factor in factors if factor != 1.0))


class _Job:
    """One matrix, worked on a few rows at a time: whole units of the words that are made of it."""

    def __init__(self, ops: ArrayOps, w: Any, form: WordsForm, progress: bool) -> None:
        self._ops, self._w, self._form, self._progress = ops, w, form, progress
        self._n, self._k, self._size = form.rows, form.k, form.group_size
        self._parts = form.bands(ops.block_elements)

    def extremes(self, with_mean: bool) -> Extremes:
        """Of each group, [N, groups]. Raises `LowlpValueError` for a weight that is not finite."""
        shape = (self._n, self._k // self._size)
        low, high = np.empty(shape, np.float32), np.empty(shape, np.float32)
        mean = np.empty(shape, np.float32) if with_mean else None

        def work(rows: slice) -> None:
            block = self._block(rows)
            low[rows], high[rows] = self._ops.extremes(block, 2)
            if not np.isfinite(low[rows].min()) or not np.isfinite(high[rows].max()):
                self._refuse(rows, self._ops.host(block))
            if mean is not None:
                mean[rows] = self._ops.mean_magnitude(block, 2)

        self._run(work, "scales")
        return Extremes(low, high, mean)

    def words(self, encoder: Encoder, chosen: GroupScales) -> Words:
        """The packed codes."""
        words = empty_words(self._form.shape)

        def work(rows: slice) -> None:
            codes = self._encoded(rows, encoder, chosen.of_rows(rows)).reshape(-1, self._k)
            packed = self._form.packed(codes, num_threads=1)
            if isinstance(packed, np.ndarray):
                words[self._form.units(rows)] = packed
            else:
                self._ops.store(packed, words[self._form.units(rows)])

        self._run(work, "codes")
        return words

    def best_factors(
        self,
        rule: ScaleRule,
        encoder: Encoder,
        extremes: Extremes,
        scale2: np.float32 | None,
        factors: Sequence[float],
        shares: AnyArray | None = None,
    ) -> NDArray[np.float32]:
        """The factor of least squared error, for each scale; `shares`: weights of the squares, [1 or all rows, K]."""
        roots = None if shares is None else np.sqrt(shares).astype(np.float32)
        best = np.ones((self._n, self._k // self._size), np.float32)
        least = np.full(best.shape, np.inf, np.float32)
        for factor in factors:
            chosen = rule.choose(extremes.shrunk(factor, rule.method != "offsets"), scale2)
            errors = np.empty(best.shape, np.float32)

            def work(rows: slice, chosen: GroupScales = chosen, errors: NDArray[np.float32] = errors) -> None:
                part = chosen.of_rows(rows)
                values = encoder.values(self._encoded(rows, encoder, part), rows)
                if part.zeros is not None:
                    values -= self._spread(part.zeros)
                with np.errstate(over="ignore"):
                    values *= self._spread(part.steps)
                    if part.offsets is not None:
                        values += self._spread(part.offsets)
                    values -= self._block(rows)
                    if roots is not None:
                        part_of_roots = roots[rows] if len(roots) > 1 else roots
                        values *= self._ops.put(part_of_roots.reshape(len(part_of_roots), -1, self._size))
                errors[rows] = self._ops.squares(values, 2)

            self._run(work, f"scale x {factor:g}")
            if rule.tensor:
                errors[...] = errors.sum(dtype=np.float64)
            better = errors < least
            best[better], least[better] = factor, errors[better]
        return best[:1, :1] if rule.tensor and extremes.low.shape == (1, 1) else best

    def _encoded(self, rows: slice, encoder: Encoder, part: GroupScales) -> Any:
        """The codes of these rows, by their scales."""
        block = self._block(rows)
        if part.offsets is not None:
            block -= self._spread(part.offsets)
        # A quotient beyond float32 is infinite, and has the outermost code as any other beyond the range.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            block /= self._spread(part.steps)
        return encoder.encode(block, rows, None if part.zeros is None else self._spread(part.zeros))

    def _block(self, rows: slice) -> Any:
        return self._ops.floats(self._w, rows).reshape(rows.stop - rows.start, -1, self._size)

    def _spread(self, array: AnyArray) -> Any:
        """What groups of some rows have, where the weights are: float32 [rows, groups, 1] or [1, 1, 1]."""
        return self._ops.put(array.astype(np.float32)[:, :, None])

    def _refuse(self, rows: slice, block: AnyArray) -> None:
        flat = block.reshape(block.shape[0], -1)
        row, column = (int(i) for i in np.argwhere(~np.isfinite(flat))[0])
        found = float(self._w[row + rows.start, column])
        place = self._form.place(row + rows.start, column)
        raise LowlpValueError(f"w: must be finite in float32, got {found} at {place}")

    def _run(self, work: Callable[[slice], None], name: str) -> None:
        """`work` on all blocks, with a bar where it is asked for."""
        if self._ops.workers == 1 or len(self._parts) == 1:
            for rows in self._shown(self._parts, name):
                work(rows)
            return
        with ThreadPoolExecutor(self._ops.workers) as pool:
            for _ in self._shown(pool.map(work, self._parts), name):
                pass

    def _shown(self, blocks: Iterable[T], name: str) -> Iterable[T]:
        return shown(blocks, name, len(self._parts), self._progress)
