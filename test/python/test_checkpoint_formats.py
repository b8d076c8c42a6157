"""A sample of the formats that a few lines describe, by encoders of these lines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import E4M3, stream, weights_of, write_model, write_tensors

import lowlp
from lowlp.errors import CheckpointError

N, K = 48, 128
RNG = np.random.default_rng(0)
SCALES = RNG.uniform(0.1, 1, (N, 2)).astype(np.float32)
OF_ROWS = SCALES[:, :1]
BYTES = RNG.integers(-128, 128, (N, K)).astype(np.int8)
POWERS = RNG.integers(110, 140, (N, 4)).astype(np.uint8)
CODES = {bits: RNG.integers(0, 1 << bits, (N, K)) for bits in (2, 3, 4, 6)}
FLOATS = RNG.normal(0, 30, (N, K)).astype(E4M3)


def octets(bits: int) -> np.ndarray:
    return stream(CODES[bits], bits).view(np.uint8)


def e2m3(codes: np.ndarray) -> np.ndarray:
    exponent, mantissa = codes >> 3 & 3, codes & 7
    value = np.where(exponent == 0, mantissa / 8, (1 + mantissa / 8) * 2.0 ** (exponent - 1))
    return np.where(codes & 32, -value, value).astype(np.float32)


def powers() -> np.ndarray:
    return np.exp2(POWERS.astype(np.float32) - 127).repeat(32, 1)


CASES = {
    "one scale": ({"quant_method": "fp8"}, {"weight": FLOATS, "weight_scale": SCALES[0, 0]}, FLOATS * SCALES[0, 0]),
    "rows": ({"quant_method": "fbgemm_fp8"}, {"weight": FLOATS, "weight_scale": OF_ROWS}, FLOATS * OF_ROWS),
    "mxfp8": ({"quant_method": "mxfp8"}, {"weight": FLOATS, "weight_scale": POWERS}, FLOATS * powers()),
    "mxfp6": (
        {"quant_method": "compressed-tensors"},
        {"weight_packed": octets(6), "weight_scale": POWERS},
        e2m3(CODES[6]) * powers(),
    ),
    "int8": (
        {"quant_method": "compressed-tensors"},
        {"weight": BYTES, "weight_scale": OF_ROWS, "weight_zero_point": BYTES[:, :1]},
        (BYTES - BYTES[:, :1].astype(np.float32)) * OF_ROWS,
    ),
    "modelopt": (
        {"quant_method": "modelopt"},
        {"weight": (CODES[4][::2] | CODES[4][1::2] << 4).astype(np.uint8), "weight_scale": SCALES},
        ((CODES[4] ^ 8).astype(np.float32) - 8) * SCALES.repeat(64, 1),
    ),
    "mlx": (
        {"quant_method": "metal", "bits": 3, "group_size": 64},
        {"weight": stream(CODES[3], 3).view(np.uint32), "scales": SCALES, "biases": -SCALES},
        CODES[3].astype(np.float32) * SCALES.repeat(64, 1) - SCALES.repeat(64, 1),
    ),
    "gemma": (
        {"quant_method": "gemma", "num_bits": 8, "module_quant_configs": {"lay": {"num_bits": 2}}},
        {"weight": octets(2), "weight_scale": OF_ROWS},
        (CODES[2].astype(np.float32) - 2) * OF_ROWS,
    ),
    "bitnet": (
        {"quant_method": "bitnet"},
        {"weight": np.bitwise_or.reduce(CODES[2].reshape(4, -1, K) << [[[0]], [[2]], [[4]], [[6]]]).astype(np.uint8),
         "weight_scale": SCALES[0, :1]},
        (CODES[2].astype(np.float32) - 1) * (1 / SCALES[0, 0]),
    ),
    "torchao": (
        {"quant_method": "torchao"},
        {"_weight_qdata": BYTES, "_weight_scale": SCALES, "_weight_zero_point": np.zeros((N, 2), np.int8)},
        BYTES * SCALES.repeat(64, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str, tmp_path: Path) -> None:
    config, tensors, wanted = CASES[name]
    write_model(tmp_path, {f"layer.{part}": np.asarray(array) for part, array in tensors.items()}, config)
    assert wanted.dtype == np.float32
    assert np.array_equal(weights_of(tmp_path).dequantize(), wanted)


def test_what_modelopt_does_to_x_is_told_apart(tmp_path: Path) -> None:
    _, tensors, _ = CASES["modelopt"]
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "W4A16_AWQ"}}))
    factors = {"layer.pre_quant_scale": np.arange(1, K + 1, dtype=np.float16)}
    write_model(tmp_path, {f"layer.{part}": array for part, array in tensors.items()} | factors)
    opened = lowlp.checkpoints.open(tmp_path)
    assert opened.format == "modelopt" and opened.arrays == ()
    (transform,) = opened.layers["layer.weight"].transforms
    assert (transform.side, transform.kind) == ("input", "scale") and transform.values[-1] == K
    with pytest.raises(CheckpointError, match="transforms x or y besides the product"):
        dict(opened)


@pytest.mark.parametrize(
    ("config", "tensors", "message"),
    [
        ("bitnet", {"weight_scale": np.zeros(0, np.float32)}, "expected one number, got shape"),
        ("bitnet", {"weight_scale": np.zeros(1, np.float32)}, "divides, and must be finite and not 0"),
        ("torchao", {"_weight_qdata": np.zeros((0, K), np.int8)}, "is empty, of shape"),
        ("mlx", {"weight": np.zeros((N, 5), np.uint32)}, r"expected shape \[48, 12\] for 3 bits in groups of 64"),
        ("int8", {"weight_zero_point": np.zeros(3, np.int8)}, "has 48 numbers, and zero points are 3"),
        ("one scale", {"weight_scale": np.ones((2, 7), np.float32)}, r"expected one scale, or shape \[48, 1\]"),
        ("rows", {"weight": np.full((N, K), np.nan, np.float32).astype(E4M3)}, "0x7f, NaN or infinity"),
    ],
)
def test_mistakes(config: str, tensors: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    fields, good, _ = CASES[config]
    write_model(tmp_path, {f"layer.{part}": np.asarray(array) for part, array in (good | tensors).items()}, fields)
    with pytest.raises(CheckpointError, match=message):
        weights_of(tmp_path)


def test_metadata_say_the_bits_of_torchao(tmp_path: Path) -> None:
    said = {"_type": "IntxUnpackedToInt8Tensor", "_data": {"target_dtype": "torch.int4"}}
    tensors = {"layer.weight_qdata": BYTES, "layer.weight_scale": SCALES}
    write_tensors(tmp_path / "m.safetensors", tensors, {"layer.weight": json.dumps(said)})
    with pytest.raises(CheckpointError, match=r"numbers of 4 bits must be in -8\.\.7"):
        weights_of(tmp_path / "m.safetensors")
