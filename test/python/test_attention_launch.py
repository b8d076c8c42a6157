"""`lowlp.attention_decode` and `lowlp.kv_append` on CUDA tensors, on a fake driver and a fake PyTorch: what reaches the
driver, at first and later."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.ops import attention, attention_launch, kv_append

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))
from fake_driver import FakeDriver, fake_driver
from fake_torch import FakeDevice, FakeTensor, FakeTorch, fake_torch

__all__ = ["fake_driver", "fake_torch"]

GPU = FakeDevice(0)


@pytest.fixture
def torch(fake_torch: FakeTorch, fake_driver: FakeDriver) -> Iterator[Any]:
    fake_driver.contexts = [100]
    yield fake_torch
    attention_launch._launches.clear()
    kv_append._launches.clear()


def cache_on_gpu(**change: Any) -> lowlp.KVCache:
    options: dict[str, Any] = {"pages": 4, "page": 16, "kv_heads": 2, "head_dim": 64, "dtype": "f16"}
    cache = lowlp.KVCache(**(options | change))
    cache.on(GPU, "q")
    return cache


def arguments(torch: Any, batch: int = 3) -> tuple[FakeTensor, FakeTensor, FakeTensor]:
    q = FakeTensor((batch, 4, 64), torch.float16, GPU)
    return q, FakeTensor((batch, 2), torch.int32, GPU), FakeTensor((batch,), torch.int32, GPU)


def forbid(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError(f"{name} again")

    monkeypatch.setattr(module, name, refuse)


def test_a_later_call_only_allocates_and_launches(
    torch: Any, fake_driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_driver.slots = 7
    cache = cache_on_gpu()
    calls = [arguments(torch), arguments(torch)]
    results = []
    for q, table, lengths in calls:
        results.append(lowlp.attention_decode(q, cache, table, lengths, return_lse=True))
        forbid(monkeypatch, attention, "_read")
    for (q, table, lengths), (o, lse), launch in zip(calls, results, fake_driver.launches, strict=True):
        stored = (cache.keys.data_ptr(), cache.values.data_ptr())
        assert (o.shape, lse.shape, lse.dtype) == ((3, 4, 64), (3, 4), torch.float32)
        tables = (table.data_ptr(), lengths.data_ptr())
        assert launch["values"] == (q.data_ptr(), *stored, *tables, o.data_ptr(), lse.data_ptr())
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 1


def test_another_kind_of_call_is_checked(torch: Any) -> None:
    cache = cache_on_gpu()
    q, table, lengths = arguments(torch)
    lowlp.attention_decode(q, cache, table, lengths, window=1)
    with pytest.raises(LowlpTypeError, match="window: expected an int, got True"):
        lowlp.attention_decode(q, cache, table, lengths, window=True)
    with pytest.raises(LowlpTypeError, match="lengths: expected a tensor on cuda:0"):
        lowlp.attention_decode(q, cache, table, [1, 2, 3], window=1)
    with pytest.raises(LowlpTypeError, match="block_table: expected int32"):
        lowlp.attention_decode(q, cache, FakeTensor((3, 2), torch.float32, GPU), lengths, window=1)
    with pytest.raises(LowlpTypeError, match="cache: expected a KVCache, got NoneType"):
        lowlp.attention_decode(q, None, table, lengths, window=1)  # type: ignore[arg-type]


def test_what_is_copied_is_copied_again(torch: Any, fake_driver: FakeDriver) -> None:
    fake_driver.slots = 4
    cache = cache_on_gpu()
    q, _, lengths = arguments(torch)
    table = FakeTensor((3, 2), torch.int32, GPU, strides=(1, 3))
    for _ in range(2):
        lowlp.attention_decode(q, cache, table, lengths)
    first, second = (launch["values"][3] for launch in fake_driver.launches)
    assert len({first, second, table.data_ptr()}) == 3


def test_a_stream_of_the_callers(torch: Any, fake_driver: FakeDriver) -> None:
    cache = cache_on_gpu()
    for stream in (5, 0, 7):
        lowlp.attention_decode(*arguments(torch)[:1], cache, *arguments(torch)[1:], stream=stream)
        k = FakeTensor((2, 2, 64), torch.float16, GPU)
        lowlp.kv_append(cache, k, k, FakeTensor((2,), torch.int32, GPU), stream=stream)
        assert [launch["stream"] for launch in fake_driver.launches[-2:]] == [stream, stream]


def test_calls_go_with_their_cache(torch: Any) -> None:
    cache = cache_on_gpu()
    before = len(attention_launch.calls._calls)
    lowlp.attention_decode(*arguments(torch)[:1], cache, *arguments(torch)[1:])
    assert len(attention_launch.calls._calls) == before + 1
    del cache
    gc.collect()
    assert len(attention_launch.calls._calls) == before


@pytest.mark.parametrize("recent", [0, 8])
def test_a_later_append_only_launches(
    torch: Any, fake_driver: FakeDriver, monkeypatch: pytest.MonkeyPatch, recent: int
) -> None:
    cache = cache_on_gpu(dtype="int4", recent=recent)
    fake_driver.slots = 3

    def append() -> tuple[FakeTensor, FakeTensor]:
        k, v = (FakeTensor((5, 2, 64), torch.bfloat16, GPU) for _ in range(2))
        slots = FakeTensor((5,), torch.int32, GPU)
        lowlp.kv_append(cache, k, v, slots)
        assert fake_driver.launches[-1]["values"] == (k.data_ptr(), v.data_ptr(), slots.data_ptr())
        return k, slots

    k, slots = append()
    with monkeypatch.context() as patch:
        forbid(patch, kv_append, "_check_rows")
        append()
    with pytest.raises(LowlpValueError, match="v: must have as many tokens as k, 5, got 4"):
        lowlp.kv_append(cache, k, FakeTensor((4, 2, 64), torch.bfloat16, GPU), slots)
