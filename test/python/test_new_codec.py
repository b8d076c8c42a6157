"""A codec that lowlp does not know, added as data: signed powers of two in 4 bits, in one file of a test.

Code c stands for 2^-(c mod 8), negative from 8 on.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import lowlp
from lowlp.benchmarks import cases, preparing
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.errors import LowlpValueError
from lowlp.numeric.array_ops import NumpyOps
from lowlp.numeric.codec import Codec, Table
from lowlp.ops.linear import compile_linear

POWERS = Codec(Table(4, "f16", "tensor", [sign * 2.0**-i for sign in (1, -1) for i in range(8)]), 64)
WEIGHTS = np.random.default_rng(0).normal(size=(48, 256)).astype(np.float32)


def test_quantize_takes_it() -> None:
    qw = lowlp.quantize(WEIGHTS, POWERS)
    assert qw.codec == POWERS == pickle.loads(pickle.dumps(qw)).codec
    scaled = qw.dequantize() / np.repeat(qw.scales.astype(np.float32), 64, 1)
    assert set(np.unique(np.abs(scaled))) <= {2.0**-i for i in range(8)}
    # A number that lies between two powers loses at most a third.
    large = np.abs(WEIGHTS) > 2.0**-7 * np.repeat(qw.scales.astype(np.float32), 64, 1)
    assert (np.abs(qw.dequantize() - WEIGHTS)[large] <= 0.34 * np.abs(WEIGHTS)[large]).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_linear_is_exact(kind: type) -> None:
    qw = lowlp.quantize(WEIGHTS, POWERS)
    y = lowlp.linear(np.eye(256, dtype=np.float16), qw, out_dtype="f16" if kind is np.float16 else "f32")
    np.testing.assert_array_equal(y.T, qw.dequantize().astype(kind))


def test_a_kernel_is_compiled_and_saved(tmp_path: Path) -> None:
    kernel = compile_linear(n=512, k=512, m=(1, 16), weight="lut4", group_size=64)
    kernel.save(tmp_path / "powers.lowlp")
    again = lowlp.load(tmp_path / "powers.lowlp")
    assert again.cubin == kernel.cubin
    assert again.description.notes["linear"]["weight"] == "lut4"
    assert "#lowlp.codec<lut4:f32:tensor g64 f16>" in kernel.ir("block")


def test_the_bench_takes_it(tmp_path: Path) -> None:
    kind = cases.WeightKind("powers", "uint4", 4, values=tuple(POWERS.values().tolist()))
    shape = cases.Shape(256, 512)
    list(preparing.prepare(tmp_path, "sm_90a", [kind], [shape], [1], jobs=1))
    saved = PreparedKernels.load_index(tmp_path).weights["powers"]
    assert saved.values == tuple(POWERS.values())
    with np.load(tmp_path / "powers.npz") as sample:
        saved.check_sample(NumpyOps(), dict(sample))


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        (Codec.parse("lut4:f16:group g64 f16"), "has a table for each group"),
        (Codec.parse("int4 g64 f16 zeros:int16"), "dtype: quantize makes int4 g64 f16 zeros:int8 of such weights, not"),
    ],
)
def test_codecs_that_quantize_does_not_make(codec: Codec, message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        lowlp.quantize(WEIGHTS, codec)


def test_a_codec_says_the_rest() -> None:
    with pytest.raises(LowlpValueError, match="dtype: a Codec says group_size, zero_point, scale_dtype and lut"):
        lowlp.quantize(WEIGHTS, POWERS, group_size=32)
