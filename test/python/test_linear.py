"""`lowlp.linear` on the CPU target: every type, odd shapes, exactness (with x = I), and what it refuses."""

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp import dtypes
from lowlp.errors import LowlpTypeError, LowlpValueError

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 9)]
FLOATS = [f"f{1 + x + y}e{x}m{y}" for bits in range(3, 9) for x in range(1, 8) if (y := bits - 1 - x) >= 0]
FOR_F16 = INTEGERS + [name for name in FLOATS if dtypes.dtype(name).exponent_bits <= 5]
ONLY_BF16 = [name for name in FLOATS if dtypes.dtype(name).exponent_bits > 5]

# (M, N, K, group): odd everywhere, groups that no tile divides, one group a row.
SHAPES = [(5, 19, 96, 32), (17, 9, 257, 257), (1, 8, 40, 8), (33, 3, 66, 33)]


def random_weights(name: str, n: int, k: int, group: int, seed: int, **parts: object) -> lowlp.QuantizedTensor:
    """Random codes, all finite, with random scales."""
    rng = np.random.default_rng(seed)
    dtype = dtypes.dtype(name)
    finite = np.flatnonzero(np.isfinite(dtype.decode(np.arange(1 << dtype.bits, dtype=np.uint8))))
    codes = rng.choice(finite, (n, k)).astype(np.uint8)
    scales = rng.uniform(0.5, 2.0, (n, k // group)) * 2.0 ** -max(0, np.log2(float(dtype.max) or 1.0))
    return lowlp.QuantizedTensor(codes, dtype=name, scales=scales.astype(np.float32), group_size=group, **parts)


def relative_error(y: np.ndarray, x: np.ndarray, qw: lowlp.QuantizedTensor) -> float:
    """Frobenius error of y against float64."""
    wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
    return float(np.linalg.norm(y.astype(np.float64) - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("name", FOR_F16)
def test_every_type_in_f16(name: str) -> None:
    shape = SHAPES[FOR_F16.index(name) % len(SHAPES)]
    m, n, k, group = shape
    qw = random_weights(name, n, k, group, seed=1)
    x = np.random.default_rng(2).standard_normal((m, k)).astype(np.float16)
    y = lowlp.linear(x, qw)
    assert y.shape == (m, n) and y.dtype == np.float16
    assert relative_error(y, x, qw) <= 2e-3


@pytest.mark.parametrize("name", FOR_F16)
def test_identity_gives_the_dequantised_weights(name: str) -> None:
    n, k, group = 11, 72, 24
    qw = random_weights(name, n, k, group, seed=3)
    y = lowlp.linear(np.eye(k, dtype=np.float16), qw)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, qw.dequantize().T.astype(np.float16))
    exact = lowlp.linear(np.eye(k, dtype=np.float16), qw, out_dtype="f32")
    np.testing.assert_array_equal(exact, qw.dequantize().T)


@pytest.mark.parametrize("name", ["int3", "uint8", "f6e3m2", *ONLY_BF16])
def test_bf16(name: str) -> None:
    m, n, k, group = 3, 10, 64, 32
    qw = random_weights(name, n, k, group, seed=4)
    x = np.random.default_rng(5).standard_normal((m, k)).astype(ml_dtypes.bfloat16)
    y = lowlp.linear(x, qw)
    assert y.dtype == ml_dtypes.bfloat16
    assert relative_error(y, x, qw) <= 1.1e-2
    identity = lowlp.linear(np.eye(k, dtype=ml_dtypes.bfloat16), qw)
    np.testing.assert_array_equal(identity, qw.dequantize().T.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["zeros", "float zeros", "offsets"])
def test_zero_points_and_offsets(shape: tuple[int, int, int, int], kind: str) -> None:
    m, n, k, group = shape
    rng = np.random.default_rng(6)
    per_group = (n, k // group)
    parts = {
        "zeros": {"zeros": rng.integers(0, 16, per_group).astype(np.uint8)},
        "float zeros": {"zeros": rng.uniform(0, 15, per_group).astype(np.float16)},
        "offsets": {"offsets": rng.standard_normal(per_group).astype(np.float16)},
    }[kind]
    qw = random_weights("uint4", n, k, group, seed=7, **parts)
    x = rng.standard_normal((m, k)).astype(np.float16)
    assert relative_error(lowlp.linear(x, qw), x, qw) <= 2e-3
    identity = lowlp.linear(np.eye(k, dtype=np.float16), qw, out_dtype="f32")
    np.testing.assert_array_equal(identity, qw.dequantize().T)


@pytest.mark.parametrize("scale", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_scale_types(scale: type) -> None:
    qw = random_weights("int5", 16, 64, 16, seed=8)
    qw = lowlp.QuantizedTensor(qw.codes, dtype="int5", scales=qw.scales.astype(scale), group_size=16)
    y = lowlp.linear(np.eye(64, dtype=np.float16), qw, out_dtype="f32")
    np.testing.assert_array_equal(y, qw.dequantize().T)


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
        np.testing.assert_array_equal(lowlp.linear(x[rows], qw), whole[rows])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_a_number_stays_in_its_row(bad: float) -> None:
    qw = random_weights("uint4", 16, 66, 33, seed=13, zeros=np.full((16, 2), 7, np.uint8))
    x = np.random.default_rng(14).standard_normal((18, 66)).astype(np.float16)
    clean = lowlp.linear(x, qw)
    x[5, 40] = bad
    y = lowlp.linear(x, qw)
    assert not np.isfinite(y[5]).any()
    np.testing.assert_array_equal(np.delete(y, 5, 0), np.delete(clean, 5, 0))


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


def test_a_type_without_a_kernel_is_named_as_the_weights_type() -> None:
    qw = random_weights("bipolar2", 8, 32, 32, seed=3)
    with pytest.raises(LowlpValueError, match="qw: must be an integer or a float of 1 to 8 bits, got bipolar2"):
        lowlp.linear(np.ones((1, 32), np.float16), qw)


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
