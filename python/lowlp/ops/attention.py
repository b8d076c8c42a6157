"""`lowlp.attention_decode`: attention of the newest tokens over a paged cache, where the cache is."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lowlp.compiler.compilation import compile_cpu
from lowlp.compiler.kernel_cache import Once
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.attention.codes import pointer_types
from lowlp.kernels.attention.decode import attention_kernel
from lowlp.kernels.attention.spec import AttentionSchedule, AttentionSpec, CacheType, default_schedule
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array, as_torch_tensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.stream import other_torch_stream

from .attention_launch import AttentionCall, bind_call, calls, division
from .graph_breaks import outside_of_graphs
from .kept_calls import kind_of
from .kv_append import check_on_device, with_whole_steps
from .kv_cache import FLOAT_NAMES, KVCache, extent
from .linear_on_cpu import CPU_MULTIPROCESSORS

_MOST_SPLITS: Final = 64
_F32_MAX: Final = float(np.finfo(np.float32).max)
_MOST_CAP: Final = 2.0**127
"""Of scores: a larger one is none in float32."""
_OPTIONAL: Final = ("sinks", "recent_table")
_UNSIGNED: Final = {"uint16": np.dtype(np.uint16), "uint32": np.dtype(np.uint32)}

_kernels = Once()


@outside_of_graphs
def attention_decode(
    q: Any,
    cache: KVCache,
    block_table: Any,
    lengths: Any,
    scale: float | None = None,
    window: int | None = None,
    sinks: Any = None,
    softcap: float | None = None,
    return_lse: bool = False,
    *,
    recent_table: Any = None,
    splits: int | None = None,
    stream: object = None,
) -> Any:
    """o = softmax(scale q k^T) v of the newest tokens of each sequence over its tokens in the cache, in one launch.

    q            [B, heads, head_dim], one token a sequence, or [B, T, heads, head_dim], the newest T: each sees
                 those before it and itself; float16 or bfloat16; heads is a multiple of the cache's kv_heads, and
                 neighbouring heads share one. With a cache of bf16, or codebooks of bf16, it is bfloat16
    cache        a `KVCache`, which holds the newest tokens already
    block_table  [B, width], int32: the pages of each sequence in order; entries after its last page are not read
    lengths      [B], int32: tokens of each sequence, the newest ones included, 0 to width * page. Read on the device
    scale        what products are multiplied by; None: 1 / sqrt(head_dim)
    window       how many tokens a query sees at most, itself included; None: all. Pages before are not read
    sinks        [heads], float16, bfloat16 or float32: a logit of each head that adds to the denominator, as gpt-oss
                 has; or None. Of +inf the result is 0 and the logarithm +inf; -inf is as none
    softcap      scores s become softcap * tanh(s / softcap), before sinks; or None
    return_lse   return the logarithm of the denominator too, float32 [B, heads] or [B, T, heads]
    recent_table for a cache with `recent_pages`: as block_table, the pages of its tokens in f16; only entries of the
                 newest tokens count
    splits       into how many parts a sequence is cut at most, 1 to 64; None: by the GPU and the shapes
    stream       as for `lowlp.linear`

    Numpy arrays and tensors of PyTorch on the CPU run on the CPU target, with a cache on the CPU; CUDA tensors on their
    device. The grid depends on shapes alone, so a captured CUDA graph may be replayed with other lengths, tables and
    contents. Returns what q is: zeros, and -inf as the logarithm, for a token that sees none (the sink, where there is
    one).

    Scores, their exponentials and all sums are f32; weights of values are rounded to f16 (for a cache or codebooks of
    bf16 they are two numbers of bf16). The relative error against float64 on `cache.dequantize()` is within 2e-3. The
    same inputs give the same bits, whatever the other sequences hold; another number of parts gives other roundings.
    What a cache holds after the end of a sequence does not count, even if it is no number (FlashAttention,
    arXiv 2205.14135, and Flash-Decoding).
    Raises `LowlpTypeError` and `LowlpValueError` for arguments that do not fit, `CpuTargetError`, `DeviceError`.
    """
    on_gpu = is_torch_tensor(q) and q.is_cuda
    if on_gpu:

        def kind() -> Any:
            return (
                *(id(cache), kind_of(q), q.data_ptr() % 16, kind_of(block_table), kind_of(lengths), kind_of(sinks)),
                *(kind_of(recent_table), scale, type(scale), window, type(window), softcap, type(softcap)),
                *(return_lse, type(return_lse), splits, type(splits)),
            )

        if other := other_torch_stream(stream, q.device):
            with other:
                return attention_decode(
                    q,
                    cache,
                    block_table,
                    lengths,
                    scale,
                    window,
                    sinks,
                    softcap,
                    return_lse,
                    recent_table=recent_table,
                    splits=splits,
                )
        kept = calls.find(kind)
        if kept is not None:
            tensors = (q, block_table, lengths, *(() if sinks is None else (sinks,)))
            if cache.recent:
                tensors = (*tensors, block_table if recent_table is None else recent_table)
            return kept.run(tensors)
    if not isinstance(cache, KVCache):
        raise LowlpTypeError(f"cache: expected a KVCache, got {type(cache).__name__}")
    given = {"q": q, "block_table": block_table, "lengths": lengths, "sinks": sinks, "recent_table": recent_table}
    if on_gpu:
        check_on_device(given, _OPTIONAL, q.device)
    else:
        if stream is not None:
            raise LowlpValueError("stream: allowed for CUDA tensors only, and q is on the CPU")
        given = {name: _on_host(array, name) for name, array in given.items()}
    call = _read(cache, given, scale, window, softcap, return_lse)
    stored = cache.on(q.device if on_gpu else "cpu", "q")
    if on_gpu:
        bound = bind_call(call, stored, functools.partial(_splits_of, call, splits))
        result = bound.run(call.arrays.values())
        taken = given | {"recent_block_table": block_table if recent_table is None else recent_table}
        if all(array.data_ptr() == taken[name].data_ptr() for name, array in call.arrays.items()):
            calls.keep(cache, kind(), bound)
        return result
    _check_lengths(cache, call)
    o, lse = _on_cpu(call, stored, splits)
    if is_torch_tensor(q):
        o, lse = as_torch_tensor(o), None if lse is None else as_torch_tensor(lse)
    return (o, lse) if return_lse else o


def attention_by(
    schedule_of: Callable[[AttentionSpec], AttentionSchedule], q: Any, cache: KVCache, block_table: Any, lengths: Any
) -> Callable[[], Any]:
    """Calls of `attention_decode` without options, whose kernel is divided as `schedule_of` says of its spec: of use
    only to compare schedules, and to find out what limits them. Numpy arrays, or CUDA tensors."""
    on_gpu = is_torch_tensor(q) and q.is_cuda
    given = {"q": q, "block_table": block_table, "lengths": lengths, "sinks": None, "recent_table": None}
    call = _read(cache, given, None, None, None, False)
    schedule = schedule_of(call.spec)
    stored = dict(cache.on(q.device if on_gpu else "cpu", "q"))
    if schedule.has_version:
        stored["books"] = cache.books_in_turn()
    if not on_gpu:
        return lambda: _on_cpu(call, stored, None, schedule)[0]
    bound = bind_call(call, stored, functools.partial(_splits_of, call, None), schedule)
    # The launch has addresses of what is stored.
    return lambda kept=stored: bound.run(call.arrays.values())  # type: ignore[misc]


# --- arguments --------------------------------------------------------------------------------------------------------


def _on_host(array: Any, argument: str) -> AnyArray | None:
    if array is None and argument in _OPTIONAL:
        return None
    found: AnyArray = with_whole_steps(as_host_array(array, argument))
    return found


def _type_of(array: Any, argument: str, allowed: tuple[str, ...]) -> str:
    """The type of a float array, one of `allowed`."""
    found = FLOAT_NAMES.get(str(array.dtype).removeprefix("torch."), "")
    if found not in allowed:
        wanted = " or ".join(str(FLOAT_DTYPES[name]) for name in allowed)
        raise LowlpTypeError(f"{argument}: expected {wanted}, got {array.dtype}")
    return found


def _number(value: Any, argument: str, least: float = -math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise LowlpTypeError(f"{argument}: expected a number or None, got {value!r:.40}")
    if not (-_F32_MAX <= value <= _F32_MAX and value > least):
        bound = "finite in float32" if least == -math.inf else "finite in float32 and more than 0"
        raise LowlpValueError(f"{argument}: must be {bound}, got {value!r:.40}")
    return float(value)


def _check_tables(cache: KVCache, batch: int, table: Any, lengths: Any, recent_table: Any) -> None:
    """Checks types and shapes of block tables and lengths."""
    if (recent_table is None) == cache.has_own_recent:
        expected = "expected, as the cache has recent_pages" if cache.has_own_recent else "goes with recent_pages"
        raise LowlpValueError(f"recent_table: {expected}, got {type(recent_table).__name__}")
    tables = [("block_table", table, (batch, "width")), ("lengths", lengths, (batch,))]
    if recent_table is not None:
        tables.append(("recent_table", recent_table, (batch, "width")))
    for name, array, wanted in tables:
        if str(array.dtype).removeprefix("torch.") != "int32":
            raise LowlpTypeError(f"{name}: expected int32, got {array.dtype}")
        if len(array.shape) != len(wanted) or array.shape[0] != batch:
            text = ", ".join(map(str, wanted))
            raise LowlpValueError(f"{name}: must have shape [{text}], got {tuple(array.shape)}")
    if not table.shape[1]:
        raise LowlpValueError("block_table: must have room for at least one page, got width 0")
    if recent_table is not None and recent_table.shape[1] != table.shape[1]:
        raise LowlpValueError(
            f"recent_table: must be as wide as block_table, {table.shape[1]}, got {recent_table.shape[1]}"
        )


def _read(
    cache: KVCache, given: dict[str, Any], scale: Any, window: Any, softcap: Any, return_lse: Any
) -> AttentionCall:
    """Checks all but what arrays hold."""
    q, table, lengths, sinks = given["q"], given["block_table"], given["lengths"], given["sinks"]
    if not isinstance(return_lse, bool):
        raise LowlpTypeError(f"return_lse: expected a bool, got {return_lse!r:.40}")
    is_bf16 = "bf16" in (cache.dtype, cache.books_type)
    activation = _type_of(q, "q", ("bf16",) if is_bf16 else ("f16", "bf16"))
    shape = tuple(q.shape)
    if len(shape) not in (3, 4) or shape[-1] != cache.head_dim:
        raise LowlpValueError(
            f"q: must have shape [B, heads, {cache.head_dim}] or [B, T, heads, {cache.head_dim}], got {shape}"
        )
    heads, queries = shape[-2], 1 if len(shape) == 3 else shape[1]
    if not heads or heads % cache.kv_heads:
        raise LowlpValueError(f"q: heads must be a multiple of the cache's {cache.kv_heads}, got {heads}")
    if not queries:
        raise LowlpValueError(f"q: must have at least one token a sequence, got shape {shape}")
    recent_table = given["recent_table"]
    _check_tables(cache, shape[0], table, lengths, recent_table)
    if sinks is not None and tuple(sinks.shape) != (heads,):
        raise LowlpValueError(f"sinks: must have shape ({heads},), got {tuple(sinks.shape)}")
    spec = AttentionSpec(
        activation=activation,
        cache=cache.dtype,
        head_dim=cache.head_dim,
        kv_heads=cache.kv_heads,
        page=cache.page,
        group=heads // cache.kv_heads,
        queries=queries,
        window=window is not None,
        softcap=softcap is not None,
        sinks="" if sinks is None else _type_of(sinks, "sinks", tuple(FLOAT_DTYPES)),
        lse=return_lse,
        recent=cache.recent > 0,
        books=cache.books_type,
        ordered=cache.is_ordered,
    )
    numbers: dict[str, int | float] = {"batch": shape[0], "pages": cache.pages, "table_width": table.shape[1]}
    numbers["pairs"] = shape[0] * cache.kv_heads * spec.column_blocks
    numbers["scale"] = 1 / math.sqrt(cache.head_dim) if scale is None else _number(scale, "scale")
    if window is not None:
        numbers["window"] = extent(window, "window")
    if softcap is not None:
        # Kernels multiply it by log2(e).
        numbers["softcap"] = min(_number(softcap, "softcap", 0.0), _MOST_CAP)
    arrays = {"q": q.reshape(shape[0] * queries, heads, cache.head_dim), "block_table": table, "lengths": lengths}
    if sinks is not None:
        arrays["sinks"] = sinks
    if cache.recent:
        arrays["recent_block_table"] = table if recent_table is None else recent_table
        numbers |= {"recent": cache.recent, "recent_pages": cache.recent_pages}
    return _strided(AttentionCall(spec, numbers, arrays, shape))


def _steps(array: Any) -> list[int]:
    return list(array.stride()) if is_torch_tensor(array) else [step // array.itemsize for step in array.strides]


def _strided(call: AttentionCall) -> AttentionCall:
    """The call with the strides of its arrays among the numbers; copies of those that kernels cannot read."""
    arrays, dim = dict(call.arrays), call.spec.head_dim

    def contiguous(array: Any) -> Any:
        return array.contiguous() if is_torch_tensor(array) else np.ascontiguousarray(array)

    q = arrays["q"]
    token, head, channel = _steps(q)
    if channel != 1 or head != dim or token % dim or token < q.shape[1] * dim or _address(q) % 16:
        q = contiguous(q)
        if _address(q) % 16:
            q = q.clone() if is_torch_tensor(q) else q.copy()
        token = q.shape[1] * dim
    numbers = call.numbers | {"q_rows": token // dim}
    for name in ("block_table", "recent_block_table"):
        if name not in arrays:
            continue
        table = arrays[name]
        row, entry = _steps(table)
        if entry != 1 or row < table.shape[1]:
            table = contiguous(table)
            row = table.shape[1]
        arrays[name] = table
        numbers[name.replace("block_table", "table_stride")] = row
    arrays |= {"q": q, "lengths": contiguous(arrays["lengths"])}
    if "sinks" in arrays:
        arrays["sinks"] = contiguous(arrays["sinks"])
    return call._replace(arrays=arrays, numbers=numbers)


def _address(array: Any) -> int:
    return int(array.data_ptr() if is_torch_tensor(array) else array.__array_interface__["data"][0])


def _splits_of(call: AttentionCall, splits: Any, schedule: AttentionSchedule, blocks: int) -> int:
    """Into how many parts each sequence is cut at most: as many as give each of so many blocks one, but whole tiles."""
    if splits is not None:
        return extent(splits, "splits", _MOST_SPLITS)
    tiles = -(-int(call.numbers["table_width"]) * call.spec.page // schedule.tile)
    return max(1, min(tiles, _MOST_SPLITS, blocks // max(1, int(call.numbers["pairs"]))))


# --- the CPU target ---------------------------------------------------------------------------------------------------


def _check_lengths(cache: KVCache, call: AttentionCall) -> None:
    """Raises `LowlpValueError` for lengths that the table has no pages for, and for pages that the cache has not, of
    those that are read."""
    tables = [("block_table", call.arrays["block_table"], cache.pages, 0)]
    if cache.has_own_recent:
        tables.append(("recent_table", call.arrays["recent_block_table"], cache.recent_pages, cache.recent))
    lengths, window = call.arrays["lengths"], call.numbers.get("window")
    room = tables[0][1].shape[1] * cache.page
    for row, length in enumerate(map(int, lengths)):
        if not 0 <= length <= room:
            raise LowlpValueError(f"lengths[{row}]: must be in 0..{room} (width * page), got {length}")
        unseen = 0 if window is None else max(0, length - int(window) - (call.spec.queries - 1))
        for name, table, pages, newest in tables:
            first = max(unseen, length - newest) if newest else unseen
            for at in range(first // cache.page, -(-length // cache.page)):
                if not 0 <= table[row, at] < pages:
                    raise LowlpValueError(f"{name}[{row}, {at}]: must be in 0..{pages - 1}, got {table[row, at]}")


def _spanned(array: AnyArray) -> AnyArray:
    """The memory that an array spans, as one dimension."""
    count = sum((extent - 1) * step for extent, step in zip(array.shape, _steps(array), strict=True)) + 1
    return np.lib.stride_tricks.as_strided(array, (count if array.size else 0,), (array.itemsize,))


def _as_words(kind: CacheType, stored: dict[str, Any]) -> dict[str, Any]:
    """The cache's arrays as kernels read them."""
    if not kind.is_coded:
        return stored
    keys, values = pointer_types(kind)
    return stored | {
        "keys": stored["keys"].view(_UNSIGNED[keys]),
        "values": stored["values"].view(_UNSIGNED[values]),
    }


def _on_cpu(
    call: AttentionCall, stored: dict[str, Any], splits: Any, schedule: AttentionSchedule | None = None
) -> tuple[AnyArray, AnyArray | None]:
    spec, arrays = call.spec, call.arrays
    out = np.zeros(call.shape, FLOAT_DTYPES[spec.activation])
    results: dict[str, Any] = {"out": out}
    if spec.lse:
        results["lse"] = np.zeros(call.shape[:-1], np.float32)
    chosen = schedule or default_schedule(spec)
    blocks = chosen.blocks_per_sm * CPU_MULTIPROCESSORS
    divided = division(call, chosen, _splits_of(call, splits, chosen, blocks), blocks)
    if out.size:
        kernel = _kernels.get((spec, chosen, "cpu"), lambda: compile_cpu(attention_kernel(spec, chosen)))
        spanned = {name: _spanned(array) for name, array in arrays.items()}
        kernel(**spanned, **_as_words(spec.kind, stored), **results, **call.numbers, **divided)
    return out, results.get("lse")
