"""quantize in PyTorch gives the bits that numpy gives; here on the CPU, in test/gpu on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.array_ops import TorchOps
from lowlp.numeric.dtypes import all_dtypes
from lowlp.weights.quantize.quantization import quantize, quantize_with

torch = pytest.importorskip("torch")

TABLES = np.random.default_rng(1).normal(size=(9, 4, 16)).astype(np.float16)
CASES: list[dict[str, Any]] = [
    # The mean of magnitudes, which bipolar1 has as scale, is a sum in the order of the library.
    *({"dtype": t.name} for t in all_dtypes() if t.bits <= 8 and t.name != "bipolar1"),
    *({"dtype": f"{sign}int{bits}", "zero_point": True} for sign in ("", "u") for bits in range(1, 9)),
    {"dtype": "uint3", "zero_point": "float"},
    {"dtype": "int5", "zero_point": "float", "scale_dtype": "bf16"},
    {"dtype": "uint4", "zero_point": "offset"},
    {"dtype": "f4e2m1", "scale_dtype": "e4m3", "group_size": 16},
    {"dtype": "f4e2m1", "scale_dtype": "e8m0"},
    {"dtype": "int8", "scale_dtype": "e8m0"},
    {"dtype": "int4", "group_size": "tensor"},
    {"dtype": "int4", "group_size": None},
    *({"lut": lowlp.nf(bits)} for bits in range(2, 9)),
    {"lut": TABLES},
    {"lut": TABLES[:, 0]},
    {"lut": TABLES[:, 0], "group_size": "tensor"},
]


class SmallBlocks(TorchOps):
    """PyTorch, a few rows at a time."""

    block_elements = 512


def in_torch(w: Any, search: Any = False, **case: Any) -> lowlp.QuantizedTensor:
    arguments = {"dtype": None, "group_size": 32, "zero_point": False, "scale_dtype": "f16", "lut": None, **case}
    return quantize_with(SmallBlocks("cpu"), w, progress=False, search=search, **arguments)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(v)[:12] for v in case.values()))
def test_same_bits_as_numpy(case: dict[str, Any], kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    w = (torch.randn(9, 128, generator=generator, dtype=torch.float64) * 0.05).to(getattr(torch, kind))
    w[0, :40] = 0
    found, expected = in_torch(w, **case), quantize(w, **{"group_size": 32, **case})
    assert found.codec == expected.codec
    for name in ("codes", "scales", "zeros", "offsets", "scale2"):
        a, b = getattr(found, name), getattr(expected, name)
        assert (a is None) == (b is None)
        assert a is None or a.tobytes() == b.tobytes(), name


@pytest.mark.parametrize("case", [{"dtype": "int3"}, {"lut": lowlp.nf(3)}, {"dtype": "uint2", "zero_point": "offset"}])
def test_search_finds_as_good_scales(case: dict[str, Any]) -> None:
    w = torch.randn(9, 128, generator=torch.Generator().manual_seed(0))
    found, expected = in_torch(w, search=True, **case), quantize(w, group_size=32, search=True, **case)
    errors = [np.linalg.norm(q.dequantize() - w.numpy()) for q in (found, expected)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-5)


def test_bipolar1_agrees_to_noise() -> None:
    w = torch.randn(9, 128, generator=torch.Generator().manual_seed(0))
    found, expected = in_torch(w, dtype="bipolar1", scale_dtype="f32"), quantize(w, "bipolar1", 32, scale_dtype="f32")
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_allclose(found.scales, expected.scales, rtol=1e-6)


def test_refusals() -> None:
    w = torch.zeros(2, 64)
    w[1, 3] = torch.inf
    with pytest.raises(LowlpValueError, match=r"w: must be finite in float32, got inf at \[1, 3\]"):
        in_torch(w)
    with pytest.raises(LowlpTypeError, match=r"w: expected float16, bfloat16, float32 or float64, got torch\.int32"):
        in_torch(torch.zeros(2, 64, dtype=torch.int32))
    with pytest.raises(LowlpValueError, match="w: expected a tensor on the CPU, got one on 'meta'"):
        quantize(w.to("meta"))


@pytest.mark.parametrize("name", ["int1", "int3", "uint4", "f8e4m3"])
def test_codes_of_a_device_are_packed_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowlp.weights.packing._is_on_device", torch.is_tensor)
    w = torch.randn(3, 40, 128, generator=torch.Generator().manual_seed(0))
    assert in_torch(w, dtype=name) == quantize(w.numpy(), name, 32)
