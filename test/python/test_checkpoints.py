"""A sample of each format by an encoder of its description; `make test-checkpoints` has all of them by their tools."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from checkpoint_files import E4M3, gptq_tensors, stream, weights_of, write_model, write_tensors

import lowlp
from lowlp.errors import CheckpointError

RNG = np.random.default_rng


def e2m1(codes: np.ndarray) -> np.ndarray:
    return np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)[codes]


@pytest.mark.parametrize(("bits", "version"), [(2, 1), (3, 1), (3, 2), (4, 1), (5, 2), (8, 1)])
def test_gptq(bits: int, version: int, tmp_path: Path) -> None:
    rng, n, k, group = RNG(bits), 45, 160, 64  # a last group of 32
    codes = rng.integers(0, 1 << bits, (n, k))
    zeros = rng.integers(0, 1 << bits, (n, 3))
    zeros[0], zeros[1] = 0, (1 << bits) - 1
    scales = rng.uniform(0.1, 1, (n, 3)).astype(np.float16)
    g_idx = rng.permutation(np.arange(k) // group)
    tensors = gptq_tensors(codes, zeros, scales, bits, version, g_idx)
    name = {1: "gptq", 2: "gptq_v2"}[version]
    write_model(tmp_path, tensors, {"quant_method": "gptq", "bits": bits, "group_size": 64, "checkpoint_format": name})
    wanted = (codes - zeros[:, g_idx]).astype(np.float32) * scales.astype(np.float32)[:, g_idx]
    assert np.array_equal(weights_of(tmp_path).dequantize(), wanted)


def test_gptq_without_order_is_signed_and_has_no_zeros(tmp_path: Path) -> None:
    codes, scales = RNG(0).integers(0, 16, (32, 128)), np.ones((32, 2), np.float16)
    tensors = gptq_tensors(codes, np.full((32, 2), 8), scales, 4, 1, np.arange(128) // 64)
    (tmp_path / "quantize_config.json").write_text(json.dumps({"bits": 4, "group_size": 64, "desc_act": True}))
    qw = weights_of(write_model(tmp_path, tensors | {"layer.bias": np.ones(32, np.float16)}))
    assert str(qw.codec) == "int4 g64 f16" and np.array_equal(qw.dequantize(), codes - 8.0)
    rules = {"dynamic": {"+:lay.*": {"bits": 4}}, "bits": 8, "quant_method": "gptq", "sym": True}
    write_model(tmp_path, tensors, rules)
    assert weights_of(tmp_path) == qw


def test_awq(tmp_path: Path) -> None:
    rng, n, k = RNG(1), 48, 128
    codes, zeros = rng.integers(0, 16, (n, k)), rng.integers(0, 16, (n, 2))
    scales = rng.uniform(0.1, 1, (n, 2)).astype(np.float16)

    def packed(array: np.ndarray) -> np.ndarray:
        return stream(array.reshape(array.shape[0], -1, 8)[..., [0, 2, 4, 6, 1, 3, 5, 7]].reshape(array.shape), 4)

    tensors = {"layer.qweight": packed(codes.T), "layer.qzeros": packed(zeros.T), "layer.scales": scales.T}
    write_tensors(tmp_path / "m.safetensors", tensors)  # found by the shapes
    found = lowlp.checkpoints.open(tmp_path / "m.safetensors")
    assert found.format == "awq"
    wanted = (codes - zeros.repeat(64, 1)).astype(np.float32) * scales.astype(np.float32).repeat(64, 1)
    assert np.array_equal(found["layer.weight"].dequantize(), wanted)
    # The state of one module.
    of_one = {name.removeprefix("layer."): array for name, array in tensors.items()}
    write_tensors(tmp_path / "one.safetensors", of_one | {"bias": np.ones(n, np.float16)})
    alone = lowlp.checkpoints.open(tmp_path / "one.safetensors")
    assert alone.names == ["weight", "bias"] and alone["weight"] == found["layer.weight"]
    assert repr(alone).endswith("one.safetensors', awq, 1 weights, 1 arrays)")


@pytest.mark.parametrize("bits", [3, 4])
def test_compressed_tensors(bits: int, tmp_path: Path) -> None:
    rng, n, k = RNG(bits), 32, 256
    codes = rng.integers(0, 1 << bits, (n, k))
    scales = rng.uniform(0.1, 1, (n, 4)).astype(ml_dtypes.bfloat16)
    tensors = {
        "layer.weight_packed": stream(codes, bits),
        "layer.weight_scale": scales,
        "layer.weight_shape": np.array([n, k]),
    }
    group = {"targets": ["re:lay.*"], "weights": {"num_bits": bits, "type": "int"}}
    other = {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int"}}
    config = {"quant_method": "compressed-tensors", "config_groups": {"a": other, "b": group}}
    write_model(tmp_path, tensors, config)
    wanted = (codes - float(1 << (bits - 1))) * scales.astype(np.float32).repeat(64, 1)
    assert np.array_equal(weights_of(tmp_path).dequantize(), wanted.astype(np.float32))


def test_both_forms_of_nvfp4_agree(tmp_path: Path) -> None:
    rng, n, k = RNG(2), 32, 128
    codes = rng.integers(0, 16, (n, k))
    octets = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    scales = rng.uniform(1, 300, (n, k // 16)).astype(E4M3)
    factor = np.float32(3.7e-4)
    one = {"layer.weight": octets, "layer.weight_scale": scales, "layer.weight_scale_2": factor.reshape(1)}
    write_model(tmp_path / "a", one, {"quant_method": "modelopt"})
    two = {
        "layer.weight_packed": octets,
        "layer.weight_scale": scales,
        "layer.weight_global_scale": (1 / factor).reshape(1),
    }
    write_model(tmp_path / "b", two, {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})
    multiplied, divided = weights_of(tmp_path / "a"), weights_of(tmp_path / "b")
    exact = e2m1(codes) * scales.astype(np.float32).repeat(16, 1)
    assert np.array_equal(multiplied.dequantize(), factor * exact)
    quotient = scales.astype(np.float32) / (1 / factor)
    assert np.array_equal(divided.dequantize(), e2m1(codes) * quotient.repeat(16, 1))
    assert np.allclose(multiplied.dequantize(), divided.dequantize(), rtol=3e-7, atol=0)
    assert weights_of(tmp_path / "b", exact=False).codec == multiplied.codec


def test_fp8_blocks_with_short_ends(tmp_path: Path) -> None:
    rng = RNG(3)
    w = rng.normal(0, 30, (200, 320)).astype(E4M3)
    scales = rng.uniform(0.01, 1, (2, 3)).astype(np.float32)
    tensors = {"layer.weight": w, "layer.weight_scale_inv": scales}
    write_model(tmp_path, tensors, {"quant_method": "fp8", "weight_block_size": [128, 128]})
    wanted = w.astype(np.float32) * scales.repeat(128, 0)[:200].repeat(128, 1)[:, :320]
    assert np.array_equal(weights_of(tmp_path).dequantize(), wanted)
    inputs = lowlp.checkpoints.open(tmp_path).layers["layer.weight"].inputs
    assert inputs == lowlp.checkpoints.InputQuantization("f8e4m3", 128, dynamic=True)


def test_mxfp4_of_gpt_oss(tmp_path: Path) -> None:
    rng = RNG(4)
    codes, powers = rng.integers(0, 16, (2, 32, 96)), rng.integers(100, 140, (2, 32, 3)).astype(np.uint8)
    blocks = (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8).reshape(2, 32, 3, 16)
    write_model(tmp_path, {"up_blocks": blocks, "up_scales": powers}, {"quant_method": "mxfp4"})
    wanted = e2m1(codes) * np.exp2(powers.astype(np.float32) - 127).repeat(32, -1)
    assert np.array_equal(weights_of(tmp_path, "up").dequantize(), wanted)


def test_hqq_of_three_bits(tmp_path: Path) -> None:
    rng, n, k, group = RNG(5), 33, 128, 64
    codes = rng.integers(0, 8, (n * k // group, group))
    padded = np.concatenate([codes, np.zeros((-codes.shape[0] % 10, group), codes.dtype)])
    words = sum(part << shift for part, shift in zip(np.split(padded, 10), range(27, -1, -3), strict=True))
    scales, zeros = rng.uniform(0.1, 1, (2, n * k // group, 1)).astype(np.float32)
    tensors = {
        "layer.W_q": words.astype(np.int32), "layer.scale": scales, "layer.zero": zeros,
        "layer.nbits": np.array([3], np.int32), "layer.group_size": np.array([group], np.int32),
        "layer.shape": np.array([n, k]), "layer.packing": np.frombuffer(b"3bit_32", np.uint8),
    }  # fmt: skip
    write_model(tmp_path, tensors, {"quant_method": "hqq"})
    assert np.array_equal(
        weights_of(tmp_path).dequantize(), ((codes.astype(np.float32) - zeros) * scales).reshape(n, k)
    )


def test_bitsandbytes_blocks_that_go_on_in_the_next_row(tmp_path: Path) -> None:
    rng, n, k = RNG(6), 33, 96
    codes, table = rng.integers(0, 16, (n * k,)), rng.uniform(-1, 1, 16).astype(np.float32)
    state = json.dumps({"shape": [n, k], "blocksize": 64, "quant_type": "nf4", "nested_offset": 0.25}).encode()
    nested, small = rng.uniform(0, 1, 256).astype(np.float32), rng.integers(0, 256, 50).astype(np.uint8)
    tensors = {
        "layer.weight": (codes[::2] << 4 | codes[1::2]).astype(np.uint8)[:, None], "layer.weight.quant_map": table,
        "layer.weight.absmax": small, "layer.weight.nested_absmax": np.float32([0.5]),
        "layer.weight.nested_quant_map": nested,
        "layer.weight.quant_state.bitsandbytes__nf4": np.frombuffer(state, np.uint8),
    }  # fmt: skip
    write_model(tmp_path, tensors)
    absmax = nested[small] * np.float32(0.5) + np.float32(0.25)
    wanted = table[codes] * absmax.repeat(64)[: n * k]
    assert np.array_equal(weights_of(tmp_path).dequantize(), wanted.reshape(n, k))


def test_aqlm(tmp_path: Path) -> None:
    rng = RNG(7)
    codes = rng.integers(0, 256, (32, 8, 2))
    books, scales = (
        rng.normal(size=(2, 256, 1, 8)).astype(np.float16),
        rng.uniform(size=(32, 1, 1, 1)).astype(np.float16),
    )
    tensors = {"layer.codes": codes.astype(np.int8), "layer.codebooks": books, "layer.scales": scales}
    write_model(tmp_path, tensors, {"quant_method": "aqlm"})
    found = books.astype(np.float32)[:, :, 0]
    wanted = (found[0][codes[..., 0]] + found[1][codes[..., 1]]).reshape(32, 64) * scales.astype(np.float32)[:, 0, 0]
    assert np.array_equal(weights_of(tmp_path).dequantize(), wanted)


def test_quip_has_its_weights_and_its_transforms_apart(tmp_path: Path) -> None:
    rng, n, k = RNG(8), 32, 128
    codes = rng.integers(0, 1 << 16, (n, k // 8))
    words = np.zeros((n // 16, k // 64, 8, 4), np.uint64)
    for row, column in np.ndindex(n, k // 8):
        vector, code = row % 2 + 2 * (column % 2), int(codes[row, column])
        word = (code >> 8) << (8 * vector)
        word |= sum((code >> bit & 1) << (32 + 4 * bit + vector) for bit in range(8))
        words[row // 16, column // 8, row % 16 // 2, column % 8 // 2] |= np.uint64(word)
    tensors = {
        "layer.Qidxs": words.view(np.int64).reshape(n, k // 32), "layer.SU": np.ones(k, np.float32),
        "layer.SV": np.ones(n, np.float32), "layer.Wscale": np.float32([0.5]),
    }  # fmt: skip
    write_model(tmp_path, tensors)
    layer = lowlp.checkpoints.open(tmp_path).layers["layer.weight"]
    wanted = lowlp.QuantizedTensor(codes.astype(np.uint16)[..., None], codebooks="e8p", scales=0.5)
    assert layer.load() == wanted
    assert [(found.side, found.kind) for found in layer.transforms] == [
        ("input", "scale"), ("input", "hadamard"), ("output", "hadamard"), ("output", "scale"),
    ]  # fmt: skip
    with pytest.raises(CheckpointError, match=r"layer\.weight \(QuIP#, E8P\): its layer transforms x"):
        weights_of(tmp_path)


def test_arrays_come_along_and_what_is_saved_is_read_back(tmp_path: Path) -> None:
    w = RNG(9).normal(size=(48, 128)).astype(np.float32)
    tensors = {
        "a.weight": lowlp.quantize(w, "int4", group_size=32),
        "b.weight": lowlp.quantize(w, "nvfp4"),
        "experts": lowlp.quantize(np.stack([w, -w]), "int8", group_size=64, scale_dtype="bf16"),
        "norm": np.arange(8, dtype=ml_dtypes.bfloat16),
        "temperature": np.array(2.5, np.float32),
    }
    written = lowlp.checkpoints.save(tmp_path / "m", tensors, config={"hidden_size": 128}, shard_bytes=1500)
    assert [path.name for path in written][-2:] == ["model.safetensors.index.json", "config.json"] and len(written) == 6
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["hidden_size"] == 128 and config["quantization_config"]["quant_method"] == "lowlp"
    found = dict(lowlp.checkpoints.read(tmp_path / "m"))
    assert found["a.weight"] == tensors["a.weight"] and found["b.weight"] == tensors["b.weight"]
    assert found["experts"] == tensors["experts"]
    assert found["norm"].dtype == ml_dtypes.bfloat16 and np.array_equal(found["norm"], tensors["norm"])
    assert found["temperature"].shape == () and found["temperature"] == 2.5
    assert lowlp.checkpoints.open(tmp_path / "m", activation="bf16")["a.weight"].family == "bf16"
    with pytest.raises(lowlp.errors.LowlpValueError, match="has a checkpoint already"):
        lowlp.checkpoints.save(tmp_path / "m", tensors)


def test_a_config_that_json_cannot_say_leaves_nothing_behind(tmp_path: Path) -> None:
    for config, message in (({"eps": np.float32(1)}, "config: must be what JSON can say"), ([1], "config: expected a")):
        with pytest.raises(lowlp.errors.LowlpTypeError, match=message):
            lowlp.checkpoints.save(tmp_path / "m", {"norm": np.ones(3)}, config=config)  # type: ignore[arg-type]
    assert not (tmp_path / "m").exists()
