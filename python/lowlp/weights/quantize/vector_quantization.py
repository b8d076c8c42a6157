"""`quantize(w, vq=...)`: its arguments, checked, and learnt codebooks as a `QuantizedTensor`."""

from typing import Any, Literal, cast

from lowlp.numeric.host_array import AnyArray, as_host_array
from lowlp.numeric.scale_types import scale_type
from lowlp.numeric.vector_ops import library_of
from lowlp.numeric.vectors import BookPer, Vectors
from lowlp.weights.meaning import check_whole_codes, group_of
from lowlp.weights.quantize.k_means import shares_of
from lowlp.weights.quantize.learnt_codebooks import learn_codebooks
from lowlp.weights.quantize.weight_arrays import checked_seed, checked_shape
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_SCALES = ("f16", "bf16", "f32")


def quantize_by_books(
    w: object,
    vq: object,
    book_per: BookPer,
    group_size: int | Literal["tensor"] | None,
    scale_dtype: object,
    importance: object,
    seed: int,
    progress: bool,
    activation: object,
) -> QuantizedTensor:
    """`quantize` with codebooks. Raises as it says."""
    if not isinstance(vq, Vectors):
        raise LowlpTypeError(f"vq: expected what lowlp.vq(vector, bits, books) returns, got {vq!r:.40}")
    if vq.lattices:
        raise LowlpValueError(f"vq: quantize learns entries; the vectors of {vq} are computed")
    ops, weights = library_of(w, "w")
    shape = checked_shape(weights)
    if shape[-1] % vq.vector:
        raise LowlpValueError(f"w: K must be a multiple of the {vq.vector} weights of a code, got {list(shape)}")
    if isinstance(group_size, str) and group_size == "tensor":
        raise LowlpValueError("group_size: scales of books are by row or group, got 'tensor'")
    size, _ = group_of(shape[-1], group_size)
    check_whole_codes(size, vq)
    scale = scale_type(scale_dtype)
    if scale not in _SCALES:
        raise LowlpValueError(f"scale_dtype: must be one of {', '.join(_SCALES)} with vq, got {scale}")
    block = _block_of(vq, book_per, shape)
    found = learn_codebooks(
        ops,
        weights.reshape(-1, shape[-1]),
        vq,
        block=block,
        group_size=size,
        scale=scale,
        importance=shares_of_importance(importance, shape),
        seed=checked_seed(seed),
        progress=progress,
    )
    books, book_scales = found.codebooks, found.book_scales
    if block is not None and len(shape) == 3:
        books = books.reshape(shape[0], -1, *books.shape[1:])
        book_scales = None if book_scales is None else book_scales.reshape(*books.shape[:4])
    learnt = QuantizedTensor(
        found.codes.reshape(*shape[:-1], *found.codes.shape[1:]),
        codebooks=books,
        book_scales=book_scales,
        book_per=None if block is None else ((1,) * (len(shape) - 2) + block),
        scales=found.scales.reshape(*shape[:-1], -1),
        group_size=None if size == shape[-1] else size,
        activation=cast(Any, activation),
    )
    return learnt.spread() if vq.spread else learnt


def _block_of(vq: Vectors, book_per: BookPer, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Rows and columns that share books; None for one set of books."""
    given = vq.with_book_per(book_per).block
    if not given:
        return None
    if len(given) > len(shape):
        raise LowlpValueError(f"book_per: expected at most {len(shape)} extents for w {list(shape)}, got {book_per}")
    block = tuple(
        min(extent or axis, axis) for extent, axis in zip((0,) * (len(shape) - len(given)) + given, shape, strict=True)
    )
    if block == shape:
        return None
    if len(shape) == 3 and (block[0] != 1 or shape[1] % block[1]):
        raise LowlpValueError(
            f"book_per: blocks of experts begin with 1 and their rows divide N = {shape[1]}, got {book_per}"
        )
    return block[-2], block[-1]


def shares_of_importance(importance: object, shape: tuple[int, ...]) -> AnyArray | None:
    """Shares [1 or all rows, K] of what users give. Raises `LowlpTypeError` and `LowlpValueError`."""
    if importance is None:
        return None
    array = as_host_array(cast(Any, importance).cpu() if is_torch_tensor(importance) else importance, "importance")
    if tuple(array.shape) not in (shape, shape[-1:]):
        raise LowlpValueError(f"importance: expected shape [{shape[-1]}] or {list(shape)}, got {list(array.shape)}")
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        raise LowlpTypeError(f"importance: expected numbers, got {array.dtype}")
    return shares_of(array.reshape(-1, shape[-1]))
