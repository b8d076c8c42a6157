"""Parts of the weights of a checkpoint, matrices of experts, and what plug-ins for engines decide without them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import gptq_tensors

import lowlp
from lowlp.checkpoints import Layer
from lowlp.checkpoints.held_tensors import layer_of_tensors
from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.weights.concatenation import stack

N, K, GROUP = 80, 256, 32
CODECS = {
    "int5": {"group_size": GROUP},
    "uint3": {"group_size": GROUP, "zero_point": True},
    "nf4": {"group_size": 64},
    "mxfp4": {},
    "nvfp4": {},
    "int2 by rows": {"group_size": None},
    "int8 of all": {"group_size": "tensor"},
}


def own_layer(folder: Path, **options: object) -> Layer:
    w = np.random.default_rng(0).normal(0, 0.02, (N, K)).astype(np.float32)
    lowlp.checkpoints.save(folder, {"layer.weight": lowlp.quantize(w, **options)})
    return lowlp.checkpoints.open(folder).layers["layer.weight"]


def gptq_layer(g_idx: np.ndarray | None = None, bits: int = 3) -> Layer:
    rng = np.random.default_rng(0)
    codes, zeros = rng.integers(0, 1 << bits, (N, K)), rng.integers(0, 1 << bits, (N, K // GROUP))
    found = gptq_tensors(codes, zeros, rng.uniform(0.5, 1, zeros.shape).astype(np.float16), bits, 2, g_idx)
    settings = Settings({"bits": bits, "group_size": GROUP, "checkpoint_format": "gptq_v2"})
    return layer_of_tensors(
        "layer", {name.removeprefix("layer."): array for name, array in found.items()}, "gptq", settings
    )


PARTS = [(slice(7, 41), slice(0, K)), (slice(0, N), slice(64, 192)), (slice(33, N), slice(192, K))]


@pytest.mark.parametrize("codec", CODECS)
def test_parts_of_own_checkpoints(codec: str, tmp_path: Path) -> None:
    layer = own_layer(tmp_path, dtype=codec.split()[0], **CODECS[codec])
    whole = layer.load().dequantize()
    for rows, columns in PARTS:
        part = layer.load_part(rows, columns)
        assert np.array_equal(part.dequantize(), whole[rows, columns])
        assert layer.load_part(rows, columns, "bf16").family == "bf16"


def test_parts_of_codes() -> None:
    layer = gptq_layer()
    whole = layer.load().dequantize()
    for rows, columns in PARTS:
        assert np.array_equal(layer.load_part(rows, columns).dequantize(), whole[rows, columns])
    shuffled = gptq_layer(np.random.default_rng(1).permutation(np.arange(K) // GROUP))
    rows = slice(5, 30)
    assert np.array_equal(shuffled.load_part(rows, slice(0, K)).dequantize(), shuffled.load().dequantize()[rows])


def test_parts_of_vectors() -> None:
    rng = np.random.default_rng(0)
    tensors = {
        "codes": rng.integers(-128, 128, (N, K // 8, 2)).astype(np.int8),
        "codebooks": rng.normal(0, 0.02, (2, 256, 1, 8)).astype(np.float16),
        "scales": rng.uniform(0.5, 1, (N, 1, 1, 1)).astype(np.float16),
    }
    layer = layer_of_tensors("layer", tensors, "aqlm", Settings({}))
    whole = layer.load().dequantize()
    for rows, columns in PARTS:
        assert np.array_equal(layer.load_part(rows, columns).dequantize(), whole[rows, columns])
    with pytest.raises(
        CheckpointError, match=r"layer\.weight \(AQLM 2x8\): columns: 0:12 of 256 cannot be cut at 12, .* of 8;"
    ):
        layer.load_part(slice(0, N), slice(0, 12))


def test_places_where_nothing_may_be_cut() -> None:
    layer = gptq_layer()
    for columns, message in (
        (slice(0, 48), "columns: 0:48 of 256 cannot be cut at 48, only at multiples of 32"),
        (slice(0, 320), "a part of 0:256"),
    ):
        with pytest.raises(CheckpointError, match=message):
            layer.load_part(slice(0, N), columns)
    shuffled = gptq_layer(np.random.default_rng(1).permutation(np.arange(K) // GROUP))
    with pytest.raises(CheckpointError, match=r"columns: 0:128 of 256 are no groups of their own, .*act-order"):
        shuffled.load_part(slice(0, N), slice(0, 128))
    with pytest.raises(CheckpointError, match="its tensors make no layer of the method hqq: qweight"):
        layer_of_tensors("layer", {"qweight": np.zeros((2, 2), np.int32)}, "hqq", Settings({}))


def test_experts_from_matrices() -> None:
    w = np.random.default_rng(0).normal(size=(3, 24, 64)).astype(np.float32)
    single = [lowlp.quantize(matrix, "nvfp4") for matrix in w]
    found = stack(single)
    assert found.shape == (3, 24, 64)
    assert all(np.array_equal(found[e].dequantize(), matrix.dequantize()) for e, matrix in enumerate(single))
    x, offsets = np.ones((4, 64), np.float16), np.array([0, 1, 1, 4], np.int32)
    y = lowlp.grouped_linear(x, found, offsets)
    for e, rows in ((0, slice(0, 1)), (2, slice(1, 4))):
        assert np.allclose(y[rows], x[rows] @ single[e].dequantize().T, atol=0.1)
    with pytest.raises(lowlp.errors.LowlpValueError, match=r"tensors\[1\]: must have the shape of the first"):
        stack([lowlp.quantize(w[0], "nvfp4"), lowlp.quantize(w[0, :8], "nvfp4")])
    vectors = lowlp.quantize(w[0], vq=lowlp.vq(vector=4, bits=4, books=1))
    with pytest.raises(lowlp.errors.LowlpValueError, match="codes of vectors have no kernels for experts"):
        stack([vectors])


def test_claims_without_engines() -> None:
    """Which checkpoints lowlp serves is decided without an engine, so it is tested without."""
    from lowlp.serving.claims import claims
    from lowlp.sglang.claims import lacking as lacking_in_sglang
    from lowlp.vllm.claims import lacking as lacking_in_vllm

    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}
    for lacking in (lacking_in_vllm, lacking_in_sglang):
        assert not claims(gptq, None, lacking) and claims(gptq, "lowlp", lacking)
        assert not claims(gptq | {"bits": 3}, "gptq", lacking)
        for other in ({"bits": 3}, {"sym": False}, {"dynamic": {"+:.*v_proj": {"bits": 6}}}):
            assert claims(gptq | other, None, lacking)
        assert not claims(gptq | {"desc_act": True, "group_size": -1}, None, lacking)
        assert not claims(gptq | {"dynamic": {"-:.*v_proj": {"bits": 6}}}, None, lacking)
        methods = {"hqq": True, "aqlm": True, "awq": False, "fp8": False, "exl3": False, None: False}
        for method, claimed in methods.items():
            assert claims({"quant_method": method}, None, lacking) == claimed
        round_5 = {"quant_method": "auto-round", "bits": 4, "extra_config": {"a.b": {"bits": 5}}}
        assert claims(round_5, None, lacking) and not claims(round_5 | {"extra_config": {}}, None, lacking)
    # What one of them has kernels for, and the other has not.
    packed = {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"actorder": "group"}}}}
    cases = [(gptq | {"desc_act": True}, True, False), (gptq | {"group_size": 256}, False, True), (packed, True, False)]
    for fields, vllm, sglang in cases:
        assert [claims(fields, None, lacking) for lacking in (lacking_in_vllm, lacking_in_sglang)] == [vllm, sglang]


def test_names_of_merged_modules() -> None:
    from lowlp.serving.names import CheckpointNames

    merged = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}
    types = {f"a.{name}_proj.{part}": "I32" for name in "qkv" for part in ("qweight", "scales", "bias", "k_scale")}
    names = CheckpointNames({**types, "a.o_proj.weight": "F16", "model.wte.header": "U8"})
    found = names.quantised("a.qkv_proj", merged)
    assert [(source.name, sorted(source.parts), source.bias) for source in found] == [
        (f"a.{name}_proj", ["qweight", "scales"], True) for name in "qkv"
    ]
    assert names.quantised("a.o_proj", merged) == [] == names.quantised("b.qkv_proj", merged)
    assert [source.name for source in names.embedding()] == ["model.wte"]
    plain = CheckpointNames({"a.q_proj.qweight": "I32", "a.k_proj.weight": "F16"})
    with pytest.raises(CheckpointError, match=r"a\.qkv_proj: .*a\.q_proj is quantised and a\.k_proj is not"):
        plain.quantised("a.qkv_proj", merged)


@pytest.mark.parametrize(
    ("group", "engine", "part"),
    [("vllm.general_plugins", "vLLM", "vllm.config"), ("sglang.srt.plugins", "SGLang", "sglang.srt.plugins")],
)
def test_entry_points(group: str, engine: str, part: str) -> None:
    """What pyproject.toml names for an engine is there, and says that the engine is missing where it is."""
    import tomllib
    from importlib import import_module

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, function = project["entry-points"][group]["lowlp"].partition(":")
    register = getattr(import_module(module), function)
    try:
        import_module(part)
    except ImportError:
        with pytest.raises(lowlp.errors.LowlpError, match=rf"{re.escape(module)} needs {engine}"):
            register()
