"""`linear` for the codecs that `quantize` makes: published formats, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import BF16, Case
from cases.linears import linear_case

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
    "hqq": {"dtype": "uint3", "group_size": 32, "zero_point": "float"},
    "mlx": {"dtype": "uint4", "group_size": 32, "zero_point": "offset"},
    "nf4": {"lut": lowlp.nf(4), "group_size": 32},
}


def cases(arch: str) -> Iterator[Case]:
    """Each with x random, and with x = I, where the result must be the dequantised weights to the bit."""
    for index, (name, arguments) in enumerate(CODECS.items()):
        rng = np.random.default_rng(index)
        qw = lowlp.quantize(rng.normal(0, 0.02, (19, 96)).astype(np.float32), **arguments)
        x = rng.standard_normal((5, 96)).astype(np.float16 if index % 2 else BF16)
        yield linear_case(f"linear_{name}", qw, x, arch, 2e-3 if qw.lut is None else 1.1e-2)
        if "f16" in qw.codec.exact_in:
            yield linear_case(f"identity_{name}", qw, np.eye(96, dtype=np.float16), arch, 0.0)
