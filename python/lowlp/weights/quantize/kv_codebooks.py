"""Codebooks of caches of keys and values, learnt from a calibration batch: coupled quantisation.

Neighbouring channels of a head share a code, whose book they have for themselves: CQ-CcBb of arXiv 2405.03917 (C
channels, b bits) is `vq(C, b)`. Channels are coupled since what a code of each channel alone would spend on values that
do not occur together goes to those that do. Values are stored as they are, without scales.
"""

import sys
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.numeric.vector_ops import VectorOps, library_of
from lowlp.numeric.vectors import Vectors
from lowlp.weights.quantize.k_means import BookLearner, rounds_for, shares_of
from lowlp.weights.quantize.learnt_codebooks import rounded_books, sample_size
from lowlp.weights.quantize.progress_bar import shown
from lowlp.weights.quantize.vector_search import VectorSearch
from lowlp.weights.quantize.weight_arrays import checked_seed, is_float
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_KINDS: Final = ("keys", "values")
_BOOK_TYPES: Final = {"f16": FLOAT_DTYPES["f16"], "bf16": FLOAT_DTYPES["bf16"]}


class KVCodebooks:
    """Books for the keys and values of some heads; what `lowlp.kv_codebooks` returns.

    books          [2, heads, groups, 2**bits, vector], float16 or bfloat16: of keys, then of values; group g is of
                   channels g * vector to (g + 1) * vector - 1 of a head, in the order of `channel_order`
    channel_order  the channels of a head in the order in which groups take them, each once; None: their own

    A key or value is stored as the index of the nearest entry of each group; of equally near ones the lowest. Raises
    `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """

    def __init__(self, books: object, channel_order: object = None) -> None:
        array = as_host_array(books, "books")
        if array.dtype not in _BOOK_TYPES.values():
            raise LowlpTypeError(f"books: expected float16 or bfloat16, got {array.dtype}")
        size = array.shape[3] if array.ndim == 5 else 0
        if 0 in array.shape or size != 1 << size.bit_length() - 1 or array.shape[0] != 2 or not 2 <= size <= 1 << 16:
            raise LowlpValueError(
                f"books: expected shape [2, heads, groups, 2**bits, vector] with bits in 1..16, got {list(array.shape)}"
            )
        if not np.isfinite(array.astype(np.float32)).all():
            raise LowlpValueError("books: must be finite")
        self.books: AnyArray = array.copy()
        self.books.setflags(write=False)
        self.channel_order = None if channel_order is None else _checked_order(channel_order, self.head_dim)

    @property
    def vector(self) -> int:
        """Channels that share a code."""
        return int(self.books.shape[4])

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return int(self.books.shape[3]).bit_length() - 1

    @property
    def heads(self) -> int:
        """Heads of keys and values."""
        return int(self.books.shape[1])

    @property
    def groups(self) -> int:
        """Codes of a head of a token."""
        return int(self.books.shape[2])

    @property
    def head_dim(self) -> int:
        """Channels of a head."""
        return self.groups * self.vector

    def encode(self, x: Any, kind: str) -> Any:
        """The codes of keys or values, uint8, or uint16 for more than 8 bits: [..., heads, groups].

        x     [..., heads, head_dim], floats, finite; numpy or PyTorch, which the codes are of too, on the same device
        kind  'keys' or 'values'
        """
        books = self._books_of(kind)
        ops, array = library_of(x, "x")
        self._check(array, "x", self.head_dim)
        problems = _problems(ops, array, self.channel_order, self.vector)
        search = VectorSearch(ops, [ops.put(books.astype(np.float64).reshape(-1, *books.shape[2:]))], False)
        codes = ops.host(search.codes(problems)[0]).reshape(self.heads, self.groups, -1).transpose(2, 0, 1)
        kept = codes.astype(np.uint8 if self.bits <= 8 else np.uint16).reshape(*array.shape[:-1], self.groups)
        return _like(x, kept)

    def decode(self, codes: Any, kind: str) -> Any:
        """The keys or values that codes stand for, in float32: [..., heads, groups] -> [..., heads, head_dim]."""
        books = self._books_of(kind).astype(np.float32)
        index = as_host_array(codes.cpu() if is_torch_tensor(codes) else codes, "codes")
        self._check(index, "codes", self.groups)
        if not np.issubdtype(index.dtype, np.integer):
            raise LowlpTypeError(f"codes: expected integers, got {index.dtype}")
        if index.size and not 0 <= int(index.min()) <= int(index.max()) < 1 << self.bits:
            raise LowlpValueError(f"codes: must be in 0..{(1 << self.bits) - 1}, got {int(index.max())}")
        heads, groups = np.arange(self.heads)[:, None], np.arange(self.groups)
        ordered = books[heads, groups, index.astype(np.int64)].reshape(*index.shape[:-1], self.head_dim)
        found = np.empty_like(ordered)
        found[..., slice(None) if self.channel_order is None else self.channel_order] = ordered
        return _like(codes, found)

    def _books_of(self, kind: str) -> AnyArray:
        if kind not in _KINDS:
            raise LowlpValueError(f"kind: must be one of {', '.join(_KINDS)}, got {kind!r:.40}")
        found: AnyArray = self.books[_KINDS.index(kind)]
        return found

    def _check(self, array: Any, name: str, last: int) -> None:
        if tuple(array.shape[-2:]) != (self.heads, last):
            raise LowlpValueError(f"{name}: expected shape [..., {self.heads}, {last}], got {list(array.shape)}")

    def __repr__(self) -> str:
        order = "" if self.channel_order is None else ", in an order of their own"
        return f"KVCodebooks({self.heads} heads, {self.groups} groups of {self.vector}, {self.bits} bits{order})"


