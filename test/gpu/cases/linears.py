"""`linear` for every type of weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import BF16, Case
from lowlp import dtypes, packing_0
from lowlp.kernels.linear import LinearSpec, linear_kernel


def random_weights(name: str, n: int, k: int, group: int, **parts: object) -> lowlp.QuantizedTensor:
    """Random finite codes with random f16 scales."""
    rng = np.random.default_rng(abs(hash((name, n, k))) % 2**32)
    dtype = dtypes.dtype(name)
    finite = np.flatnonzero(np.isfinite(dtype.decode(np.arange(1 << dtype.bits, dtype=np.uint8))))
    codes = rng.choice(finite, (n, k)).astype(np.uint8)
    largest = max(1.0, float(dtype.max))
    scales = (rng.uniform(0.5, 2.0, (n, k // group)) / min(largest, 64.0)).astype(np.float32)
    return lowlp.QuantizedTensor(codes, dtype=name, scales=scales, group_size=group, **parts)


def linear_case(
    name: str, qw: lowlp.QuantizedTensor, x: np.ndarray, arch: str, tolerance: float, out: str = "f16"
) -> Case:
    """`linear` of x [M, K]; x is compared as it is, so a row stride above K is kept."""
    n, k = qw.shape
    activation = "bf16" if x.dtype == BF16 else "f16"
    scale = {np.dtype(np.float16): "f16", np.dtype(np.float32): "f32", BF16: "bf16"}[qw.scales.dtype]
    aligned = k % 8 == 0
    spec = LinearSpec(
        n, k, qw.dtype.name, qw.group_size, activation, out, scale,
        zeros=qw.zeros is not None, offsets=qw.offsets is not None, aligned=aligned,
    )  # fmt: skip
    kernel = lowlp.compile(linear_kernel(spec), arch)
    corrector = qw.zeros if qw.zeros is not None else qw.offsets
    out_type = {"f16": np.dtype(np.float16), "bf16": BF16, "f32": np.dtype(np.float32)}[out]
    arguments: dict[str, Any] = {
        "x": x,
        "weights": packing_0.pack(qw.codes, qw.group_size, qw.bits),
        "scales": np.ascontiguousarray(qw.scales),
        **({} if corrector is None else {"correctors": np.ascontiguousarray(corrector, np.float32)}),
        "y": np.zeros((x.shape[0], n), out_type),
        "m": x.shape[0],
        "x_stride": k,
    }
    if tolerance == 0.0:
        wanted = qw.dequantize().T.astype(out_type).astype(np.float32)
    else:
        wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
    facts = {"dtype": qw.dtype.name, "shape": [x.shape[0], n, k], "group": qw.group_size}
    return Case(name, kernel, arguments, "y", wanted, tolerance, facts)


def cases(arch: str) -> Iterator[Case]:
    """Every type with x random, and with x = I, where the result must be the dequantised weights to the bit."""
    shapes = [(5, 19, 96, 32), (17, 9, 257, 257), (1, 8, 40, 8), (33, 130, 512, 128)]
    names = [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 9)]
    names += [f"f{1 + x + y}e{x}m{y}" for bits in range(3, 9) for x in range(1, 8) if (y := bits - 1 - x) >= 0]
    for index, name in enumerate(names):
        wide = dtypes.dtype(name).is_float and dtypes.dtype(name).exponent_bits > 5
        activation = BF16 if wide else np.dtype(np.float16)
        m, n, k, group = shapes[index % len(shapes)]
        x = np.random.default_rng(index).standard_normal((m, k)).astype(activation)
        out, bound = ("bf16", 1.1e-2) if wide else ("f16", 2e-3)
        yield linear_case(f"linear_{name}", random_weights(name, n, k, group), x, arch, bound, out)
        identity = np.eye(72, dtype=activation)
        yield linear_case(f"identity_{name}", random_weights(name, 11, 72, 24), identity, arch, 0.0, "f32")
    rng = np.random.default_rng(99)
    zeros = rng.integers(0, 16, (19, 3)).astype(np.uint8)
    offsets = rng.standard_normal((19, 3)).astype(np.float16)
    x = rng.standard_normal((5, 96)).astype(np.float16)
    yield linear_case("linear_zeros", random_weights("uint4", 19, 96, 32, zeros=zeros), x, arch, 2e-3)
    yield linear_case("linear_offsets", random_weights("uint4", 19, 96, 32, offsets=offsets), x, arch, 2e-3)
