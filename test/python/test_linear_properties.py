"""What `lowlp.linear` promises, for random types, shapes, strides and parts, on the CPU target."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lowlp
from lowlp.dtypes import all_dtypes

TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
ERROR_LIMITS = {"f16": 2e-3, "bf16": 1.1e-2}
WEIGHTS = [t for t in all_dtypes() if t.bits <= 8 and not t.name.startswith("bipolar")]
PARTS = ["", "integer zeros", "float zeros", "offsets"]
VIEWS = ["plain", "turned", "backwards", "gaps", "repeated"]


def weights(rng: np.random.Generator, t: lowlp.dtypes.DType, n: int, k: int, group: int, scale: str, part: str) -> Any:
    codes = np.arange(1 << t.bits, dtype=np.uint8)
    codes = codes[np.isfinite(t.decode(codes))]
    shape = (n, k // group)
    more: dict[str, Any] = {}
    if part == "offsets":
        more["offsets"] = rng.normal(size=shape).astype(np.float16)
    elif part and t.is_integer:
        zeros = rng.uniform(-3, 2**t.bits, shape)
        more["zeros"] = zeros.astype(np.float16 if part == "float zeros" else np.int16)
    scales = (rng.uniform(-2, 2, shape) / max(1.0, t.max)).astype(TYPES[scale])
    chosen = rng.choice(codes, (n, k)).astype(np.uint8)
    return lowlp.QuantizedTensor(chosen, dtype=t, scales=scales, group_size=group, **more)


def activations(rng: np.random.Generator, m: int, k: int, view: str, kind: Any) -> Any:
    def draw(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32).astype(kind)

    if view == "turned":
        return draw(k, m).T
    if view == "backwards":
        return draw(m, k)[::-1, ::-1]
    if view == "gaps":
        return draw(2 * m, k + 3)[::2, 3:]
    return np.broadcast_to(draw(1, k), (m, k)) if view == "repeated" else draw(m, k)


def activation_for(t: lowlp.dtypes.DType, wanted: str) -> str:
    return "bf16" if t.exponent_bits > 5 else wanted


@given(
    t=st.sampled_from(WEIGHTS),
    n=st.integers(1, 20),
    group=st.integers(1, 40),
    groups=st.integers(1, 4),
    scale=st.sampled_from(list(TYPES)),
    part=st.sampled_from(PARTS),
    wanted=st.sampled_from(["f16", "bf16"]),
    out=st.sampled_from([None, "f16", "bf16", "f32"]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=30, deadline=None)
def test_the_identity_gives_dequantize(
    t: Any, n: int, group: int, groups: int, scale: str, part: str, wanted: str, out: str | None, seed: int
) -> None:
    qw = weights(np.random.default_rng(seed), t, n, group * groups, group, scale, part)
    activation = activation_for(t, wanted)
    y = lowlp.linear(np.eye(group * groups, dtype=TYPES[activation]), qw, out_dtype=out)
    np.testing.assert_array_equal(y.T, qw.dequantize().astype(TYPES[out or activation]))


@given(
    t=st.sampled_from(WEIGHTS),
    m=st.integers(0, 40),
    n=st.integers(1, 20),
    group=st.integers(1, 70),
    groups=st.integers(1, 3),
    part=st.sampled_from(PARTS),
    wanted=st.sampled_from(["f16", "bf16"]),
    bias=st.sampled_from([None, *TYPES]),
    view=st.sampled_from(VIEWS),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=30, deadline=None)
def test_rows_are_right_and_apart(
    t: Any, m: int, n: int, group: int, groups: int, part: str, wanted: str, bias: str | None, view: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    qw = weights(rng, t, n, group * groups, group, "f32", part)
    activation = activation_for(t, wanted)
    x = activations(rng, m, group * groups, view, TYPES[activation])
    b = None if bias is None else rng.normal(size=2 * n).astype(TYPES[bias])[::2]
    y = lowlp.linear(x, qw, bias=b)
    assert (y.shape, y.dtype) == ((m, n), TYPES[activation])
    assert lowlp.linear(x, qw, bias=b).tobytes() == y.tobytes()
    w, wide = qw.dequantize().astype(np.float64), x.astype(np.float64)
    exact = wide @ w.T + (0 if b is None else b.astype(np.float64))
    # Where sums cancel, the error is relative to what was summed.
    norm = max(float(np.linalg.norm(exact)), float(np.linalg.norm(np.abs(wide) @ np.abs(w).T)) / 50)
    assert np.linalg.norm(y.astype(np.float64) - exact) <= ERROR_LIMITS[activation] * norm
    if m:
        row = int(rng.integers(m))
        assert lowlp.linear(x[row], qw, bias=b).tobytes() == y[row].tobytes()
        spoilt = np.array(x)
        spoilt[row, rng.integers(x.shape[1])] = rng.choice([np.nan, np.inf, -np.inf])
        z = lowlp.linear(spoilt, qw, bias=b)
        assert not np.isfinite(z[row]).any()
        assert np.delete(z, row, 0).tobytes() == np.delete(y, row, 0).tobytes()


def test_threads_share_weights_and_kernels() -> None:
    qw = lowlp.quantize(np.random.default_rng(0).normal(size=(17, 64)).astype(np.float32), "int5", 32)
    x = np.random.default_rng(1).normal(size=(9, 64)).astype(np.float16)
    start, results = threading.Barrier(8), []

    def run() -> None:
        start.wait()
        results.append(lowlp.linear(x, qw).tobytes())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert len(set(results)) == 1
