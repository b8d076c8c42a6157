"""`lowlp.kv_append`: new keys and values, quantised and put into a cache, where it is."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from lowlp.compiler.compilation import compile, compile_cpu
from lowlp.compiler.kernel_cache import Once
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.attention.append import append_kernel, has_few_tokens, takers_of
from lowlp.kernels.attention.append_spec import AppendSpec
from lowlp.numeric.host_array import AnyArray, as_host_array
from lowlp.schedules.device import device_of
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.stream import current_torch_stream, other_torch_stream

from .graph_breaks import outside_of_graphs
from .kept_calls import KeptCalls, kind_of
from .kv_cache import FLOAT_NAMES, STORED, KVCache
from .linear_on_cpu import CPU_MULTIPROCESSORS

_WIDE_BYTES: Final = 16

_kernels = Once()
_launches: dict[Any, BoundLaunch] = {}
_MAX_LAUNCHES = 1024


@outside_of_graphs
def kv_append(cache: KVCache, k: Any, v: Any, slots: Any, *, recent_slots: Any = None, stream: object = None) -> None:
    """Quantises new keys and values and puts them into the cache, where they are.

    cache   a `KVCache`
    k, v    [T, kv_heads, head_dim] of float16, bfloat16 or float32; tokens may be any distance apart. Numpy arrays, or
            tensors of PyTorch on the CPU, are appended to a cache on the CPU; CUDA tensors on that device, in the order
            of `stream` or PyTorch's current one, so that it can be captured in a CUDA graph
    slots   [T], int32 or int64: page number * page + place in the page, of each token, all different; negative ones
            leave a token out. Beyond the cache: refused on the CPU, left out on a GPU
    recent_slots  for a cache with `recent_pages`: as slots, where tokens go in f16, negative for those that will not be
            among the newest
    stream  as for `lowlp.linear`

    What a token's codes are depends on its own row alone, so one token at a time gives the bits that all at once do.
    Raises `LowlpTypeError` and `LowlpValueError` for arguments that do not fit, `CpuTargetError`, `DeviceError`.
    """
    on_gpu = is_torch_tensor(k) and k.is_cuda
    if on_gpu:

        def kind() -> Any:
            return (
                *(id(cache), kind_of(k), kind_of(v), kind_of(slots), kind_of(recent_slots)),
                *(k.data_ptr() % _WIDE_BYTES, v.data_ptr() % _WIDE_BYTES),
            )

        if other := other_torch_stream(stream, k.device):
            with other:
                kv_append(cache, k, v, slots, recent_slots=recent_slots)
                return
        kept = _calls.find(kind)
        if kept is not None:
            more = () if not cache.recent else (slots,) if recent_slots is None else (recent_slots,)
            kept.run((k, v, slots, *more))
            return
    if not isinstance(cache, KVCache):
        raise LowlpTypeError(f"cache: expected a KVCache, got {type(cache).__name__}")
    if on_gpu:
        check_on_device({"v": v, "slots": slots, "recent_slots": recent_slots}, ("recent_slots",), k.device)
    else:
        if stream is not None:
            raise LowlpValueError("stream: allowed for CUDA tensors only, and k is on the CPU")
        k, v, slots = as_host_array(k, "k"), as_host_array(v, "v"), as_host_array(slots, "slots")
    if (recent_slots is None) == cache.has_own_recent:
        wanted = "expected, as the cache has recent_pages" if cache.has_own_recent else "goes with recent_pages"
        raise LowlpValueError(f"recent_slots: {wanted}, got {type(recent_slots).__name__}")
    source = _check_rows(cache, k, v, slots)
    if recent_slots is not None:
        recent_slots = recent_slots if on_gpu else as_host_array(recent_slots, "recent_slots")
        if recent_slots.dtype != slots.dtype:
            raise LowlpTypeError(f"recent_slots: must be of the type of slots, {slots.dtype}, got {recent_slots.dtype}")
        _check_slots(recent_slots, "recent_slots", k.shape[0], cache.recent_pages * cache.page, "recent_pages * page")
    asked = {"k": k, "v": v, "slots": slots}
    if cache.recent:
        asked["recent_slots"] = slots if recent_slots is None else recent_slots
    k, v = _dense_rows(k), _dense_rows(v)
    given = {"k": k, "v": v} | {name: _contiguous(array) for name, array in asked.items() if name not in ("k", "v")}
    slots = given["slots"]
    arrays = cache.on(k.device if on_gpu else "cpu", "k")
    processors = multiprocessors(k.get_device()) if on_gpu else CPU_MULTIPROCESSORS
    spec, numbers = _kernel_for(cache, source, k, v, slots, processors)
    if on_gpu:
        bound = _bind_append(spec, arrays, given, numbers)
        bound.run(given.values())
        if all(array.data_ptr() == asked[name].data_ptr() for name, array in given.items()):
            _calls.keep(cache, kind(), bound)
    elif k.shape[0]:
        _append_on_cpu(spec, arrays, given, numbers)


def _kernel_for(
    cache: KVCache, source: str, k: Any, v: Any, slots: Any, processors: int
) -> tuple[AppendSpec, dict[str, int]]:
    """What the kernel is specialised for, and its numbers."""
    strides = [_stride_of(rows) for rows in (k, v)]
    spec = AppendSpec(
        source,
        cache.dtype,
        cache.head_dim,
        cache.kv_heads,
        cache.page,
        wide_slots=_item_bytes(slots) == 8,
        aligned=all(_address(rows) % _WIDE_BYTES == 0 for rows in (k, v)) and not any(step % 8 for step in strides),
        recent=cache.recent > 0,
        books=cache.books_type,
        ordered=cache.is_ordered,
        few_tokens=cache.codebooks is None or has_few_tokens(source, cache.books_type, k.shape[0]),
    )
    numbers = {"tokens": k.shape[0], "pages": cache.pages, "k_stride": strides[0], "v_stride": strides[1]}
    if spec.recent:
        numbers["recent_pages"] = cache.recent_pages
    if spec.kind.vector:
        numbers["takers"] = takers_of(spec, k.shape[0], processors)
    return spec, numbers


def check_on_device(given: Mapping[str, Any], optional: Collection[str], device: Any) -> None:
    """Raises `LowlpTypeError` for an argument that is no tensor on the device; those that are optional may be None."""
    for name, tensor in given.items():
        if tensor is None and name in optional:
            continue
        if not is_torch_tensor(tensor) or tensor.device != device:
            raise LowlpTypeError(f"{name}: expected a tensor on {device}, got {tensor!r:.60}")


def _check_rows(cache: KVCache, k: Any, v: Any, slots: Any) -> str:
    """The type of the new rows. Raises where they do not fit the cache."""
    source = FLOAT_NAMES.get(str(k.dtype).removeprefix("torch."))
    if source is None:
        raise LowlpTypeError(f"k: expected float16, bfloat16 or float32, got {k.dtype}")
    if v.dtype != k.dtype:
        raise LowlpTypeError(f"v: must be of the type of k, {k.dtype}, got {v.dtype}")
    wanted = (cache.kv_heads, cache.head_dim)
    for name, rows in (("k", k), ("v", v)):
        if len(rows.shape) != 3 or tuple(rows.shape[1:]) != wanted:
            raise LowlpValueError(f"{name}: must have shape [T, {wanted[0]}, {wanted[1]}], got {tuple(rows.shape)}")
    if v.shape[0] != k.shape[0]:
        raise LowlpValueError(f"v: must have as many tokens as k, {k.shape[0]}, got {v.shape[0]}")
    if str(slots.dtype).removeprefix("torch.") not in ("int32", "int64"):
        raise LowlpTypeError(f"slots: expected int32 or int64, got {slots.dtype}")
    _check_slots(slots, "slots", k.shape[0], cache.pages * cache.page, "pages * page")
    return source


def _check_slots(slots: Any, argument: str, count: int, room: int, text: str) -> None:
    if tuple(slots.shape) != (count,):
        raise LowlpValueError(f"{argument}: must have shape ({count},), got {tuple(slots.shape)}")
    if isinstance(slots, np.ndarray) and slots.size:
        if (most := int(slots.max())) >= room:
            raise LowlpValueError(f"{argument}: must be less than {text} = {room}, got {most}")
        used = slots[slots >= 0]
        if len(np.unique(used)) != len(used):
            raise LowlpValueError(f"{argument}: must be all different, but for negative ones, got one twice")


def with_whole_steps(array: Any) -> Any:
    """The array; a copy where elements of numpy's are not whole elements apart, as those of a field of records."""
    if is_torch_tensor(array) or not any(step % array.itemsize for step in array.strides):
        return array
    return np.ascontiguousarray(array)


