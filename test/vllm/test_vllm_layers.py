"""vLLM's own layers with lowlp's weights: what each rank has of them, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from encoded import GPTQ, GROUP, OWN, finished, gptq, held_weights, hqq, load, own
from served import config_of
from vllm.model_executor.layers.linear import (
    ColumnParallelLinear,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    ReplicatedLinear,
    RowParallelLinear,
    UnquantizedLinearMethod,
)
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding

import lowlp
from lowlp.errors import CheckpointError

K = 128
FORMATS = {"gptq": (GPTQ, gptq), "hqq": ({"quant_method": "hqq"}, hqq), "lowlp": (OWN, own)}
QKV = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}
ATTENTION = {"q": 128, "k": 32, "v": 32}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_projections_by_ranks(kind: str, ranks: int, as_rank: Any) -> None:
    """Query heads are divided among ranks; of the two heads of keys, four ranks have one each, twice."""
    fields, encode = FORMATS[kind]
    matrices = {shard: encode(n, K, seed) for seed, (shard, n) in enumerate(ATTENTION.items())}
    config = config_of(fields, {f"a.{shard}_proj": tensors for shard, (tensors, _) in matrices.items()}, QKV)
    for rank in range(ranks):
        as_rank(rank, ranks)
        layer = QKVParallelLinear(K, 16, 8, 2, bias=False, quant_config=config, prefix="a.qkv_proj")
        for shard, (tensors, _) in matrices.items():
            load(layer, tensors, shard)
        finished(layer)
        heads = {"q": slice(rank * 128 // ranks, (rank + 1) * 128 // ranks)}
        size = max(16, 32 // ranks)
        first = rank * 2 // ranks if ranks > 2 else rank
        heads |= {shard: slice(first * size, (first + 1) * size) for shard in "kv"}
        wanted = np.concatenate([matrices[shard][1][rows] for shard, rows in heads.items()])
        assert np.array_equal(held_weights(layer), wanted)
        x = torch.randn(3, K)
        y, _ = layer(x)
        assert torch.allclose(y.float(), x.float() @ torch.from_numpy(wanted).t(), atol=2e-2)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("ranks", [1, 2])
def test_rows_and_merged_columns_by_ranks(kind: str, ranks: int, as_rank: Any) -> None:
    """72 rows are no whole units; down's columns are those of the rank, and the first one alone adds its bias."""
    fields, encode = FORMATS[kind]
    merged = {"gate_up_proj": ["gate_proj", "up_proj"]}
    gate, up, down = encode(72, K, 0), encode(72, K, 1), encode(40, K, 2)
    modules = {"m.gate_proj": gate[0], "m.up_proj": up[0], "m.down_proj": down[0]}
    config = config_of(fields, modules, merged)
    x, total = torch.randn(5, K), torch.zeros(5, 40)
    bias = torch.randn(40)
    for rank in range(ranks):
        as_rank(rank, ranks)
        layer = MergedColumnParallelLinear(K, [72, 72], bias=True, quant_config=config, prefix="m.gate_up_proj")
        load(layer, gate[0], 0)
        load(layer, up[0], 1)
        layer.bias.data.normal_()
        rows = slice(rank * 72 // ranks, (rank + 1) * 72 // ranks)
        wanted = np.concatenate([gate[1][rows], up[1][rows]])
        assert np.array_equal(held_weights(finished(layer)), wanted)
        y, _ = layer(x)
        assert torch.allclose(y.float(), x.float() @ torch.from_numpy(wanted).t() + layer.bias.float(), atol=2e-2)

        layer = RowParallelLinear(K, 40, bias=False, quant_config=config, prefix="m.down_proj")
        load(layer, down[0])
        columns = slice(rank * K // ranks, (rank + 1) * K // ranks)
        assert np.array_equal(held_weights(finished(layer)), down[1][:, columns])
        total += layer.quant_method.apply(layer, x[:, columns], bias if rank == 0 else None).float()
    wanted = x.float() @ torch.from_numpy(down[1]).t() + bias.float()
    assert torch.allclose(total.float(), wanted, atol=2e-2)


def test_bits_groups_and_orders_of_each_matrix() -> None:
    """Merged projections keep what each has of its own: GPTQ's rules, act-order, codecs."""
    fields = {**GPTQ, "desc_act": True, "dynamic": {r"+:.*v_proj": {"bits": 5}}}
    matrices = {"q": gptq(64, K, 0, act_order=True), "k": gptq(32, K, 1, act_order=True), "v": gptq(32, K, 2, bits=5)}
    config = config_of(fields, {f"a.{shard}_proj": tensors for shard, (tensors, _) in matrices.items()}, QKV)
    layer = QKVParallelLinear(K, 16, 4, 2, bias=True, quant_config=config, prefix="a.qkv_proj")
    for shard, (tensors, _) in matrices.items():
        load(layer, tensors, shard)
    layer.bias.data.normal_()
    wanted = np.concatenate([meant for _, meant in matrices.values()])
    assert np.array_equal(held_weights(finished(layer)), wanted)
    assert len(layer.lowlp.shards) == 3
    x = torch.randn(2, K)
    y, _ = layer(x)
    assert torch.allclose(y.float(), x.float() @ torch.from_numpy(wanted).t() + layer.bias.float(), atol=2e-2)


def test_merged_in_the_checkpoint(as_rank: Any) -> None:
    tensors, meant = gptq(192, K, 0)
    config = config_of(GPTQ, {"a.qkv_proj": tensors}, QKV)
    as_rank(1, 2)
    layer = QKVParallelLinear(K, 16, 8, 2, bias=False, quant_config=config, prefix="a.qkv_proj")
    load(layer, tensors)
    rows = np.r_[64:128, 144:160, 176:192]
    assert np.array_equal(held_weights(finished(layer)), meant[rows])


@pytest.mark.parametrize("ranks", [1, 2])
def test_embedding_and_head(ranks: int, as_rank: Any) -> None:
    """150 tokens are padded to 192, so that the second of two ranks has 54 rows."""
    table, meant = own(150, K, 0, "int8")
    config = config_of(OWN, {"model.embed_tokens": table, "lm_head": table})
    x = torch.randn(3, K)
    found, logits = torch.zeros(4, K), []
    ids = torch.tensor([0, 95, 96, 149])
    for rank in range(ranks):
        as_rank(rank, ranks)
        layer = VocabParallelEmbedding(150, K, quant_config=config, prefix="")
        load(layer, table)
        finished(layer)
        rows = slice(rank * 96, min(150, rank * 96 + 192 // ranks))
        here = (ids >= rows.start) & (ids < rows.stop)
        some = layer.quant_method.embedding(layer, torch.where(here, ids - rows.start, 0))
        found += some.masked_fill(~here[:, None], 0)
        head = ParallelLMHead(150, K, quant_config=config, prefix="lm_head")
        load(head, table)
        finished(head)
        logits.append(head.quant_method.apply(head, x)[:, : rows.stop - rows.start])
        assert head.quant_method.apply(head, x).shape[1] == head.num_embeddings_per_partition
    assert torch.equal(found, torch.from_numpy(meant).half()[ids])
    assert torch.allclose(torch.cat(logits, 1).float(), x.float() @ torch.from_numpy(meant).t(), atol=2e-2)


def test_tied_head() -> None:
    table, meant = own(100, K, 0, "int8")
    config = config_of(OWN, {"model.embed_tokens": table})
    embedding = VocabParallelEmbedding(100, K, quant_config=config)
    head = ParallelLMHead(100, K, quant_config=config, prefix="lm_head").tie_weights(embedding)
    assert not list(head.parameters())
    load(embedding, table)
    finished(embedding), finished(head)
    x = torch.randn(3, K)
    y = head.quant_method.apply(head, x)
    assert y.shape == (3, 128) and not y[:, 100:].any()
    assert torch.allclose(y[:, :100].float(), x.float() @ torch.from_numpy(meant).t(), atol=2e-2)


def test_replicated_and_plain_layers() -> None:
    tensors, meant = gptq(48, K, 0)
    config = config_of(GPTQ, {"a.b": tensors, "a.plain": {"weight": torch.zeros(48, K)}})
    layer = ReplicatedLinear(K, 48, bias=False, quant_config=config, prefix="a.b")
    load(layer, tensors)
    assert np.array_equal(held_weights(finished(layer)), meant)
    plain = ColumnParallelLinear(K, 48, bias=False, quant_config=config, prefix="a.plain")
    assert isinstance(plain.quant_method, UnquantizedLinearMethod)


def test_compiled_whole() -> None:
    """vLLM compiles models as one graph."""
    tensors, _ = own(64, K, 0)
    config = config_of(OWN, {"a.b": tensors})
    layer = ColumnParallelLinear(K, 64, bias=True, quant_config=config, prefix="a.b")
    load(layer, tensors)
    layer.bias.data.normal_()
    finished(layer)
    x = torch.randn(3, K)
    compiled = torch.compile(
        lambda x: layer.quant_method.apply(layer, x, layer.bias) * 2, fullgraph=True, backend="eager"
    )
    assert torch.equal(compiled(x), layer(x)[0] * 2)


def column(config: Any, k: int = K, n: int = 64) -> ColumnParallelLinear:
    return ColumnParallelLinear(k, n, bias=False, quant_config=config, prefix="a.b")


def test_mistakes(as_rank: Any) -> None:
    tensors, _ = gptq(64, K, 0)
    config = config_of(GPTQ, {"a.b": tensors})
    with pytest.raises(CheckpointError, match=r"a\.b: none of its tensors was loaded: a\.b\.qweight"):
        finished(column(config))
    layer = column(config)
    load(layer, {name: tensor for name, tensor in tensors.items() if name != "scales"})
    with pytest.raises(CheckpointError, match=r"a\.b: vLLM has not loaded a\.b\.scales"):
        finished(layer)
    layer = column(config, n=80)
    load(layer, tensors)
    with pytest.raises(CheckpointError, match=r"a\.b: a\.b\.weight is \[64, 128\], .*\[80, 128\] that rank 0 of 1"):
        finished(layer)
    merged = config_of(GPTQ, {"m.gate_proj": tensors, "m.up_proj": tensors}, {"gate_up": ["gate_proj", "up_proj"]})
    layer = MergedColumnParallelLinear(K, [64, 64], bias=False, quant_config=merged, prefix="m.gate_up")
    load(layer, tensors, 0)
    with pytest.raises(CheckpointError, match=r"m\.gate_up: 64 of its 128 rows were not loaded, from row 64 on"):
        finished(layer)
    half = {"m.gate_proj": tensors, "m.up_proj": {"weight": torch.zeros(64, K)}}
    with pytest.raises(CheckpointError, match=r"m\.gate_proj is quantised and m\.up_proj is not"):
        MergedColumnParallelLinear(
            K, [64, 64], quant_config=config_of(GPTQ, half, {"gate_up": ["gate_proj", "up_proj"]}), prefix="m.gate_up"
        )
    with pytest.raises(CheckpointError, match=r"a\.b: activations must be float16 or bfloat16, got torch\.float32"):
        ColumnParallelLinear(K, 64, quant_config=config, prefix="a.b", params_dtype=torch.float32)
    with pytest.raises(CheckpointError, match=r"'bitsandbytes' is not served by lowlp, .*lowlp convert"):
        config_of({"quant_method": "bitsandbytes"}, {})


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
    with pytest.raises(
        CheckpointError, match=rf"a\.b: cannot be divided .*columns: .* cannot be cut at 48, .* of {GROUP};"
    ):
        finished(layer)
    tensors, meant = own(32, 96, 0, group_size=None)  # scales of whole rows have no groups to cut
    layer = RowParallelLinear(96, 32, bias=False, quant_config=config_of(OWN, {"a.b": tensors}), prefix="a.b")
    load(layer, tensors)
    assert np.array_equal(held_weights(finished(layer)), meant[:, :48])


def test_x_is_rounded_as_the_checkpoint_says() -> None:
    rng = np.random.default_rng(0)
    weight = torch.from_numpy(rng.integers(-127, 128, (64, K)).astype(np.int8))
    tensors = {"weight": weight, "weight_scale": torch.full((64, 1), 0.01, dtype=torch.float32)}
    eight = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}
    tokens = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
    group = {"targets": ["Linear"], "weights": eight, "input_activations": tokens}
    fields = {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": group}}
    layer = column(config_of(fields, {"a.b": tensors}))
    load(layer, tensors)
    finished(layer)
    assert layer.lowlp.activation == "int8"
    x = torch.randn(3, K)
    seen = torch.from_numpy(np.array(lowlp.quantize_activations(x, "int8").dequantize()))
    assert torch.allclose(layer(x)[0].float(), seen.float() @ weight.float().t() * 0.01, atol=5e-2)
    # A checkpoint of lowlp has it in its config.
    tensors, meant = own(64, K, 0, "int8")
    fields = {**OWN, "modules": {"a.b": {"activation": "int8"}}}
    layer = column(config_of(fields, {"a.b": tensors}))
    load(layer, tensors)
    assert finished(layer).lowlp.activation == "int8"
    assert torch.allclose(layer(x)[0].float(), seen.float() @ torch.from_numpy(meant).t(), atol=5e-2)
