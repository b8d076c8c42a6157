"""What `lowlp.linear` promises, for random codecs, shapes, strides and parts, on the CPU target."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from codec_samples import EXTRAS, SCALES
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_matrix import CODES, ERROR_LIMITS, TYPES, Config, is_offered, relative_error

import lowlp

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")

VIEWS = ["plain", "turned", "backwards", "gaps", "repeated"]


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


@st.composite
def configs(draw: st.DrawFn) -> Config:
    code, activation = draw(st.sampled_from(CODES)), draw(st.sampled_from(["f16", "bf16"]))
    allowed = [extra for extra in EXTRAS if is_offered(code, activation, extra if "zeros" in extra else "")]
    group = draw(st.one_of(st.none(), st.integers(1, 70)))
    extra = draw(st.sampled_from(allowed)) if allowed else ""
    return Config(code, group, activation if allowed else "bf16", extra, draw(st.sampled_from(list(SCALES))))


@given(
    config=configs(),
    m=st.integers(0, 40),
    n=st.integers(1, 70),
    groups=st.integers(1, 5),
    bias=st.sampled_from([None, *TYPES]),
    out=st.sampled_from([None, *TYPES]),
    view=st.sampled_from(VIEWS),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=18, deadline=None)
def test_rows_are_right_and_apart(
    config: Config, m: int, n: int, groups: int, bias: str | None, out: str | None, view: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    if " " not in config.code and lowlp.dtype(config.code).max > 256:
        out = "f32"  # f16 may not hold the sums
    k = (config.group or int(rng.integers(1, 150))) * (groups if config.group else 1)
    qw = config.weights(n, k, seed)
    x = activations(rng, m, k, view, TYPES[config.activation])
    b = None if bias is None else rng.normal(size=2 * n).astype(TYPES[bias])[::2]
    kept = x.copy()
    # Without being asked for, rows are apart among up to 16.
    options: dict[str, Any] = {"bias": b, "out_dtype": out, "batch_invariant": m > 16}
    y = lowlp.linear(x, qw, **options)
    assert (y.shape, y.dtype) == ((m, n), TYPES[out or config.activation])
    assert x.tobytes() == kept.tobytes()
    assert lowlp.linear(x, qw, **options).tobytes() == y.tobytes()
    limit = ERROR_LIMITS["bf16" if "bf16" in (config.activation, out) else "f16"]
    assert relative_error(y, x, qw, 0 if b is None else b.astype(np.float64)) <= limit
    if m:
        row = int(rng.integers(m))
        assert lowlp.linear(x[row], qw, **options).tobytes() == y[row].tobytes()
        spoilt = np.array(x)
        spoilt[row, rng.integers(k)] = rng.choice([np.nan, np.inf, -np.inf])
        z = lowlp.linear(spoilt, qw, **options)
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
