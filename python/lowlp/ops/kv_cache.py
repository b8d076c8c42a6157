"""Paged caches of keys and values: `lowlp.KVCache`."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.attention.spec import CACHE_TYPES, ENTRIES, HEAD_DIMS, CacheType
from lowlp.kernels.attention.stagger import slots
from lowlp.numeric.dtypes import dtype as dtype_of
from lowlp.numeric.dtypes import dtype_among
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.weights.quantize.kv_codebooks import KVCodebooks
from lowlp_runtime.array import is_torch_tensor

_INT32_MAX: Final = 2**31 - 1
FLOAT_NAMES: Final = {str(known): name for name, known in FLOAT_DTYPES.items()}
"""Of numpy and PyTorch -> of lowlp."""
MOST_RECENT: Final = 128
PAGES: Final = tuple(range(16, 129, 16))
STORED: Final = ("keys", "values", "key_scales", "value_scales", "books", "order", "recent_keys", "recent_values")


def extent(value: Any, argument: str, most: int = _INT32_MAX) -> int:
    """An int from 1 to `most`. Raises `LowlpTypeError` and `LowlpValueError`, which name the argument."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise LowlpTypeError(f"{argument}: expected an int, got {value!r:.40}")
    if not 1 <= value <= most:
        raise LowlpValueError(f"{argument}: must be in 1..{most}, got {value}")
    return int(value)


