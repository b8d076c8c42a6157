"""`lowlp.linear` on CUDA tensors, on a fake driver and a fake PyTorch: what reaches the driver, at first and later."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError
from lowlp.kernels.linear import measured
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.ops import linear_launch
from lowlp.ops.linear_kernels import notes_of
from lowlp.tuning.measured import MeasuredFile
from lowlp.weights.resident import ResidentTensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))
from fake_driver import FakeDriver, fake_driver
from fake_torch import FakeDevice, FakeTensor, FakeTorch, fake_torch
from test_tensor_map import encoded

__all__ = ["encoded", "fake_driver", "fake_torch"]

N, K = 64, 128
GPU, SECOND_GPU = FakeDevice(0), FakeDevice(1)


@pytest.fixture
def torch(fake_torch: FakeTorch, fake_driver: FakeDriver) -> Iterator[FakeTorch]:
    fake_driver.contexts = [100]
    return fake_torch


@pytest.fixture
def qw() -> lowlp.QuantizedTensor:
    codes = np.random.default_rng(0).integers(0, 16, (N, K), dtype=np.uint8)
    # Groups too small for kernels with stages, which take more parameters.
    return lowlp.QuantizedTensor(codes, dtype="uint4", scales=np.ones((N, K // 8), np.float32), group_size=8)


def tensor(torch: FakeTorch, *shape: int, dtype: Any = None, device: FakeDevice = GPU, **more: Any) -> FakeTensor:
    return FakeTensor(shape, dtype or torch.float16, device, **more)  # type: ignore[attr-defined]


def forbid_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("bound again")

    monkeypatch.setattr(linear_launch, "_bind", refuse)


def test_a_later_call_only_allocates_and_launches(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_driver.slots = 6  # x, weights, scales, y, m, x_stride
    first_x, second_x = tensor(torch, 3, K), tensor(torch, 3, K)
    first = lowlp.linear(first_x, qw)
    forbid_binding(monkeypatch)
    second = lowlp.linear(second_x, qw)
    assert (second.shape, second.dtype) == ((3, N), torch.float16)  # type: ignore[attr-defined]
    before, after = (launch["values"] for launch in fake_driver.launches)
    assert (before[0], before[3:]) == (first_x.data_ptr(), (first.data_ptr(), 3, K))
    assert (after[0], after[3:]) == (second_x.data_ptr(), (second.data_ptr(), 3, K))
    assert before[1:3] == after[1:3]
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 1


def test_calls_made_ready_for_some_rows_serve_x_of_every_rank(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_driver.slots = 6
    lowlp.linear(tensor(torch, 2, 3, K), qw)
    forbid_binding(monkeypatch)
    before = fake_driver.launches[-1]
    for shape in ((6, K), (3, 2, K), (2, 3, K), (6, 1, 1, K), (3, 2, K)):
        x = tensor(torch, *shape)
        y = lowlp.linear(x, qw)
        assert (y.shape, y.dtype) == ((*shape[:-1], N), torch.float16)  # type: ignore[attr-defined]
        launch = fake_driver.launches[-1]
        assert launch["grid"] == before["grid"]
        assert launch["values"] == (x.data_ptr(), *before["values"][1:3], y.data_ptr(), 6, K)
    # Rows at another distance, types and numbers of rows are other calls.
    for other in (tensor(torch, 2, 3, K, strides=(6 * K, 2 * K, 1)), tensor(torch, 5, 1, K)):
        with pytest.raises(AssertionError, match="bound again"):
            lowlp.linear(other, qw)


@pytest.mark.parametrize("calls_before", [0, 1])
def test_mistakes_are_found_in_every_call(torch: FakeTorch, qw: lowlp.QuantizedTensor, calls_before: int) -> None:
    x, bias = tensor(torch, 3, K), tensor(torch, N)
    for _ in range(calls_before):
        lowlp.linear(x, qw)
        lowlp.linear(x, qw, bias=bias)
    with pytest.raises(LowlpValueError, match=r"x: the last dimension must be K = 128, got shape \(3, 64\)"):
        lowlp.linear(tensor(torch, 3, 64), qw)
    with pytest.raises(LowlpValueError, match=r"x: the last dimension must be K = 128, got shape \(\)"):
        lowlp.linear(tensor(torch), qw)
    with pytest.raises(LowlpTypeError, match=r"x: expected float16 or bfloat16, got torch.float32"):
        lowlp.linear(tensor(torch, 3, K, dtype=torch.float32), qw)  # type: ignore[attr-defined]
    with pytest.raises(LowlpValueError, match=r"bias: must have shape \(64,\), got \(63,\)"):
        lowlp.linear(x, qw, bias=tensor(torch, N - 1))
    for wrong in (tensor(torch, N, device=SECOND_GPU), tensor(torch, N, dtype=torch.int8), np.zeros(N, np.float16)):  # type: ignore[attr-defined]
        with pytest.raises(LowlpTypeError, match="bias: expected a tensor of float16, bfloat16 or float32 on cuda:0"):
            lowlp.linear(x, qw, bias=wrong)
    with pytest.raises(LowlpTypeError, match="batch_invariant: expected a bool, or the N of"):
        lowlp.linear(x, qw, batch_invariant="yes")  # type: ignore[arg-type]


def test_words_that_are_on_the_device_stay_where_they_are(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor
) -> None:
    fake_driver.slots = 6
    arrays, header = qw.to_arrays()
    words = tensor(torch, arrays.pop("packed").size, dtype=torch.int32)  # type: ignore[attr-defined]
    resident = ResidentTensor.of_tensor(words, arrays, header)
    lowlp.linear(tensor(torch, 3, K), resident)
    assert fake_driver.launches[-1]["values"][1] == words.data_ptr()
    # On another device they are not; that is the only use that fetches them.
    assert resident.words_on(SECOND_GPU, "f16") is None and resident.nbytes == qw.nbytes


def test_a_first_call_in_a_capture_is_refused(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor
) -> None:
    x, other = tensor(torch, 3, K), tensor(torch, 5, K)
    torch.streams[0], fake_driver.captures[9] = 9, 1
    with pytest.raises(LowlpRuntimeError, match=r"x: a first call with 3 rows of .* compiles or uploads, which"):
        lowlp.linear(x, qw)
    torch.streams[0] = 5
    lowlp.linear(x, qw)
    torch.streams[0] = 9
    # Other rows of a kernel that is there need nothing more.
    assert lowlp.linear(x, qw).shape == (3, N) and lowlp.linear(other, qw).shape == (5, N)
    ids = tensor(torch, 2, 4, dtype=torch.int64)  # type: ignore[attr-defined]
    with pytest.raises(LowlpRuntimeError, match=r"ids: a first call with 8 rows of .* compiles or uploads"):
        lowlp.embedding(ids, qw)


def test_rows_are_looked_up_on_the_device(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    fake_driver.slots = 7  # ids, packed, places, table, scales, y, tokens
    ids = tensor(torch, 2, 4, dtype=torch.int64)  # type: ignore[attr-defined]
    for out in ("f16", "f32", "f16"):
        rows = lowlp.embedding(ids, qw, out_dtype=out)
        assert (rows.shape, rows.dtype.name) == ((2, 4, K), {"f16": "float16", "f32": "float32"}[out])
        launch = fake_driver.launches[-1]
        assert launch["grid"] == (8, 1, 1)
        assert (launch["values"][0], *launch["values"][5:]) == (ids.data_ptr(), rows.data_ptr(), 8)
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 2
    with pytest.raises(LowlpTypeError, match=r"ids: expected int32 or int64, got torch.int8"):
        lowlp.embedding(tensor(torch, 2, dtype=torch.int8), qw)  # type: ignore[attr-defined]


@pytest.mark.parametrize("calls_before", [0, 1])
def test_rows_of_any_place(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor, calls_before: int
) -> None:
    fake_driver.slots = 6
    base = 0x7100_0000_0000

    def rows_of(x: FakeTensor) -> tuple[int, ...]:
        for _ in range(calls_before + 1):
            y = lowlp.linear(x, qw)
        assert y.shape == (*x.shape[:-1], N)
        values = fake_driver.launches[-1]["values"]
        return values[0] - base, *values[4:]

    assert rows_of(tensor(torch, 5, K, address=base)) == (0, 5, K)
    assert rows_of(tensor(torch, 5, K, strides=(300, 1), address=base + 6)) == (6, 5, 300)
    assert rows_of(tensor(torch, 2, 3, K, address=base)) == (0, 6, K)
    assert rows_of(tensor(torch, K, address=base)) == (0, 1, K)
    assert rows_of(tensor(torch, 1, K, strides=(999, 1), address=base)) == (0, 1, K)
    assert rows_of(tensor(torch, 2, 3, K, strides=(900, 300, 1), address=base)) == (0, 6, 300)
    assert rows_of(tensor(torch, 5, K, strides=(0, 1), address=base)) == (0, 5, 0)
    # Copied: steps along K, and rows that no one stride reaches.
    assert rows_of(tensor(torch, 5, K, strides=(300, 2), address=base))[1:] == (5, K)
    assert rows_of(tensor(torch, 2, 3, K, strides=(1000, 300, 1), address=base))[1:] == (6, K)
    assert all(launch["values"][5] in (K, 300, 0) for launch in fake_driver.launches)


def test_alignment_selects_the_kernel(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    for x in (tensor(torch, 3, K), tensor(torch, 3, K, address=0x7100_0000_0002), tensor(torch, 3, K)):
        lowlp.linear(x, qw)
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 2
    assert len(fake_driver.launches) == 3


def test_no_rows_launch_nothing(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    assert lowlp.linear(tensor(torch, 2, 0, K), qw).shape == (2, 0, N)
    assert fake_driver.launches == []


def test_types_and_bias(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    fake_driver.slots = 7
    x = tensor(torch, 3, K, dtype=torch.bfloat16)  # type: ignore[attr-defined]
    bias = tensor(torch, N, dtype=torch.float32)  # type: ignore[attr-defined]
    for _ in range(2):
        y = lowlp.linear(x, qw, bias=bias, out_dtype="f32")
        assert y.dtype is torch.float32  # type: ignore[attr-defined]
        assert fake_driver.launches[-1]["values"][3:] == (bias.data_ptr(), y.data_ptr(), 3, K)
        assert lowlp.linear(x, qw, bias=bias).dtype is torch.bfloat16  # type: ignore[attr-defined]


def test_streams(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    x = tensor(torch, 3, K)
    torch.streams[0] = 5
    for stream in (None, 5, 6, None, 6):
        lowlp.linear(x, qw, stream=stream)
    # The result is allocated in the order of the stream on which it is written.
    assert torch.empty_on == [5, 5, 6, 5, 6]
    assert [launch["stream"] for launch in fake_driver.launches] == [5, 5, 6, 5, 6]


def test_devices(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    for device in (GPU, SECOND_GPU, GPU, SECOND_GPU):
        y = lowlp.linear(tensor(torch, 3, K, device=device), qw)
        assert y.device == device
    assert [launch["context"] for launch in fake_driver.launches] == [100, 101, 100, 101]
    assert fake_driver.contexts == [100]
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 2


def test_results_are_allocated_without_pytorchs_dispatcher_on_its_current_device(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor
) -> None:
    made = []

    def empty_strided(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> FakeTensor:
        made.append((shape, strides))
        return FakeTensor(shape, dtype, GPU, strides)

    torch._C._dynamo = SimpleNamespace(guards=SimpleNamespace(_empty_strided_cuda=empty_strided))
    torch._C._cuda_getDevice = lambda: 0
    for device in (GPU, SECOND_GPU) * 2:
        y = lowlp.linear(tensor(torch, 2, 3, K, device=device), qw, out_dtype="f32")
        assert (y.shape, y.dtype, y.device) == ((2, 3, N), torch.float32, device)  # type: ignore[attr-defined]
    assert made == [((2, 3, N), (3 * N, N, 1))] * 2
    assert len(torch.empty_on) == 2


def test_a_thread_without_a_context(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    x = tensor(torch, 3, K)
    lowlp.linear(x, qw)
    fake_driver.contexts = []
    lowlp.linear(x, qw)
    assert [launch["context"] for launch in fake_driver.launches] == [100, 100]
    assert fake_driver.contexts == []


def test_tensor_maps_are_made_in_a_context(
    torch: FakeTorch, fake_driver: FakeDriver, encoded: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, scales = np.zeros((N, 2 * K), np.uint8), np.ones((N, 2), np.float16)
    weights = lowlp.QuantizedTensor(codes, dtype="uint4", scales=scales, group_size=K)
    contexts, encode = [], fake_driver.cuTensorMapEncodeTiled  # type: ignore[attr-defined]

    def counted(*arguments: Any) -> Any:
        contexts.append(list(fake_driver.contexts))
        return encode(*arguments)

    monkeypatch.setattr(fake_driver, "cuTensorMapEncodeTiled", counted)
    fake_driver.contexts = []
    lowlp.linear(tensor(torch, 3, 2 * K), weights)
    assert len(contexts) == len(encoded) == 3 and all(contexts)


def test_many_threads(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    fake_driver.slots = 6
    found: dict[int, int] = {}
    lowlp.linear(tensor(torch, 1, K), qw)

    def work(rows: int) -> None:
        for _ in range(200):
            x = tensor(torch, rows, K)
            found[x.data_ptr()] = rows
            lowlp.linear(x, qw)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(rows,)) for rows in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    launches = [launch["values"] for launch in fake_driver.launches[1:]]
    assert len(launches) == 8 * 200
    assert all(found[values[0]] == values[4] for values in launches)


def test_weights_go_when_nobody_holds_them(torch: FakeTorch) -> None:
    gc.disable()
    try:
        weights = [
            lowlp.QuantizedTensor(
                np.zeros((N, K), np.uint8), dtype="uint4", scales=np.ones((N, K // 8), np.float32), group_size=8
            )
        ]
        lowlp.linear(tensor(torch, 3, K), weights[0])
        held = weakref.ref(weights[0])
        before = len(linear_launch._calls)
        weights.clear()
        assert held() is None
        assert len(linear_launch._calls) == before - 1
    finally:
        gc.enable()


def test_what_weights_remember_is_bounded(torch: FakeTorch, qw: lowlp.QuantizedTensor) -> None:
    for m in range(1, 300):
        lowlp.linear(tensor(torch, m, K), qw)
    mine = [key for key in linear_launch._calls if key[0] == id(qw)]  # type: ignore[index]
    assert sorted(map(id, mine)) == sorted(map(id, linear_launch._kept.of(qw).keys))
    assert 0 < len(mine) <= 256
    assert pickle.loads(pickle.dumps(qw)) == qw


def test_kernels_start_early_but_for_their_first_call_and_where_that_is_off(
    torch: FakeTorch, fake_driver: FakeDriver, encoded: list[Any]
) -> None:
    """Where it is off, the kernel is one that waits for nothing by itself."""
    weights = lowlp.QuantizedTensor(
        np.zeros((N, 2 * K), np.uint8), dtype="uint4", scales=np.ones((N, 2), np.float16), group_size=K
    )
    fake_driver.slots = 7
    x = tensor(torch, 3, 2 * K)
    for _ in range(3):
        lowlp.linear(x, weights)
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 1
    # Of another rank it is no first call: as many rows were launched before.
    lowlp.linear(tensor(torch, 1, *x.shape), weights)
    with lowlp.no_dependent_launch():
        for _ in range(2):
            lowlp.linear(x, weights)
    lowlp.linear(x, weights)
    assert ["early" in launch for launch in fake_driver.launches] == [False, True, True, True, False, False, True]
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 2


@pytest.mark.parametrize("m", [1, 40])
def test_kernels_that_share_their_work_are_told_among_how_many_blocks(m: int) -> None:
    spec = LinearSpec(n=1000, k=512, codec="int4 g128 f16")
    schedule = Schedule(columns=8, warps=2, stages=3, row_tiles=4, slices=2)
    tiles = -(-1000 // (16 * 4 * 2)) * -(-m // 8)
    stages = 512 // (64 * 2)
    assert product_of(spec, schedule).launch_numbers(m, 512, None, 132)["blocks"] == min(tiles * stages, 132)
    two = product_of(spec, replace(schedule, blocks_per_sm=2))
    assert two.launch_numbers(m, 512, None, 8)["blocks"] == 16
    assert product_of(spec, Schedule()).launch_numbers(m, 512, None, 132) == {"m": m, "x_stride": 512}


def test_kernels_with_stages(torch: FakeTorch, fake_driver: FakeDriver, encoded: list[Any]) -> None:
    """Maps of weights, x and scales, made once for the same tensors; and the number of blocks as the last parameter."""
    weights = lowlp.QuantizedTensor(
        np.zeros((N, 2 * K), np.uint8), dtype="uint4", scales=np.ones((N, 2), np.float16), group_size=K
    )
    fake_driver.slots = 7
    x = tensor(torch, 3, 2 * K)
    for _ in range(2):
        lowlp.linear(x, weights)
    first, second = fake_driver.launches
    *_, m, stride, blocks = first["values"]
    assert (m, stride) == (3, 2 * K)
    assert first["grid"] == second["grid"] == (blocks, 1, 1)
    assert len(encoded) == 3
    assert x.data_ptr() in [arguments[2] for arguments in encoded]


def test_a_table_that_is_added_counts_for_calls_that_were_made_ready(
    torch: FakeTorch, fake_driver: FakeDriver, encoded: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "_added", ())
    weights = lowlp.QuantizedTensor(
        np.zeros((N, 2 * K), np.uint8), dtype="uint4", scales=np.ones((N, 2), np.float16), group_size=K
    )
    made: list[Schedule] = []
    kernel_of = linear_launch.gpu_kernel

    def gpu_kernel(spec: LinearSpec, schedule: Schedule, arch: str) -> Any:
        made.append(schedule)
        return kernel_of(spec, schedule, arch)

    monkeypatch.setattr(linear_launch, "gpu_kernel", gpu_kernel)
    x = tensor(torch, 3, 2 * K)
    for _ in range(2):
        lowlp.linear(x, weights)
    # What was measured on another GPU comes after.
    for gpu, warps, slices in (("Fake GPU", 2, 4), ("another", 4, 2)):
        schedule = {"warps": warps, "stages": 2, "row_tiles": 1, "slices": slices}
        MeasuredFile(tmp_path / "mine.json", gpu).put(
            ("uint4 g128 f16", N, 2 * K, 16), {"arch": "sm_90a", "schedule": schedule}
        )
        lowlp.use_tuned((tmp_path / "mine.json").rename(tmp_path / f"{gpu}.json"))
        for _ in range(2):
            lowlp.linear(x, weights)
    assert len(made) == 3 and made[0] != made[1] == made[2]
    assert (made[1].warps, made[1].slices) == (2, 4)
    assert len(fake_driver.launches) == 6


def test_notes_tell_what_counts_of_a_schedule() -> None:
    spec = LinearSpec(n=1000, k=512, codec="int4 g128 f16")
    assert notes_of(spec, Schedule(16, 4))["schedule"] == {"columns": 16, "warps": 4}
    streamed = notes_of(spec, Schedule(8, 2, stages=3, slices=2))["schedule"]
    assert streamed == {
        "columns": 8, "warps": 2, "stages": 3, "row_tiles": 4, "slices": 2, "units": 1, "steps": 1, "producer": True,
        "share_tiles": True, "blocks_per_sm": 1
    }  # fmt: skip
    wide = notes_of(spec, Schedule(64, stages=3, warpgroups=2))["schedule"]
    assert isinstance(wide, dict)
    assert (wide["warpgroups"], wide["scales_on"]) == (2, "accumulators")


@pytest.mark.parametrize("calls_before", [0, 1])
def test_residuals_of_any_place(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor, calls_before: int
) -> None:
    fake_driver.slots = 8  # x, weights, scales, residual, y, m, x_stride, residual_stride
    x = tensor(torch, 2, 3, K)

    def values_of(residual: FakeTensor, **options: Any) -> tuple[int, ...]:
        for _ in range(calls_before + 1):
            y = lowlp.linear(x, qw, residual=residual, **options)
        assert y.shape == residual.shape
        values: tuple[int, ...] = fake_driver.launches[-1]["values"]
        assert values[4] == y.data_ptr()
        return values[3], *values[5:]

    residual = tensor(torch, 2, 3, N)
    assert values_of(residual) == (residual.data_ptr(), 6, K, N)
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 1
    residual = tensor(torch, 2, 3, N, strides=(300, 100, 1))
    assert values_of(residual) == (residual.data_ptr(), 6, K, 100)
    # Rows that are not aligned take another kernel.
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 2
    # Copied, since no one stride reaches the rows.
    residual = tensor(torch, 2, 3, N, strides=(1000, 100, 1))
    copied, *rest = values_of(residual)
    assert copied != residual.data_ptr()
    assert rest == [6, K, N]
    residual = tensor(torch, 2, 3, N // 2, dtype=torch.float32)  # type: ignore[attr-defined]
    assert values_of(residual, epilogue="silu_mul") == (residual.data_ptr(), 6, K, N // 2)


@pytest.mark.parametrize("calls_before", [0, 1])
def test_mistakes_of_residuals(torch: FakeTorch, qw: lowlp.QuantizedTensor, calls_before: int) -> None:
    x = tensor(torch, 3, K)
    for _ in range(calls_before):
        lowlp.linear(x, qw, residual=tensor(torch, 3, N))
    for shape in ((3, N // 2), (2, N), (1, 3, N)):
        with pytest.raises(LowlpValueError, match=r"residual: must have the shape of the result, \(3, 64\), got \("):
            lowlp.linear(x, qw, residual=tensor(torch, *shape))
    for wrong in (tensor(torch, 3, N, device=SECOND_GPU), tensor(torch, 3, N, dtype=torch.int8), np.zeros((3, N))):  # type: ignore[attr-defined]
        with pytest.raises(LowlpTypeError, match="residual: expected a tensor of float16, bfloat16 or float32 on cuda"):
            lowlp.linear(x, qw, residual=wrong)
    with pytest.raises(LowlpValueError, match=r"epilogue: must be None or one of relu, .*, got 'swish'"):
        lowlp.linear(x, qw, epilogue="swish")
