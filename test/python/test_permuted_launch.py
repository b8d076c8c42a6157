"""Products with permuted weights on a fake driver: a kernel before them makes their x, called or saved and loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
import lowlp_runtime
from lowlp.cli import inspect
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.schedule import Schedule
from lowlp_runtime import product_launch
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.errors import KernelFileError
from lowlp_runtime.operand_arrays import host_operands
from lowlp_runtime.operands import Operand

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))
from fake_driver import FakeDriver, fake_driver
from fake_torch import FakeDevice, FakeTensor, FakeTorch, fake_torch
from test_tensor_map import encoded

__all__ = ["encoded", "fake_driver", "fake_torch"]

N, K = 64, 120
GPU = FakeDevice(0)


@pytest.fixture
def torch(fake_torch: FakeTorch, fake_driver: FakeDriver) -> Iterator[FakeTorch]:
    fake_driver.contexts = [100]
    # Of both kernels: x, permutation, y, m, x_stride, blocks_of_row; and x, weights, scales, y, m, x_stride.
    fake_driver.slots = 6
    return fake_torch


@pytest.fixture
def qw() -> lowlp.QuantizedTensor:
    rng = np.random.default_rng(0)
    # Groups too small for kernels with stages, which take more parameters.
    return lowlp.QuantizedTensor(
        rng.integers(0, 16, (N, K), dtype=np.uint8),
        dtype="int4",
        scales=np.ones((N, K // 8), np.float16),
        group_size=8,
        g_idx=rng.permutation(np.arange(K) // 8),
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "k.lowlp"
    lowlp.compile_linear(n=N, k=K, weight="int4", group_size=8, schedule=Schedule(), permutation=True).save(path)
    return path


def tensor(torch: Any, *shape: int, **more: Any) -> FakeTensor:
    return FakeTensor(shape, more.pop("dtype", torch.float16), GPU, **more)


def check_launches(fake_driver: FakeDriver, x: FakeTensor, y: FakeTensor, stride: int) -> None:
    """The last two: rows of x in another order, and their product."""
    first, second = (launch["values"] for launch in fake_driver.launches[-2:])
    assert (first[0], first[3:]) == (x.data_ptr(), (5, stride, 1))
    assert (second[0], second[3:]) == (first[2], (y.data_ptr(), 5, K))
    assert first[2] not in (x.data_ptr(), y.data_ptr())


def test_calls_launch_both(torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor) -> None:
    for call in range(3):
        x = tensor(torch, 5, K)
        check_launches(fake_driver, x, lowlp.linear(x, qw), K)
        # The first finds weights that were just written.
        assert ["early" in launch for launch in fake_driver.launches[-2:]] == [call > 0, False]
    # Rows that are not aligned are read by another kernel; the product is the same.
    x = tensor(torch, 5, K, strides=(K + 1, 1))
    check_launches(fake_driver, x, lowlp.linear(x, qw), K + 1)
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 3
    assert lowlp.linear(tensor(torch, 0, K), qw).shape == (0, N)


def test_a_loaded_kernel_launches_both(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor, saved: Path
) -> None:
    kernel = lowlp_runtime.load(saved)
    for weights in (qw, qw, qw.to_arrays()):
        x = tensor(torch, 5, K)
        check_launches(fake_driver, x, kernel(x, weights), K)
    # Copied, as the kernel before reads aligned rows.
    x = tensor(torch, 5, K, strides=(K + 1, 1))
    kernel(x, qw)
    first, second = (launch["values"] for launch in fake_driver.launches[-2:])
    assert first[0] != x.data_ptr() and second[0] == first[2]


def test_few_rows_are_put_in_order_by_the_product(
    torch: FakeTorch, fake_driver: FakeDriver, encoded: list[Any]
) -> None:
    rng = np.random.default_rng(0)
    ordered = lowlp.QuantizedTensor(
        rng.integers(0, 16, (N, 256), dtype=np.uint8),
        dtype="int4",
        scales=np.ones((N, 2), np.float16),
        group_size=128,
        g_idx=rng.permutation(np.arange(256) // 128),
    )
    kernel = lowlp.compile_linear(n=N, k=256, m=(1, 2), weight="int4", group_size=128, permutation=True)
    product = kernel.description.require_product()
    assert kernel.binary.before is None and product.required("permutation").shape == (256,)
    fake_driver.slots = len(product.operands)
    x = tensor(torch, 2, 256)
    y = kernel(x, ordered)
    got = dict(zip([operand.role for operand in product.operands], fake_driver.launches[-1]["values"], strict=True))
    assert (got["x"], got["y"], got["m"], got["x_stride"]) == (x.data_ptr(), y.data_ptr(), 2, 256)
    lowlp.linear(x, ordered)
    assert len(fake_driver.launches) == 2
    plain = lowlp.QuantizedTensor(ordered.codes, dtype="int4", scales=ordered.scales, group_size=128)
    with pytest.raises(
        LowlpValueError, match=r"qw: of permutations of K it has none, and kernel .* takes weights with one"
    ):
        kernel(x, plain)


@pytest.mark.parametrize(
    ("wrong", "got"),
    [
        (np.arange(5, dtype=np.int32), r"of shape \[K\] = \[120\], got shape \[5\]"),
        (np.full(K, 10**6, np.int32), "got 1000000"),
        (np.arange(-1, K - 1, dtype=np.int32), "got -1"),
        (np.zeros(K, np.int32), "but column 0 is in 120 places"),
    ],
)
def test_a_stored_permutation_is_checked_before_a_launch(
    torch: FakeTorch, fake_driver: FakeDriver, qw: lowlp.QuantizedTensor, saved: Path, wrong: Any, got: str
) -> None:
    arrays, header = qw.to_arrays()
    message = f"qw: permutation: must name each of 0 to 119 once,? {got}"
    kernel = lowlp_runtime.load(saved)
    for _ in range(2):
        with pytest.raises(LowlpValueError, match=message):
            kernel(tensor(torch, 5, K), ({**arrays, "permutation": wrong}, header))
    within = Operand("order", "permutation", "int32", (K,))
    with pytest.raises(LowlpValueError, match=message if wrong.size == K else r"permutation must have shape \[120\]"):
        host_operands([within], {"permutation": wrong})
    assert not fake_driver.launches


def test_a_stored_permutation_is_checked_once(
    torch: FakeTorch, qw: lowlp.QuantizedTensor, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []
    monkeypatch.setattr(product_launch, "check_permutation", lambda order, k, name: checked.append(k))
    kernel, weights = lowlp_runtime.load(saved), qw.to_arrays()
    for m in (5, 5, 6):
        kernel(tensor(torch, m, K), weights)
    assert checked == [K]


def test_kernels_and_weights_of_another_order(torch: FakeTorch, qw: lowlp.QuantizedTensor, saved: Path) -> None:
    plain = lowlp.QuantizedTensor(qw.codes, dtype="int4", scales=qw.scales, group_size=8)
    x = tensor(torch, 5, K)
    with pytest.raises(
        LowlpValueError, match="qw: of permutations of K it has none, and kernel 'linear_int4_f16' takes"
    ):
        lowlp.load(saved)(x, plain)
    kernel = lowlp.compile_linear(n=N, k=K, weight="int4", group_size=8, schedule=Schedule())
    with pytest.raises(LowlpValueError, match=r"qw: of permutations of K it has one, .*permutation=True"):
        kernel(x, qw)
    with pytest.raises(LowlpTypeError, match="permutation: expected a bool"):
        lowlp.compile_linear(n=N, k=K, weight="int4", group_size=8, permutation=1)  # type: ignore[arg-type]


def test_a_kernel_holds_one_before_it_and_no_more(saved: Path) -> None:
    kernel = KernelBinary.load(saved)
    assert kernel.before is not None and KernelBinary.from_bytes(kernel.to_bytes()) == kernel
    alone = KernelBinary(kernel.description, kernel.ptx, kernel.cubins, kernel.ir)
    assert "launched after" in "\n".join(inspect._summary("k.lowlp", b"", kernel))
    assert alone != kernel and alone.content_hash != kernel.content_hash
    with pytest.raises(LowlpValueError, match="before: expected a kernel with none before it"):
        KernelBinary(alone.description, alone.ptx, before=kernel)
    with pytest.raises(LowlpTypeError, match="before: expected None or a KernelBinary, got int"):
        KernelBinary(alone.description, alone.ptx, before=3)  # type: ignore[arg-type]
    object.__setattr__(kernel.before, "before", alone)
    with pytest.raises(KernelFileError, match=r"before.lowlp: entry 'before.lowlp' is of no known kind"):
        KernelBinary.from_bytes(kernel.to_bytes())