class KVCache:
    """A cache of keys and values in pages, in memory of the CPU target or of a GPU.

    pages     how many pages there are; which belong to whom is the caller's to say, by slots and block tables
    page      tokens of a page: 16, 32, 48, ... 128
    kv_heads  heads of keys and values
    head_dim  channels of a head: 64, 96, 128, 192 or 256
    dtype     'f16' or 'bf16'; or codes, each token of each head with a scale of f16 for its key and one for its value:
              'f8e4m3', 'int8', 'int4'; or codes of 8 bits of codebooks, for 2 neighbouring channels ('cq-4', 4 bits a
              channel) or for 4 ('cq-2'), without scales
    codebooks of 'cq-4' and 'cq-2': a `lowlp.KVCodebooks` of float16 or bfloat16 with 256 entries for each 2 or 4
              neighbouring channels of each head, in their own order or another, as `lowlp.kv_codebooks(keys, values,
              lowlp.vq(2, 8))` or `vq(4, 8)` learns them; None for the other types. With bfloat16 queries are bfloat16
    recent    how many of a sequence's newest tokens attention takes in f16, 0 to 128, of a cache of codes
    recent_pages  pages for tokens in f16, of which the caller then says too whose they are, by `recent_slots` and
              `recent_table`; None: each page has room for its tokens in f16 too, which is simple and takes much memory
    device    where it lies: 'cpu', or a CUDA device as PyTorch names it; None: where the first keys appended to it do

    A code times its scale is the value: scale = max |x| / 448 (f8e4m3), / 127 (int8) or / 7 (int4), rounded to f16, and
    code = x / scale, rounded to nearest, ties to even. Rows of bfloat16 or float32 whose scale is out of the range of
    f16 become NaN. Scales below the normal numbers of f16 are coarser; of rows whose largest magnitude is below 1.33e-5
    (f8e4m3), 3.78e-6 (int8) or 2.08e-7 (int4) they are 0, and the values too. With codebooks a code is the number of
    the nearest entry, of equally near ones the lowest, and of some entry where a number is not finite. It holds zeros
    at first, or codes 0. The arrays, of numpy or PyTorch:

    keys, values              [pages, kv_heads, page, head_dim] of float16 or bfloat16, as it is; or codes as bytes:
                              f8e4m3; int8 code + 128; int4 code + 8, the first of two channels in the low bits
    keys                      then uint8 [pages, kv_heads, page, head_dim * bits / 8]
    values                    then uint8 [pages, kv_heads, page / 2, head_dim * bits / 4]: two bytes of each of two
                              neighbouring tokens in turn
    keys, values              of codebooks: uint8 [pages, kv_heads, page, head_dim / 2 or 4], which `codes()` brings
                              into the order of channels
    books                     of `arrays()`, of codebooks: [kv_heads, 2, 256, head_dim / 2 or 4, 2 or 4], of heads
                              of 192 and 256 channels [kv_heads, 2, head_dim / 2 or 4, 256, 2 or 4]; with a
                              channel_order also order, int32 [head_dim]
    key_scales, value_scales  [pages, kv_heads, page], float16; None where values are stored as they are
    recent_keys, recent_values   of `arrays()`, with recent: [recent_pages, kv_heads, page, head_dim] of float16, or of
                              the type of the codebooks and with channels in their order

    Raises `LowlpTypeError` and `LowlpValueError`, which name the argument and what is allowed.
    """

    def __init__(
        self,
        *,
        pages: int,
        page: int,
        kv_heads: int,
        head_dim: int,
        dtype: Any,
        codebooks: Any = None,
        recent: int = 0,
        recent_pages: int | None = None,
        device: Any = None,
    ) -> None:
        self.pages, self.kv_heads = extent(pages, "pages"), extent(kv_heads, "kv_heads")
        self.page, self.head_dim = _one_of(page, "page", PAGES), _one_of(head_dim, "head_dim", HEAD_DIMS)
        is_name = isinstance(dtype, str) and dtype in CACHE_TYPES
        self.dtype: str = dtype if is_name else dtype_among(dtype, "dtype", tuple(CACHE_TYPES))
        self.codebooks = self._checked_codebooks(codebooks)
        self.recent = self._checked_recent(recent)
        if recent_pages is not None and not self.recent:
            raise LowlpValueError(f"recent_pages: goes with recent, which is 0; got {recent_pages!r:.40}")
        self.has_own_recent = recent_pages is not None
        self.recent_pages = self.pages if recent_pages is None else extent(recent_pages, "recent_pages")
        tokens = self.pages * self.page
        if tokens * self.kv_heads > _INT32_MAX:
            raise LowlpValueError(
                f"pages: pages * page * kv_heads must be at most {_INT32_MAX}, got {self.pages} * {self.page} * "
                f"{self.kv_heads}"
            )
        self._arrays: dict[str, Any] | None = None
        self._device: Any = None
        if device is not None:
            # Also PyTorch's `device('cpu')`, which is printed so.
            self._allocate("cpu" if str(device) == "cpu" else _cuda_device(device))

    def _checked_codebooks(self, codebooks: Any) -> KVCodebooks | None:
        vector = self.kind.vector
        if not vector:
            if codebooks is not None:
                raise LowlpValueError(f"codebooks: a cache of {self.dtype} has none, got {type(codebooks).__name__}")
            return None
        if not isinstance(codebooks, KVCodebooks):
            wanted = f"a cache of {self.dtype} takes a KVCodebooks, which lowlp.kv_codebooks makes"
            raise LowlpTypeError(f"codebooks: {wanted}, got {type(codebooks).__name__}")
        shape = (2, self.kv_heads, self.head_dim // vector, ENTRIES, vector)
        if codebooks.books.shape != shape:
            raise LowlpValueError(
                f"codebooks: books must have shape {list(shape)} for a cache of {self.dtype} with {self.kv_heads} "
                f"heads of {self.head_dim}, got {list(codebooks.books.shape)}"
            )
        return codebooks

    def _checked_recent(self, recent: Any) -> int:
        if isinstance(recent, bool) or not isinstance(recent, int | np.integer):
            raise LowlpTypeError(f"recent: expected an int, got {recent!r:.40}")
        if recent and not (self.kind.is_coded or self.kind.vector):
            raise LowlpValueError(f"recent: must be 0 for a cache of {self.dtype}, which has no codes, got {recent}")
        if not 0 <= recent <= MOST_RECENT:
            raise LowlpValueError(f"recent: must be in 0..{MOST_RECENT}, got {recent}")
        return int(recent)

    def __repr__(self) -> str:
        place = "not placed yet" if self._arrays is None else f"on {self.device}"
        return (
            f"<lowlp KVCache of {self.dtype}: {self.pages} pages of {self.page} tokens, {self.kv_heads} heads of "
            f"{self.head_dim}, {place}>"
        )

    @property
    def kind(self) -> CacheType:
        """How the cache is stored."""
        return CACHE_TYPES[self.dtype]

    @property
    def device(self) -> str | None:
        """'cpu', or PyTorch's name of a CUDA device; None before anything was appended."""
        return None if self._arrays is None else str(self._device)

    @property
    def bytes_per_token(self) -> int:
        """Bytes that a token takes, with its scales, of all heads."""
        scale_bytes = 2 if self.kind.is_coded else 0
        return 2 * self.kv_heads * (self.head_dim * self.kind.bits // 8 + scale_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        recent = 4 * self.recent_pages * self.page * self.kv_heads * self.head_dim if self.recent else 0
        books = sum(array.nbytes for array in self._of_codebooks().values())
        return self.pages * self.page * self.bytes_per_token + recent + books

    @property
    def keys(self) -> Any:
        """Keys as they are stored."""
        return self.arrays()["keys"]

    @property
    def values(self) -> Any:
        """Values as they are stored."""
        return self.arrays()["values"]

    @property
    def key_scales(self) -> Any:
        """The scales of keys, or None."""
        return self.arrays().get("key_scales")

    @property
    def value_scales(self) -> Any:
        """The scales of values, or None."""
        return self.arrays().get("value_scales")

    def arrays(self) -> dict[str, Any]:
        """All arrays by name. Raises `LowlpValueError` where the cache has no place yet."""
        if self._arrays is None:
            raise LowlpValueError("cache: has no memory yet; append to it, or make it with device=")
        return self._arrays

    def dequantize(self, pages: Any = None) -> tuple[AnyArray, AnyArray]:
        """Keys and values as float32 numpy arrays, [pages, kv_heads, page, head_dim]: what attention works with.

        pages  numbers of those that are wanted, in this order, a list or a numpy array; None: all
        """
        chosen = slice(None) if pages is None else np.asarray(pages, np.int64)
        by_page = ("keys", "values", "key_scales", "value_scales")
        arrays = {name: _to_host(self.arrays()[name][chosen]) for name in by_page if name in self.arrays()}
        if self.codebooks is not None:
            keys, values = (
                self.codebooks.decode(codes.swapaxes(1, 2), name).swapaxes(1, 2)
                for name, codes in zip(("keys", "values"), self.codes(pages), strict=True)
            )
            return keys, values
        if not self.kind.is_coded:
            return arrays["keys"].astype(np.float32), arrays["values"].astype(np.float32)
        pairs = arrays["values"].reshape(len(arrays["values"]), self.kv_heads, self.page // 2, -1, 2, 2)
        values = np.moveaxis(pairs, 4, 3).reshape(arrays["keys"].shape)
        return (
            _dequantized(self.kind, arrays["keys"], arrays["key_scales"]),
            _dequantized(self.kind, values, arrays["value_scales"]),
        )

    def codes(self, pages: Any = None) -> tuple[AnyArray, AnyArray]:
        """Of a cache of codebooks: codes of keys and values as uint8 numpy arrays, [pages, kv_heads, page, groups of
        channels], in the order of groups, which they do not have in memory; `pages` as for `dequantize`. Raises
        `LowlpValueError` for other caches."""
        if self.codebooks is None:
            raise LowlpValueError(f"cache: must have codebooks, which one of {self.dtype} has not")
        token_class = np.arange(self.page) & 7
        token_class = ((token_class ^ token_class >> 2) & 1) | (token_class & 2)

        def of(name: str) -> AnyArray:
            stored = _to_host(self.arrays()[name][slice(None) if pages is None else np.asarray(pages, np.int64)])
            places = slots(self.kind, self.head_dim, name == "values")[token_class]
            found: AnyArray = np.take_along_axis(stored, places[None, None], axis=-1)
            return found

        return of("keys"), of("values")

    def _allocate(self, device: Any) -> None:
        shape: tuple[int, ...] = (self.pages, self.kv_heads, self.page)
        shapes = dict.fromkeys(("keys", "values"), ((*shape, self.head_dim), self.dtype))
        if self.kind.is_coded:
            row = self.head_dim * self.kind.bits // 8
            shapes = {
                "keys": ((*shape, row), "uint8"),
                "values": ((*shape[:2], self.page // 2, 2 * row), "uint8"),
                "key_scales": (shape, "f16"),
                "value_scales": (shape, "f16"),
            }
        if self.kind.vector:
            shapes = dict.fromkeys(("keys", "values"), ((*shape, self.head_dim // self.kind.vector), "uint8"))
        if self.recent:
            of_recent = (self.recent_pages, self.kv_heads, self.page, self.head_dim)
            shapes |= dict.fromkeys(("recent_keys", "recent_values"), (of_recent, self.books_type))
        self._device = device
        if device == "cpu":
            types = {**FLOAT_DTYPES, "uint8": np.dtype(np.uint8)}
            self._arrays = {name: np.zeros(extents, types[kind]) for name, (extents, kind) in shapes.items()}
            self._arrays |= self._of_codebooks()
            return
        torch: Any = sys.modules["torch"]
        kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "uint8": torch.uint8}
        self._arrays = {
            name: torch.zeros(extents, dtype=kinds[kind], device=device) for name, (extents, kind) in shapes.items()
        }
        for name, array in self._of_codebooks().items():
            self._arrays[name] = self._uploaded(array) if name == "books" else torch.from_numpy(array).to(device)

    @property
    def books_type(self) -> str:
        """Type of the entries of codebooks, and of tokens that are kept beside codes."""
        is_bf16 = self.codebooks is not None and self.codebooks.books.dtype == FLOAT_DTYPES["bf16"]
        return "bf16" if is_bf16 else "f16"

    @property
    def is_ordered(self) -> bool:
        """Whether groups of channels take these in another order."""
        return self.codebooks is not None and self.codebooks.channel_order is not None

    def _of_codebooks(self) -> dict[str, AnyArray]:
        if self.codebooks is None:
            return {}
        found = {"books": _by_head(self.codebooks, self.kind.is_staggered(self.head_dim))}
        if self.codebooks.channel_order is not None:
            found["order"] = self.codebooks.channel_order.astype(np.int32)
        return found

    def books_in_turn(self) -> Any:
        """Codebooks [kv_heads, 2, groups, entries, values], one after the other, where the cache is; raises
        `LowlpValueError` where it has none, or no memory."""
        if self.codebooks is None or self._device is None:
            raise LowlpValueError(f"cache: expected one of codebooks that has memory, got {self.dtype}")
        books = _by_head(self.codebooks, False)
        return books if self._device == "cpu" else self._uploaded(books)

    def _uploaded(self, books: AnyArray) -> Any:
        torch: Any = sys.modules["torch"]
        # PyTorch warns of arrays that cannot be written to, though nothing writes to this one.
        bits = torch.from_numpy(books.copy().view(np.int16)).to(self._device)
        return bits.view(torch.bfloat16 if self.books_type == "bf16" else torch.float16)

    def on(self, device: Any, argument: str) -> dict[str, Any]:
        """The arrays, which lie on `device`, or are made there. Raises `LowlpValueError` where they lie elsewhere."""
        if self._arrays is None:
            self._allocate(device)
        if self._device != device:
            raise LowlpValueError(f"{argument}: must be on {self._device}, where the cache is, got {device}")
        return self.arrays()


def _one_of(value: Any, argument: str, allowed: tuple[int, ...]) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise LowlpTypeError(f"{argument}: expected an int, got {value!r:.40}")
    if value not in allowed:
        raise LowlpValueError(f"{argument}: must be {' or '.join(map(str, allowed))}, got {value}")
    return int(value)


def _by_head(codebooks: KVCodebooks, in_lines: bool) -> AnyArray:
    """Books as kernels take them: those of a head's keys and values together, with entries in lines if asked."""
    by_head = codebooks.books.swapaxes(0, 1)
    return np.ascontiguousarray(by_head.swapaxes(2, 3) if in_lines else by_head)


def _cuda_device(device: Any) -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        raise LowlpValueError(f"device: must be 'cpu', or a CUDA device with PyTorch imported, got {device!r:.40}")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        raise LowlpValueError(f"device: must be 'cpu' or a CUDA device, got {device!r:.40}") from None
    if found.type != "cuda":
        raise LowlpValueError(f"device: must be 'cpu' or a CUDA device, got {device!r:.40}")
    if not torch.cuda.is_available():
        raise LowlpValueError(f"device: PyTorch sees no CUDA device here, got {device!r:.40}")
    return found if found.index is not None else torch.device("cuda", torch.cuda.current_device())


def _to_host(array: Any) -> AnyArray:
    return as_host_array(array.cpu() if is_torch_tensor(array) else array, "cache")


def _dequantized(kind: CacheType, stored: AnyArray, scales: AnyArray) -> AnyArray:
    if kind.bits == 4:
        stored = np.stack([stored & 15, stored >> 4], axis=-1).reshape(*stored.shape[:-1], -1)
    if kind.has_offset:
        values = stored.astype(np.float32) - np.float32(1 << (kind.bits - 1))
    else:
        values = dtype_of(kind.name).decode(stored)
    result: AnyArray = values * scales[..., None].astype(np.float32)
    return result
