"""SGLang's own layers with lowlp's weights: what each rank has of them, and what they compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from encoded import GPTQ, GROUP, OWN, Tensors, finished, gptq, held_weights, hqq, load, own, types_of
from sglang.srt.layers.linear import (
    ColumnParallelLinear,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    ReplicatedLinear,
    RowParallelLinear,
)
from sglang.srt.layers.quantization import get_quantization_config
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod
from sglang.srt.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding
from sglang.srt.models.utils import WeightsMapper

import lowlp
from lowlp.errors import CheckpointError
from lowlp.serving.names import CheckpointNames

K = 128
FORMATS = {"gptq": (GPTQ, gptq), "hqq": ({"quant_method": "hqq"}, hqq), "lowlp": (OWN, own)}
ATTENTION = {"q": 128, "k": 32, "v": 32}


def config_of(fields: Mapping[str, Any], modules: Mapping[str, Tensors], **more: Any) -> Any:
    """lowlp's config of SGLang for a checkpoint with these modules, with what SGLang adds to it."""
    given = {**fields, "hf_config": object(), "packed_modules_mapping": {}, **more}
    config = get_quantization_config("lowlp").from_config(given)
    config.names = CheckpointNames(types_of(modules))
    return config


def close(y: torch.Tensor, x: torch.Tensor, meant: np.ndarray) -> bool:
    return torch.allclose(y.float(), x.float() @ torch.from_numpy(meant).t(), atol=2e-2)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_projections_by_ranks(kind: str, ranks: int, as_rank: Any) -> None:
    """Query heads are divided among ranks; of the two heads of keys, four ranks have one each, twice. The config does
    not say what is merged, as with half of SGLang's models."""
    fields, encode = FORMATS[kind]
    matrices = {shard: encode(n, K, seed) for seed, (shard, n) in enumerate(ATTENTION.items())}
    config = config_of(fields, {f"a.{shard}_proj": tensors for shard, (tensors, _) in matrices.items()})
    for rank in range(ranks):
        as_rank(rank, ranks)
        layer = QKVParallelLinear(K, 16, 8, 2, bias=False, quant_config=config, prefix="a.qkv_proj")
        for shard, (tensors, _) in matrices.items():
            load(layer, tensors, shard)
        finished(layer)
        size = max(16, 32 // ranks)
        first = rank * 2 // ranks if ranks > 2 else rank
        heads = {"q": slice(rank * 128 // ranks, (rank + 1) * 128 // ranks)}
        heads |= {shard: slice(first * size, (first + 1) * size) for shard in "kv"}
        wanted = np.concatenate([matrices[shard][1][rows] for shard, rows in heads.items()])
        assert np.array_equal(held_weights(layer), wanted)
        x = torch.randn(3, K)
        assert close(layer(x)[0], x, wanted)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("ranks", [1, 2])
def test_rows_and_merged_columns_by_ranks(kind: str, ranks: int, as_rank: Any) -> None:
    """72 rows are no whole units; down's columns are those of the rank, and the first one alone adds its bias."""
    fields, encode = FORMATS[kind]
    gate, up, down = encode(72, K, 0), encode(72, K, 1), encode(40, K, 2)
    config = config_of(fields, {"m.gate_proj": gate[0], "m.up_proj": up[0], "m.down_proj": down[0]})
    x, total, bias = torch.randn(5, K), torch.zeros(5, 40), torch.randn(40)
    for rank in range(ranks):
        as_rank(rank, ranks)
        layer = MergedColumnParallelLinear(K, [72, 72], bias=True, quant_config=config, prefix="m.gate_up_proj")
        load(layer, gate[0], 0)
        load(layer, up[0], 1)
        layer.bias.data = torch.randn(144 // ranks)
        rows = slice(rank * 72 // ranks, (rank + 1) * 72 // ranks)
        wanted = np.concatenate([gate[1][rows], up[1][rows]])
        assert np.array_equal(held_weights(finished(layer)), wanted)
        assert close(layer(x)[0] - layer.bias, x, wanted)

        layer = RowParallelLinear(K, 40, reduce_results=False, quant_config=config, prefix="m.down_proj")
        load(layer, down[0])
        layer.bias.data = bias
        columns = slice(rank * K // ranks, (rank + 1) * K // ranks)
        assert np.array_equal(held_weights(finished(layer)), down[1][:, columns])
        total += layer(x[:, columns].contiguous())[0].float()
    assert close(total - bias, x, down[1])


def test_merged_in_the_checkpoint(as_rank: Any) -> None:
    tensors, meant = gptq(192, K, 0)
    config = config_of(GPTQ, {"a.qkv_proj": tensors, "m.gate_up_proj": tensors})
    as_rank(1, 2)
    layer = QKVParallelLinear(K, 16, 8, 2, bias=False, quant_config=config, prefix="a.qkv_proj")
    load(layer, tensors)
    assert np.array_equal(held_weights(finished(layer)), meant[np.r_[64:128, 144:160, 176:192]])
    layer = MergedColumnParallelLinear(K, [96, 96], bias=False, quant_config=config, prefix="m.gate_up_proj")
    load(layer, tensors)
    assert np.array_equal(held_weights(finished(layer)), meant[np.r_[48:96, 144:192]])


def test_bits_and_orders_of_each_matrix() -> None:
    """Merged projections keep what each has of its own: GPTQ's rules and act-order."""
    fields = {**GPTQ, "desc_act": True, "dynamic": {r"+:.*v_proj": {"bits": 5}}}
    matrices = {"q": gptq(64, K, 0, act_order=True), "k": gptq(32, K, 1, act_order=True), "v": gptq(32, K, 2, bits=5)}
    config = config_of(fields, {f"a.{shard}_proj": tensors for shard, (tensors, _) in matrices.items()})
    layer = QKVParallelLinear(K, 16, 4, 2, bias=False, quant_config=config, prefix="a.qkv_proj")
    for shard, (tensors, _) in matrices.items():
        load(layer, tensors, shard)
    wanted = np.concatenate([meant for _, meant in matrices.values()])
    assert np.array_equal(held_weights(finished(layer)), wanted)
    assert len(layer.lowlp.shards) == 3
    x = torch.randn(2, K)
    assert close(layer(x)[0], x, wanted)


@pytest.mark.parametrize("ranks", [1, 2])
def test_embedding_and_head(ranks: int, as_rank: Any) -> None:
    """150 tokens are padded to 192, so that the second of two ranks has 54 rows."""
    table, meant = own(150, K, 0, "int8")
    config = config_of(OWN, {"model.embed_tokens": table, "lm_head": table})
    x, ids = torch.randn(3, K), torch.tensor([0, 95, 96, 149])
    found, logits = torch.zeros(4, K), []
    for rank in range(ranks):
        as_rank(rank, ranks)
        layer = VocabParallelEmbedding(150, K, quant_config=config, prefix="model.embed_tokens")
        load(layer, table)
        finished(layer)
        rows = slice(rank * 96, min(150, rank * 96 + 192 // ranks))
        found += layer._embed_local_shard(ids)
        head = ParallelLMHead(150, K, quant_config=config, prefix="lm_head")
        load(head, table)
        finished(head)
        y = head.quant_method.apply(head, x)
        assert y.shape[1] == head.num_embeddings_per_partition
        logits.append(y[:, : rows.stop - rows.start])
    assert torch.equal(found, torch.from_numpy(meant).half()[ids])
    assert close(torch.cat(logits, 1), x, meant)


def test_tied_head(as_rank: Any) -> None:
    """By the module of the embedding itself, as most of SGLang's models do it, and by `tie_weights`."""
    as_rank(0, 1)
    table, meant = own(100, K, 0, "int8")
    config = config_of(OWN, {"model.embed_tokens": table})
    embedding = VocabParallelEmbedding(100, K, quant_config=config, prefix="model.embed_tokens")
    head = ParallelLMHead(100, K, quant_config=config, prefix="lm_head").tie_weights(embedding)
    assert not list(head.parameters())
    load(embedding, table)
    finished(embedding), finished(head)
    x = torch.randn(3, K)
    for layer in (embedding, head):
        y = layer.quant_method.apply(layer, x)
        assert y.shape == (3, 128) and not y[:, 100:].any() and close(y[:, :100], x, meant)
    alone = ParallelLMHead(100, K, quant_config=config, prefix="lm_head")
    with pytest.raises(CheckpointError, match=r"lm_head: the checkpoint has no tensors for it, and the embedding"):
        finished(alone)


def test_replicated_and_plain_layers() -> None:
    tensors, meant = gptq(48, K, 0)
    config = config_of(GPTQ, {"a.b": tensors, "a.plain": {"weight": torch.zeros(48, K)}})
    layer = ReplicatedLinear(K, 48, bias=False, quant_config=config, prefix="a.b")
    load(layer, tensors)
    assert np.array_equal(held_weights(finished(layer)), meant)
    plain = ColumnParallelLinear(K, 48, bias=False, quant_config=config, prefix="a.plain")
    assert type(plain.quant_method) is UnquantizedLinearMethod


def test_names_of_the_model() -> None:
    """A mapper of names, merged layers that the model says, and tensors that Llama's loader renames."""
    tensors, meant = gptq(48, K, 0)
    mapping = {"model": {"both": ["one", "other"]}}
    config = config_of(GPTQ, {"old.one": tensors, "old.other": tensors}, packed_modules_mapping=mapping)
    config.apply_weight_name_mapper(WeightsMapper(orig_to_new_prefix={"old.": "new."}))
    layer = MergedColumnParallelLinear(K, [48, 48], bias=False, quant_config=config, prefix="new.both")
    load(layer, tensors, 0)
    load(layer, tensors, 1)
    assert np.array_equal(held_weights(finished(layer)), np.concatenate([meant, meant]))

    weight = torch.randn(32, K).to(torch.float8_e4m3fn)
    scale = torch.full((1, 1), 0.5)
    eight = {"weight": weight, "weight_scale_inv": scale}
    config = config_of({"quant_method": "fp8", "weight_block_size": [128, 128]}, {"a.b": eight})
    layer = ReplicatedLinear(K, 32, bias=False, quant_config=config, prefix="a.b")
    load(layer, {"weight": weight, "weight_scale": scale})
    assert np.array_equal(held_weights(finished(layer)), weight.float().numpy() / 2)
    assert not list(layer.parameters())


def test_layers_without_a_known_name() -> None:
    """A layer that SGLang merges without saying so must not be taken for one that is not quantised."""
    tensors, _ = gptq(48, K, 0)
    config = config_of(GPTQ, {"a.one": tensors, "a.other": tensors, "a.o_proj": tensors, "b.c": tensors})
    merged = MergedColumnParallelLinear(K, [48, 48], bias=False, quant_config=config, prefix="a.both")
    elsewhere = ReplicatedLinear(K, 48, bias=False, quant_config=config, prefix="router.gate")
    with pytest.raises(CheckpointError, match=r"router\.gate: .*; none of its names is that of a layer"):
        finished(elsewhere)
    # Asked for without a layer that is built, as SGLang does to choose a layout.
    assert not config.is_linear_unquantized("a.o_proj") and not config.served
    ReplicatedLinear(K, 48, bias=False, quant_config=config, prefix="a.o_proj")
    with pytest.raises(CheckpointError, match=r"a\.both: .*; a\.one, a\.other of the checkpoint are quantised"):
        finished(merged)
    finished(elsewhere)


def column(config: Any, n: int = 64, **more: Any) -> ColumnParallelLinear:
    return ColumnParallelLinear(K, n, bias=False, quant_config=config, prefix="a.b", **more)


def test_mistakes() -> None:
    tensors, _ = gptq(64, K, 0)
    config = config_of(GPTQ, {"a.b": tensors})
    with pytest.raises(CheckpointError, match=r"a\.b: none of its tensors was loaded: a\.b\.qweight"):
        finished(column(config))
    layer = column(config)
    load(layer, {name: tensor for name, tensor in tensors.items() if name != "scales"})
    with pytest.raises(CheckpointError, match=r"a\.b: SGLang has not loaded a\.b\.scales"):
        finished(layer)
    layer = column(config, n=80)
    load(layer, tensors)
    with pytest.raises(CheckpointError, match=r"a\.b: a\.b\.weight is \[64, 128\], .*\[80, 128\] that rank 0 of 1"):
        finished(layer)
    layer = column(config, n=48)
    load(layer, tensors)
    with pytest.raises(CheckpointError, match=r"a\.b: a\.b\.weight is \[64, 128\], of which the layer has 48 rows"):
        finished(layer)
    # SGLang pads what is too short in a merged layer.
    layer = MergedColumnParallelLinear(K, [64, 80], bias=False, quant_config=config, prefix="a.b")
    load(layer, tensors, 0)
    load(layer, tensors, 1)
    with pytest.raises(CheckpointError, match=r"a\.b: 16 of the 144 rows that this rank has of it are beyond the end"):
        finished(layer)
    with pytest.raises(CheckpointError, match=r"a\.b: activations must be float16 or bfloat16, .*give SGLang --dtype"):
        column(config, params_dtype=torch.float32)
    with pytest.raises(CheckpointError, match=r"'bitsandbytes' is not served by lowlp, .*lowlp convert"):
        config_of({"quant_method": "bitsandbytes"}, {})
    half = {"m.gate_proj": tensors, "m.up_proj": {"weight": torch.zeros(64, K)}}
    with pytest.raises(CheckpointError, match=r"m\.gate_proj is quantised and m\.up_proj is not"):
        MergedColumnParallelLinear(K, [64, 64], quant_config=config_of(GPTQ, half), prefix="m.gate_up_proj")
    config.names = None
    with pytest.raises(CheckpointError, match=r"a\.b: the names of the checkpoint's tensors were not read"):
        column(config)


def test_what_ranks_cannot_divide(as_rank: Any) -> None:
    as_rank(0, 2)
    tensors, _ = gptq(32, K, 0, act_order=True)
    layer = RowParallelLinear(K, 32, bias=False, quant_config=config_of(GPTQ, {"a.b": tensors}), prefix="a.b")
    load(layer, tensors)
    with pytest.raises(CheckpointError, match=r"a\.b: cannot be divided .*groups of a permutation \(act-order\)"):
        finished(layer)
    tensors, _ = gptq(32, 96, 0)
    layer = RowParallelLinear(96, 32, bias=False, quant_config=config_of(GPTQ, {"a.b": tensors}), prefix="a.b")
    load(layer, tensors)
    with pytest.raises(CheckpointError, match=rf"a\.b: cannot be divided .* cannot be cut at 48, .* of {GROUP};"):
        finished(layer)


def test_compiled_whole() -> None:
    tensors, _ = own(64, K, 0)
    layer = ColumnParallelLinear(K, 64, bias=True, quant_config=config_of(OWN, {"a.b": tensors}), prefix="a.b")
    load(layer, tensors)
    layer.bias.data.normal_()
    finished(layer)
    x = torch.randn(3, K)
    method = layer.quant_method
    compiled = torch.compile(lambda x: method.apply(layer, x, layer.bias) * 2, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), layer(x)[0] * 2)
    assert isinstance(layer.lowlp, lowlp.torch.Linear)