def _dense_rows(rows: Any) -> Any:
    """Rows [T, heads, channels] whose heads lie side by side; a copy where they do not."""
    rows = with_whole_steps(rows)
    step = rows.stride() if is_torch_tensor(rows) else [each // rows.itemsize for each in rows.strides]
    if step[2] == 1 and step[1] == rows.shape[2] and step[0] >= 0:
        return rows
    return rows.contiguous() if is_torch_tensor(rows) else np.ascontiguousarray(rows)


def _stride_of(rows: Any) -> int:
    if rows.shape[0] < 2:
        return int(rows.shape[1] * rows.shape[2])
    return int(rows.stride()[0]) if is_torch_tensor(rows) else rows.strides[0] // rows.itemsize


def _contiguous(array: Any) -> Any:
    return array.contiguous() if is_torch_tensor(array) else np.ascontiguousarray(array)


def _address(array: Any) -> int:
    return int(array.data_ptr() if is_torch_tensor(array) else array.__array_interface__["data"][0])


def _item_bytes(array: Any) -> int:
    return int(array.element_size() if is_torch_tensor(array) else array.itemsize)


def _append_on_cpu(spec: AppendSpec, arrays: dict[str, Any], given: dict[str, Any], numbers: dict[str, int]) -> None:
    kernel = _kernels.get((spec, "cpu"), lambda: compile_cpu(append_kernel(spec)))
    width = spec.kv_heads * spec.head_dim

    def memory(array: AnyArray, stride: int) -> AnyArray:
        """What the rows span, as one dimension."""
        spanned = (array.shape[0] - 1) * stride + width
        return np.lib.stride_tricks.as_strided(array, (spanned,), (array.itemsize,))

    stored = {
        name: array.view(np.uint16) if spec.kind.is_coded and array.dtype == np.uint8 else array
        for name, array in arrays.items()
    }
    slots = {name: array.view(np.int32) for name, array in given.items() if name not in ("k", "v")}
    rows = {name: memory(given[name], numbers[f"{name}_stride"]) for name in ("k", "v")}
    kernel(**rows, **slots, **stored, **numbers)


class _BoundAppend(NamedTuple):
    """What a call on CUDA tensors needs beside these: the kernel with its numbers, the number of the device, and
    addresses of the cache's arrays, which stay."""

    launch: BoundLaunch
    ordinal: int
    stored: tuple[int, ...]

    def run(self, tensors: Iterable[Any]) -> None:
        addresses = [*(tensor.data_ptr() for tensor in tensors), *self.stored]
        self.launch.run(addresses, self.ordinal, current_torch_stream(self.ordinal))


_calls: KeptCalls[_BoundAppend] = KeptCalls()


def _bind_append(
    spec: AppendSpec, arrays: dict[str, Any], given: dict[str, Any], numbers: dict[str, int]
) -> _BoundAppend:
    ordinal = given["k"].get_device()
    key = (spec, ordinal, *numbers.values())
    launch = _launches.get(key)
    stored = [name for name in STORED if name in arrays]
    if launch is None:
        arch = device_of(ordinal).arch
        kernel = _kernels.get((spec, arch), functools.partial(compile, append_kernel(spec), arch))
        if len(_launches) >= _MAX_LAUNCHES:
            _launches.clear()
        launch = _launches[key] = kernel.launcher.bind(numbers, [*given, *stored])
    return _BoundAppend(launch, ordinal, tuple(arrays[name].data_ptr() for name in stored))
