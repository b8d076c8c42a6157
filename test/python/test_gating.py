"""Gate and up of many rows apart: the launch that ends their product, and when that is taken."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.gating import gating_kernel, takes_less_apart
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.ops import linear_launch
from lowlp.schedules.device import H200

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))
from fake_driver import FakeDriver, fake_driver
from fake_torch import FakeDevice, FakeTensor, FakeTorch, fake_torch

__all__ = ["fake_driver", "fake_torch"]


@pytest.mark.parametrize(("columns", "epilogue", "out"), [(2056, "silu_mul", "bf16"), (33, "gpt_oss", "f16")])
def test_gates_of_rows(columns: int, epilogue: str, out: str) -> None:
    """Also of rows that end within a part, and within four neighbours."""
    x = np.random.default_rng(columns).normal(0, 3, (3, 2, columns)).astype(np.float32)
    y = np.full((3, columns), np.nan, ml_dtypes.bfloat16 if out == "bf16" else np.float16)
    compile_cpu(gating_kernel(columns, epilogue, out, True))(x=x, y=y, m=3)
    gate, up = x[:, 0].astype(np.float64), x[:, 1].astype(np.float64)
    if epilogue == "gpt_oss":
        gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
        wanted = (up + 1) * gate / (1 + np.exp(-1.702 * gate))
    else:
        wanted = gate / (1 + np.exp(-gate)) * up
    np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=2**-8 if out == "bf16" else 2**-10, atol=1e-6)


def test_what_is_multiplied_apart() -> None:
    """Units of many rows, and lookups, leave few columns to tiles of gate and up; few rows are not worth a launch."""

    def is_apart(codec: str, n: int, m: int) -> bool:
        spec = LinearSpec(n, 4096, Codec.parse(codec), "bf16", "bf16", aligned=True, epilogue="silu_mul")
        apart = replace(spec, epilogue="", out="f32")
        return takes_less_apart(spec, schedule_for(spec, m), apart, schedule_for(apart, m), m, H200)

    assert is_apart("int2 g128 f16", 28672, 2048) and is_apart("int2 g128 f16", 16384, 1024)
    assert not is_apart("int2 g128 f16", 28672, 128)
    # Its products in f32 would take more than a GiB.
    assert not is_apart("int2 g128 f16", 57344, 8192)


def test_calls_launch_both(fake_torch: FakeTorch, fake_driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product of gate and up, and what makes y of it; a batch-invariant call has one launch."""
    fake_driver.contexts, fake_driver.slots = [100], 3
    monkeypatch.setattr(linear_launch, "_is_faster_apart", lambda *given: True)
    codes = np.zeros((64, 128), np.uint8)
    qw = lowlp.QuantizedTensor(codes, dtype="uint4", scales=np.ones((64, 16), np.float16), group_size=8)
    for _ in range(2):
        x = FakeTensor((2, 150, 128), fake_torch.float16, FakeDevice(0))  # type: ignore[attr-defined]
        y = lowlp.linear(x, qw, epilogue="silu_mul")
        assert (y.shape, y.dtype) == ((2, 150, 32), fake_torch.float16)  # type: ignore[attr-defined]
        product, gating = (launch["values"] for launch in fake_driver.launches[-2:])
        assert product[0] == x.data_ptr() and gating[1:] == (y.data_ptr(), 300)
        assert gating[0] not in (x.data_ptr(), y.data_ptr())
    lowlp.linear(x, qw, epilogue="silu_mul", batch_invariant=True)
    assert len(fake_driver.launches) == 5