def kv_codebooks(
    keys: object,
    values: object,
    vq: Vectors,
    importance: Sequence[object] | None = None,
    seed: int = 0,
    *,
    channel_order: object = None,
    progress: bool = False,
) -> KVCodebooks:
    """Learns codebooks for a cache from the keys and values of a calibration batch (CQ, arXiv 2405.03917, section 4).

    keys, values   [tokens, heads, head_dim], float16, bfloat16, float32 or float64, as they are to be stored (with
                   RoPE applied, if the cache's keys have it); numpy, or PyTorch on the CPU, or on a GPU, which then
                   computes
    vq             `lowlp.vq(4, 8)`: 2 bits a channel (CQ-2); `vq(2, 8)`: 4 (CQ-4). One book of f16 or bf16 entries
    importance     weights of squared errors, for keys and for values: each None, [heads, head_dim] or [tokens, heads,
                   head_dim]; CQ takes the squared gradients of the loss (the diagonal of its Fisher information)
    seed           where books start, and which tokens they are learnt from where there are more than 2^18
    channel_order  the channels of a head in the order in which groups take them: to couple channels i and i + 64 that
                   RoPE rotates together, of 128 [0, 64, 1, 65, ...]; None: neighbours
    progress       show a bar, where tqdm is installed

    How books are learnt, and that every device gives the same ones, is said in `lowlp.weights.quantize.k_means`.
    Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """
    if not isinstance(vq, Vectors):
        raise LowlpTypeError(f"vq: expected what lowlp.vq(vector, bits) returns, got {vq!r:.40}")
    if vq.books != 1 or vq.entries not in _BOOK_TYPES:
        raise LowlpValueError(f"vq: a cache has one book of f16 or bf16 entries for each group, got {vq}")
    seed = checked_seed(seed)
    pair = [library_of(array, name) for array, name in ((keys, "keys"), (values, "values"))]
    for (_, array), name in zip(pair, _KINDS, strict=True):
        _check_batch(array, name, vq.vector)
    if tuple(pair[0][1].shape) != tuple(pair[1][1].shape):
        raise LowlpValueError(
            f"values: expected the shape of keys, {list(pair[0][1].shape)}, got {list(pair[1][1].shape)}"
        )
    tokens, heads, head_dim = (int(extent) for extent in pair[0][1].shape)
    order = None if channel_order is None else _checked_order(channel_order, head_dim)
    weights = _checked_importance(importance, (tokens, heads, head_dim))
    entries = 1 << vq.bits
    books = np.empty((2, heads, head_dim // vq.vector, entries, vq.vector), _BOOK_TYPES[vq.entries])
    size = sample_size(tokens, entries)
    chosen = np.sort(np.random.default_rng(seed).choice(tokens, size, False)) if size < tokens else np.arange(tokens)
    rounds = rounds_for(size * books[..., 0, 0].size, entries, 1)
    work = [(kind, head) for kind in range(2) for head in range(heads)]
    for kind, head in shown(work, "heads", len(work), progress, "head"):
        ops, array = pair[kind]
        x = _problems(ops, array[ops.put(chosen), head : head + 1], order, vq.vector)
        if not np.isfinite(ops.extremes(x, 1)).all():
            raise LowlpValueError(f"{_KINDS[kind]}: must be finite in float32")
        held, shares = weights[kind], None
        if held is not None:
            share = held[chosen if len(held) > 1 else np.zeros(size, np.int64), head : head + 1]
            shares = _problems(ops, ops.put(share), order, vq.vector)
        learnt = BookLearner(ops, entries, 1, rounds, seed).learn(x, shares)[0]
        books[kind, head] = rounded_books(ops.host(learnt), str(vq.entries))[0]
    return KVCodebooks(books, order)


def _problems(ops: VectorOps, x: Any, order: AnyArray | None, vector: int) -> Any:
    """Vectors of each group of each head: [..., heads, head_dim] -> float64 [heads * groups, tokens, vector]."""
    heads, head_dim = (int(extent) for extent in x.shape[-2:])
    every = slice(None)
    x = ops.doubles(ops.floats(x.reshape(-1, heads, head_dim), every))
    if order is not None:
        x = x[:, :, ops.put(order)]
    x = ops.permute(x.reshape(-1, heads, head_dim // vector, vector), (1, 2, 0, 3))
    return x.reshape(heads * (head_dim // vector), -1, vector)


def _like(given: Any, found: AnyArray) -> Any:
    """An array in the library of what was given, and on its device."""
    if not is_torch_tensor(given):
        return found
    return sys.modules["torch"].from_numpy(found).to(given.device)


def _check_batch(array: Any, name: str, vector: int) -> None:
    if not is_float(array):
        raise LowlpTypeError(f"{name}: expected float16, bfloat16, float32 or float64, got {array.dtype}")
    if array.ndim != 3 or 0 in array.shape:
        raise LowlpValueError(f"{name}: expected shape [tokens, heads, head_dim], got {list(array.shape)}")
    if array.shape[2] % vector:
        raise LowlpValueError(
            f"{name}: head_dim must be a multiple of the {vector} channels of a code, got {list(array.shape)}"
        )


def _checked_order(order: object, head_dim: int) -> NDArray[np.int64]:
    array = np.asarray(order)
    is_order = array.shape == (head_dim,) and np.issubdtype(array.dtype, np.integer)
    if not is_order or not (np.sort(array) == np.arange(head_dim)).all():
        raise LowlpValueError(f"channel_order: must name each of the {head_dim} channels of a head once")
    found = array.astype(np.int64)
    found.setflags(write=False)
    return found


def _checked_importance(importance: Sequence[object] | None, shape: tuple[int, int, int]) -> list[AnyArray | None]:
    """For keys and for values, shares [tokens or 1, heads, head_dim]."""
    if importance is None:
        return [None, None]
    if not isinstance(importance, tuple | list) or len(importance) != 2:
        raise LowlpTypeError("importance: expected a pair, for keys and for values")
    found: list[AnyArray | None] = []
    for given, kind in zip(importance, _KINDS, strict=True):
        if given is None:
            found.append(None)
            continue
        array = as_host_array(cast(Any, given).cpu() if is_torch_tensor(given) else given, "importance")
        if tuple(array.shape) not in (shape, shape[1:]):
            raise LowlpValueError(
                f"importance: expected shape {list(shape[1:])} or {list(shape)} for {kind}, got {list(array.shape)}"
            )
        found.append(shares_of(array.reshape(-1, *shape[1:])))
    return found
