"""`linear` with scales of e8m0 and e4m3, a second scale, and one scale for all weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import BF16, Case
from lowlp.kernels.linear import linear_kernel
from lowlp.linear_op import _packed_on_host, _spec_for

# What `lowlp.quantize` takes for each: MXFP4, MXFP6 and MXFP8, NVFP4, and a scale for the whole tensor.
CODECS: dict[str, dict[str, Any]] = {
    "mxfp4": {"dtype": "f4e2m1", "group_size": 32, "scale_dtype": "e8m0"},
    "mxfp6_e2m3": {"dtype": "f6e2m3", "group_size": 32, "scale_dtype": "e8m0"},
    "mxfp6_e3m2": {"dtype": "f6e3m2", "group_size": 32, "scale_dtype": "e8m0"},
    "mxfp8_e4m3": {"dtype": "f8e4m3", "group_size": 32, "scale_dtype": "e8m0"},
    "mxfp8_e5m2": {"dtype": "f8e5m2", "group_size": 32, "scale_dtype": "e8m0"},
    "mxint8": {"dtype": "int8", "group_size": 32, "scale_dtype": "e8m0"},
    "nvfp4": {"dtype": "f4e2m1", "group_size": 16, "scale_dtype": "e4m3"},
    "uint3_e4m3": {"dtype": "uint3", "group_size": 32, "scale_dtype": "e4m3", "zero_point": True},
    "int4_tensor": {"dtype": "int4", "group_size": "tensor"},
}


def codec_case(name: str, qw: lowlp.QuantizedTensor, x: np.ndarray, arch: str, tolerance: float) -> Case:
    """`linear` of x [M, K] with an f32 result; with a tolerance of 0, x is the identity."""
    n, k = qw.shape
    spec = _spec_for(qw, "bf16" if x.dtype == BF16 else "f16", "f32", "", k % 8 == 0)
    weights, scales, *correctors = _packed_on_host(qw)
    arguments: dict[str, Any] = {
        "x": x,
        "weights": weights,
        "scales": scales,
        **({"correctors": correctors[0]} if correctors else {}),
        **({} if qw.scale2 is None else {"scale2": float(qw.scale2)}),
        "y": np.zeros((x.shape[0], n), np.float32),
        "m": x.shape[0],
        "x_stride": k,
    }
    wanted = qw.dequantize().T if tolerance == 0.0 else x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
    kernel = lowlp.compile(linear_kernel(spec), arch)
    return Case(name, kernel, arguments, "y", wanted, tolerance, {"codec": str(qw.codec), "shape": [x.shape[0], n, k]})


def cases(arch: str) -> Iterator[Case]:
    """Each with x random, and with x = I, where the result must be the dequantised weights to the bit."""
    for index, (name, arguments) in enumerate(CODECS.items()):
        rng = np.random.default_rng(index)
        qw = lowlp.quantize(rng.normal(0, 0.02, (19, 96)).astype(np.float32), **arguments)
        x = rng.standard_normal((5, 96)).astype(np.float16 if index % 2 else BF16)
        yield codec_case(f"linear_{name}", qw, x, arch, 2e-3)
        yield codec_case(f"identity_{name}", qw, np.eye(96, dtype=np.float16), arch, 0.0)
