"""GGUF: one block of each kind by hand; `make test-checkpoints` compares all types with the package `gguf`."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest

import lowlp
from lowlp.errors import CheckpointError


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(tensors: dict[str, tuple[tuple[int, ...], int, bytes]], more: tuple[bytes, ...] = ()) -> bytes:
    """A file with these tensors: shape, type and data of each; and more metadata."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 2 + len(more)) + b"".join(more)
    head += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    head += text("numbers") + struct.pack("<IIQ3H", 9, 2, 3, 7, 8, 9)
    at, body = 0, b""
    for name, (shape, kind, data) in tensors.items():
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, at)
        body += data + bytes(-len(data) % 32)
        at = len(body)
    return head + bytes(-len(head) % 32) + body


def half(number: float) -> bytes:
    return np.float16(number).tobytes()


def test_codes_scales_and_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, (2, 32))
    q4_0 = b"".join(half(0.5) + (row[:16] | row[16:] << 4).astype(np.uint8).tobytes() for row in codes)
    six = rng.integers(0, 64, (2, 8))  # scales and minima
    low = [six[:, :4], six[:, 4:]]
    packed = np.concatenate([low[0][0] | low[1][0] >> 4 << 6, low[0][1] | low[1][1] >> 4 << 6])
    packed = np.concatenate([packed, low[1][0] & 15 | (low[1][1] & 15) << 4]).astype(np.uint8).tobytes()
    of_k = rng.integers(0, 16, 256)
    parts = of_k.reshape(4, 2, 32)
    q4_k = half(0.25) + half(0.125) + packed + (parts[:, 0] | parts[:, 1] << 4).astype(np.uint8).tobytes()
    path = tmp_path / "m.gguf"
    tensors = {"a": ((2, 32), 2, q4_0), "k": ((1, 256), 12, q4_k), "n": ((3,), 0, np.float32([1, 2, 3]).tobytes())}
    path.write_bytes(gguf(tensors))
    opened = lowlp.checkpoints.open(path)
    assert opened.settings == {"general.architecture": "llama", "numbers": [7, 8, 9]}
    assert str(opened["a"].codec) == "int4 g32 f16"
    assert np.array_equal(opened["a"].dequantize(), (codes - 8) * np.float32(0.5))
    scale, least = (row.repeat(32).astype(np.float32) for row in six)
    wanted = (np.float32(0.25) * scale) * of_k - np.float32(0.125) * least
    assert np.array_equal(opened["k"].dequantize()[0], wanted)
    assert str(opened["k"].codec) == "uint4 g32 uint8 offsets:uint8 super:f16:g256"
    assert opened["n"].tolist() == [1, 2, 3]


def test_a_model_in_two_files(tmp_path: Path) -> None:
    count = text("split.count") + struct.pack("<IH", 2, 2)
    data = bytes(68)
    for number, name in ((1, "a"), (2, "b")):
        (tmp_path / f"m-0000{number}-of-00002.gguf").write_bytes(gguf({name: ((2, 32), 8, data)}, more=(count,)))
    assert lowlp.checkpoints.open(tmp_path).names == ["a", "b"]
    with pytest.raises(CheckpointError, match=r"name the first, '\.\.\.-00001-of-00002\.gguf'"):
        lowlp.checkpoints.open(tmp_path / "m-00002-of-00002.gguf")


GOOD = gguf({"a": ((2, 32), 8, bytes(68))})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (GOOD[:20], "within its header"),
        (GOOD[:-40], "beyond the end of the file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1 is not read"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "claims 1152921504606846976 tensors"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62) + bytes(40), "within its header"),
        (gguf({"a": ((2, 32), 15, bytes(68))}), "blocks of type Q8_K are not read"),
        (gguf({"a": ((2, 33), 8, bytes(72))}), "K must be a multiple of the 32 weights"),
        (gguf({"a": ((1 << 40, 32), 8, bytes(68))}), "is larger than the file"),
        (gguf({"a": ((2, 32), 8, half(np.inf) + bytes(66))}), "scales: must be finite"),
    ],
)
def test_damaged_files_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=message):
        dict(lowlp.checkpoints.read(path))


@pytest.mark.skipif(importlib.util.find_spec("gguf") is not None, reason="has the package gguf")
def test_grids_need_their_package(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf({"a": ((1, 256), 17, bytes(74))}))
    assert lowlp.checkpoints.open(path).layers["a"].format == "GGUF IQ2_XS"
    with pytest.raises(CheckpointError, match="pip install gguf"):
        dict(lowlp.checkpoints.read(path))
