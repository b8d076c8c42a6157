"""`lowlp.linear` on the CPU target: strides, batches, bias, types of results, and what it refuses."""

import numpy as np
import pytest
from linear_matrix import FLOATS, Config

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric import dtypes

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")

ONLY_BF16 = [name for name in FLOATS if dtypes.dtype(name).exponent_bits > 5]


def random_weights(name: str, n: int, k: int, group: int, seed: int = 0) -> lowlp.QuantizedTensor:
    """Random codes, all finite, with random scales."""
    return Config(name, group, scale="f32").weights(n, k, seed)


def test_bias_batch_dimensions_and_strides() -> None:
    qw = random_weights("int6", 24, 128, 64, seed=9)
    rng = np.random.default_rng(10)
    x = rng.standard_normal((2, 3, 128)).astype(np.float16)
    bias = rng.standard_normal(24).astype(np.float32)
    y = lowlp.linear(x, qw, bias=bias, out_dtype="f32")
    wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T + bias
    assert y.shape == (2, 3, 24)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
    wide = rng.standard_normal((7, 300)).astype(np.float16)
    for view in (wide[:, 3:131], wide[::2, 8:136], wide[::-1, :128], np.asfortranarray(wide[:, :128])):
        np.testing.assert_array_equal(lowlp.linear(view, qw), lowlp.linear(np.ascontiguousarray(view), qw))
    np.testing.assert_array_equal(lowlp.linear(x[0, 0], qw), lowlp.linear(x, qw)[0, 0])


def test_no_rows() -> None:
    qw = random_weights("int6", 24, 128, 64, seed=9)
    assert lowlp.linear(np.empty((0, 128), np.float16), qw).shape == (0, 24)


def test_a_row_depends_on_no_other() -> None:
    qw = random_weights("int4", 16, 64, 32, seed=11)
    x = np.random.default_rng(12).standard_normal((40, 64)).astype(np.float16)
    whole = lowlp.linear(x, qw, batch_invariant=True)
    for rows in (slice(0, 1), slice(3, 20), slice(39, 40)):
        np.testing.assert_array_equal(lowlp.linear(x[rows], qw, batch_invariant=True), whole[rows])


def test_one_weight() -> None:
    qw = lowlp.QuantizedTensor(np.array([[3]], np.uint8), dtype="int3", scales=np.array([[0.5]], np.float16))
    np.testing.assert_array_equal(lowlp.linear(np.array([[2.0]], np.float16), qw), [[3.0]])


def test_the_same_inputs_give_the_same_bits() -> None:
    qw = random_weights("f8e4m3", 30, 96, 96, seed=15)
    x = np.random.default_rng(16).standard_normal((20, 96)).astype(np.float16)
    first = lowlp.linear(x, qw, out_dtype="f32")
    for _ in range(3):
        np.testing.assert_array_equal(lowlp.linear(x, qw, out_dtype="f32"), first)


def test_bad_arguments() -> None:
    qw = random_weights("int6", 24, 128, 64, seed=9)
    x = np.zeros((2, 128), np.float16)
    with pytest.raises(LowlpTypeError, match="x: expected float16 or bfloat16, got float32"):
        lowlp.linear(x.astype(np.float32), qw)
    with pytest.raises(LowlpValueError, match=r"x: the last dimension must be K = 128, got shape \(2, 64\)"):
        lowlp.linear(x[:, :64], qw)
    with pytest.raises(LowlpTypeError, match="qw: expected a QuantizedTensor, got ndarray"):
        lowlp.linear(x, x)  # type: ignore[arg-type]
    with pytest.raises(LowlpValueError, match=r"bias: must have shape \(24,\), got \(23,\)"):
        lowlp.linear(x, qw, bias=np.zeros(23, np.float16))
    with pytest.raises(LowlpValueError, match="out_dtype: must be one of f16, bf16, f32, got 'int8'"):
        lowlp.linear(x, qw, out_dtype="int8")
    with pytest.raises(LowlpTypeError, match="x: expected a numpy array or a tensor"):
        lowlp.linear([1.0], qw)


@pytest.mark.parametrize("name", ONLY_BF16)
def test_wide_exponents_need_bf16(name: str) -> None:
    qw = random_weights(name, 8, 32, 32, seed=17)
    with pytest.raises(LowlpValueError, match="bf16"):
        lowlp.linear(np.zeros((1, 32), np.float16), qw)


def test_out_dtype_may_be_an_object_and_batch_invariant_a_bool_of_numpy() -> None:
    qw = random_weights("int4", 8, 32, 32, seed=3)
    x = np.ones((1, 32), np.float16)
    expected = lowlp.linear(x, qw, out_dtype="f32")
    for out_dtype in (lowlp.f32, "float32"):
        y = lowlp.linear(x, qw, out_dtype=out_dtype, batch_invariant=np.True_)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("activation", ["float16", "bfloat16"])
@pytest.mark.parametrize("out_dtype", [None, "f32"])
def test_tensors_on_the_cpu(activation: str, out_dtype: str | None) -> None:
    torch = pytest.importorskip("torch")
    qw = random_weights("int4", 8, 32, 32, seed=3)
    x = torch.randn(2, 3, 32).to(getattr(torch, activation))
    bias = torch.randn(8)
    y = lowlp.linear(x, qw, bias=bias, out_dtype=out_dtype)
    assert (y.dtype, y.shape) == (torch.float32 if out_dtype else x.dtype, (2, 3, 8))
    wanted = x.double() @ torch.from_numpy(qw.dequantize()).double().T + bias.double()
    assert torch.linalg.norm(y.double() - wanted) <= 1.1e-2 * torch.linalg.norm(wanted)
