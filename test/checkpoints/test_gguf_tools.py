"""GGUF against the package `gguf`: its own encoder where it has one, and random blocks of every type."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

import lowlp
from lowlp.checkpoints import gguf_blocks, gguf_vectors

# Where blocks have float16 numbers: byte offsets. Random bits could be infinite there.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64],
    "MXFP4": [], "NVFP4": [], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0],
}  # fmt: skip
NAMES = [kind.name for kind in (*gguf_blocks.TYPES.values(), *gguf_vectors.TYPES.values())]


def write(path: Path, tensors: dict[str, tuple[np.ndarray, Type]]) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.name", "made by a test")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "é"])
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def random_blocks(rng: np.random.Generator, name: str, rows: int, blocks: int) -> np.ndarray:
    octets = gguf.GGML_QUANT_SIZES[Type[name]][1]
    data = rng.integers(0, 256, (rows, blocks, octets), dtype=np.uint8)
    data[0], data[1] = 0, 0xFF  # all bits clear, and all set
    for at in HALVES.get(name, []):
        data[..., at : at + 2] = rng.uniform(-2, 2, (rows, blocks, 1)).astype(np.float16).view(np.uint8)
    if name == "MXFP4":
        data[..., 0] = rng.integers(0, 140, (rows, blocks))
    if name == "IQ1_M":  # the top nibbles of four words make a float16
        data[..., 55] = data[..., 55] & 0x0F | 0x30
    return data.reshape(rows, -1)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("Q1_0", "Q2_0")])
@pytest.mark.parametrize("seed", range(3))
def test_random_blocks(name: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    data = random_blocks(rng, name, 5 + 30 * seed, 1 + 2 * seed)
    if name == "NVFP4" and seed == 0:
        data &= 0x7F  # scales as they are in files, one of which is the byte that means 0
    path = write(tmp_path / "m.gguf", {"w": (data, Type[name])})
    found = lowlp.checkpoints.open(path)["w"]
    wanted = gguf.quants.dequantize(data, Type[name])
    assert np.array_equal(found.dequantize(), wanted)
    assert found.shape == wanted.shape


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"])
def test_what_the_package_quantises(name: str, tmp_path: Path) -> None:
    w = np.random.default_rng(7).normal(0, 0.02, (48, 512)).astype(np.float32)
    data = gguf.quants.quantize(w, Type[name])
    path = write(tmp_path / "m.gguf", {"blk.0.w": (data, Type[name]), "norm": (w[0], Type.F32)})
    found = dict(lowlp.checkpoints.read(path))
    assert np.array_equal(found["blk.0.w"].dequantize(), gguf.quants.dequantize(data, Type[name]))
    assert np.array_equal(found["norm"], w[0])


def test_experts_arrays_and_metadata(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    data = random_blocks(rng, "Q4_K", 6, 2).reshape(3, 2, -1)
    half = rng.normal(size=(4, 6)).astype(np.float16)
    path = write(tmp_path / "m.gguf", {"experts": (data, Type.Q4_K), "half": (half, Type.F16)})
    opened = lowlp.checkpoints.open(tmp_path)
    wanted = gguf.quants.dequantize(data.reshape(6, -1), Type.Q4_K).reshape(3, 2, 512)
    assert np.array_equal(opened["experts"].dequantize(), wanted)
    assert np.array_equal(opened["half"], half)
    assert opened.settings["general.architecture"] == "llama"
    assert opened.settings["tokenizer.ggml.tokens"] == ["a", "b", "é"]
    assert opened.stored_bytes("experts") == data.nbytes and path.exists()
