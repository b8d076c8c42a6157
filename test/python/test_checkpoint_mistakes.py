"""Checkpoints that are damaged, contradict themselves or are of another kind: an error says which tensor and why."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_files import gptq_tensors, write_model, write_tensors

import lowlp
from lowlp.errors import CheckpointError

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 64}
CODES = np.random.default_rng(0).integers(0, 16, (32, 128))
TENSORS = gptq_tensors(CODES, np.full((32, 2), 8), np.ones((32, 2), np.float16), 4, 1, np.arange(128) // 64)


def refused(path: Path, message: str, **options: Any) -> None:
    with pytest.raises(CheckpointError, match=message):
        dict(lowlp.checkpoints.read(path, **options))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"layer.qzeros": None}, r"layer\.qzeros: is missing"),
        ({"layer.scales": np.ones((2, 31), np.float16)}, r"layer\.scales: expected shape \[2, 32\], got \[2, 31\]"),
        (
            {"layer.scales": np.ones((2, 32), np.int32)},
            "expected elements of float16 or bfloat16 or float32, got int32",
        ),
        ({"layer.g_idx": np.arange(127, dtype=np.int32)}, r"expected 16 words for 127|g_idx"),
        ({"layer.g_idx": np.full(128, 2, np.int32)}, r"layer\.g_idx: must be the numbers of groups, 0 to 1, got 2"),
        ({"layer.qweight": np.zeros((15, 32), np.int32)}, "expected 16 words for 128 columns of 4 bits, got 15"),
        ({"layer.scales": np.full((2, 32), np.inf, np.float16)}, r"layer\.weight \(GPTQ v1, 4 bits\): scales"),
    ],
)
def test_tensors_that_do_not_fit(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    tensors = {name: array for name, array in (TENSORS | changed).items() if array is not None}
    refused(write_model(tmp_path, tensors, GPTQ), message)


def test_what_the_config_says_is_there(tmp_path: Path) -> None:
    """Groups would be read in another order, and codes about another zero point."""
    without_order = {name: array for name, array in TENSORS.items() if name != "layer.g_idx"}
    refused(write_model(tmp_path, without_order, GPTQ | {"desc_act": True}), r"layer\.g_idx: is missing, and desc_act")
    words = {"layer.qweight": np.zeros((128, 4), np.int32), "layer.scales": np.ones((2, 32), np.float16)}
    awq = {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"}
    refused(write_model(tmp_path, words, awq | {"zero_point": True}), r"layer\.qzeros: is missing, and zero_point")
    (read,) = dict(lowlp.checkpoints.read(write_model(tmp_path, words, awq | {"zero_point": False}))).values()
    assert str(read.codec) == "int4 g64 f16"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bits": 9}, "bits must be one of 2, 3, 4, 5, 6, 7, 8, got 9"),
        ({"bits": "4"}, "bits must be an integer"),
        ({"bits": 8}, r"layer\.qweight: expected 32 words for 128 columns of 8 bits, got 16"),
        ({"checkpoint_format": "gptq_v3"}, "checkpoint_format must be one of gptq, gptq_v2, gptq_p"),
        (
            {"checkpoint_format": "gptq_v2", "sym": True},
            "two readings fit: by checkpoint_format .* all zero points are 7",
        ),
        ({"pack_dtype": "int8"}, "pack_dtype must be one of int32"),
        ({"dynamic": {"+:(": {}}}, "is no regular expression"),
        ({"quant_method": "exl3"}, "'exl3' is not read: its weights are the states of a trellis"),
        ({"quant_method": "new"}, "'new' is not known; read are gptq, awq"),
        ({"quant_method": "hqq"}, "no tensor is of the method hqq"),
        ({"quant_method": "awq", "version": "gemv"}, "AWQ of version 'gemv' packs in another order"),
    ],
)
def test_configs_that_do_not_fit(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    refused(write_model(tmp_path, TENSORS, GPTQ | changed), message)


def test_two_readings_are_both_named(tmp_path: Path) -> None:
    both = TENSORS | {"other.W_q": np.zeros((4, 4), np.uint8)}
    refused(write_model(tmp_path, both), r"several readings fit: hqq \(tensors \*\.W_q\) and gptq")
    packed = {"layer.weight_packed": np.zeros((4, 2), np.int32), "layer.weight_scale": np.ones((4, 1), np.float16)}
    packed["layer.weight_shape"] = np.array([4, 20])
    group = {"targets": ["Linear"], "weights": {"num_bits": 3}}
    config = {"quant_method": "compressed-tensors", "config_groups": {"a": group}}
    refused(write_model(tmp_path, packed, config), "two readings fit 2 words for 20 codes of 3 bits: a stream")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no readable safetensors file"),
        (struct.pack("<Q", 1 << 62) + b"{}", "no readable safetensors file"),
        (struct.pack("<Q", 2) + b"[]", "no readable safetensors file"),
        (None, "no readable safetensors file"),
    ],
)
def test_damaged_files(data: bytes | None, message: str, tmp_path: Path) -> None:
    path = write_tensors(tmp_path / "m.safetensors", TENSORS)
    path.write_bytes(path.read_bytes()[:-1] if data is None else data)
    refused(path, message)


def test_an_index_names_files_beside_it(tmp_path: Path) -> None:
    write_tensors(tmp_path / "a.safetensors", TENSORS)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"layer.qweight": "../a.safetensors"}}))
    refused(tmp_path, "must be the name of a file beside the index")
    index.write_text(json.dumps({"weight_map": {"layer.other": "a.safetensors"}}))
    refused(tmp_path, r"lacks the tensor 'layer\.other'")
    index.write_text("[" * 100000)
    refused(tmp_path, "no JSON")


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"PK")
    refused(tmp_path / "m.bin", "pickled tensors are not read")
    refused(tmp_path, "has no .safetensors file.* pickled")
    with pytest.raises(lowlp.errors.LowlpFileNotFoundError):
        lowlp.checkpoints.open(tmp_path / "none")
    with pytest.raises(lowlp.errors.LowlpTypeError, match="path: expected a str"):
        lowlp.checkpoints.open(3)  # type: ignore[arg-type]
    write_tensors(tmp_path / "m.safetensors", {"a": np.zeros((2, 2), np.float16)})
    assert lowlp.checkpoints.open(tmp_path / "m.safetensors").format == ""
    refused(tmp_path / "m.safetensors", "'bogus' is not known", method="bogus")
