"""The methods of `lowlp.vllm` on a GPU, with a minimum in place of vLLM: what was loaded is packed, warmed up for the
sizes that graphs are captured for, and captured without a call before."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp

torch: Any = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if importlib.util.find_spec("vllm") is not None and "minimal_vllm" not in sys.modules:
    pytest.skip("vLLM is installed; its own classes are tested in test/vllm", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import minimal_vllm  # noqa: E402
from checkpoint_files import gptq_tensors  # noqa: E402

minimal_vllm.install()

from lowlp.checkpoints.settings import Settings  # noqa: E402
from lowlp.serving.names import Source  # noqa: E402
from lowlp.vllm.embedding import LowlpEmbeddingMethod  # noqa: E402
from lowlp.vllm.experts import LowlpMoEMethod  # noqa: E402
from lowlp.vllm.linear import LowlpLinearMethod  # noqa: E402

GROUP, K = 64, 256
GPTQ = Settings({"quant_method": "gptq", "bits": 3, "group_size": GROUP, "checkpoint_format": "gptq_v2"})
LIMITS = {torch.float16: 2e-3, torch.bfloat16: 1.2e-2}


def gptq(n: int, k: int, seed: int, act_order: bool = False, group: int = GROUP) -> tuple[dict[str, Any], Any]:
    """The tensors of a layer of 3 bits, and what they mean, float64 [N, K]."""
    rng = np.random.default_rng(seed)
    codes, zeros = rng.integers(0, 8, (n, k)), rng.integers(0, 8, (n, k // group))
    scales, g_idx = rng.uniform(0.005, 0.01, zeros.shape).astype(np.float16), np.arange(k) // group
    if act_order:
        g_idx = rng.permutation(g_idx)
    tensors = gptq_tensors(codes, zeros, scales, 3, 2, g_idx)
    meant = (codes - zeros[:, g_idx]) * scales[:, g_idx].astype(np.float64)
    named = {name.removeprefix("layer."): torch.from_numpy(np.array(array)) for name, array in tensors.items()}
    return named, torch.from_numpy(meant).cuda()


def sources(**matrices: dict[str, Any]) -> list[Source]:
    return [Source(name.replace("__", "."), dict.fromkeys(tensors, "I32")) for name, tensors in matrices.items()]


def captured(call: Any, *inputs: Any) -> Any:
    """What a graph of a call gives on its second replay, with other inputs than at the first."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = call(*inputs)
    for _ in range(2):
        inputs[0].normal_()
        y.fill_(float("nan"))
        graph.replay()
    torch.cuda.synchronize()
    return y


def close(y: Any, wanted: Any) -> bool:
    return bool((y.double() - wanted).norm() <= LIMITS[y.dtype] * wanted.norm())


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("act_order", [False, True])
@torch.no_grad()
def test_merged_projections(act_order: bool, dtype: Any) -> None:
    sizes = [128, 64, 40]
    matrices = [gptq(n, K, seed, act_order) for seed, n in enumerate(sizes)]
    named = sources(**{f"a__{name}_proj": tensors for name, (tensors, _) in zip("qkv", matrices, strict=True)})
    with torch.device("cuda"):
        layer = minimal_vllm.Layer(K, sizes, LowlpLinearMethod("a.qkv_proj", named, "gptq", GPTQ), dtype)
    for shard, (tensors, _) in enumerate(matrices):
        for part, tensor in tensors.items():
            parameter = getattr(layer, part)
            parameter.weight_loader(parameter, tensor, shard)
    layer.bias = bias = torch.randn(sum(sizes), dtype=dtype, device="cuda")
    layer.quant_method.process_weights_after_loading(layer)
    meant = torch.cat([found for _, found in matrices])
    for rows in (*minimal_vllm.ROWS, minimal_vllm.MOST_ROWS):
        x = torch.randn(rows, K, dtype=dtype, device="cuda")
        y = captured(lambda x: layer(x, bias), x)
        assert close(y, x.double() @ meant.T + bias.double())
        assert torch.equal(y, layer(x, bias))
    compiled = torch.compile(lambda x: layer(x, bias) * 2, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), layer(x, bias) * 2)


@pytest.mark.parametrize("dtype", LIMITS)
@torch.no_grad()
def test_embedding_and_head(dtype: Any) -> None:
    qw = lowlp.quantize(np.random.default_rng(0).normal(0, 0.02, (300, K)).astype(np.float32), "int8", group_size=GROUP)
    arrays, header = qw.to_arrays()
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    tensors["header"] = torch.frombuffer(bytearray(header.encode()), dtype=torch.uint8)
    named = sources(lm_head=tensors)
    with torch.device("cuda"):
        settings = Settings({"quant_method": "lowlp"})
        layer = minimal_vllm.Layer(K, [300], LowlpEmbeddingMethod("lm_head", named, "lowlp", settings), dtype)
    for part, tensor in tensors.items():
        parameter = getattr(layer, part)
        parameter.weight_loader(parameter, tensor)
    layer.quant_method.process_weights_after_loading(layer)
    meant = torch.from_numpy(qw.dequantize()).double().cuda()
    x = torch.randn(8, K, dtype=dtype, device="cuda")
    assert close(captured(layer, x), x.double() @ meant.T)
    ids = torch.tensor([0, 299, 17, 17, 1, 2, 3, 4], device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rows = layer.quant_method.embedding(layer, ids)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(rows, meant[ids].to(dtype))


@pytest.mark.parametrize("dtype", LIMITS)
@torch.no_grad()
def test_experts(dtype: Any) -> None:
    experts, inner, top = 6, 96, 2
    shapes = {"gate_proj": (inner, K), "up_proj": (inner, K), "down_proj": (K, inner)}
    shards = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
    settings = Settings({**GPTQ.fields, "group_size": 32})
    made = {
        (expert, name): gptq(*shape, 10 * expert + seed, group=32)
        for expert in range(experts)
        for seed, (name, shape) in enumerate(shapes.items())
    }
    named = [
        Source(f"m.experts.{expert}.{name}", dict.fromkeys(tensors, "I32"))
        for (expert, name), (tensors, _) in made.items()
    ]
    with torch.device("cuda"):
        layer = minimal_vllm.RoutedExperts(
            experts, K, inner, top, dtype, lambda layer: LowlpMoEMethod("m.experts", named, "gptq", settings, layer)
        )
    for (expert, name), (tensors, _) in made.items():
        for part, tensor in tensors.items():
            group = "w2" if name == "down_proj" else "w13"
            parameter = getattr(layer, f"{group}_{part}")
            assert parameter.weight_loader(parameter, tensor, f"{group}_{part}", shards[name], expert, True)
    layer.quant_method.process_weights_after_loading(layer)
    for rows in minimal_vllm.ROWS:
        x = torch.randn(rows, K, dtype=dtype, device="cuda")
        weights, ids = torch.rand(rows, experts, device="cuda").topk(top)
        y = captured(lambda x, layer=layer, weights=weights, ids=ids: layer(x, weights, ids.int()), x)
        wanted = torch.zeros(rows, K, dtype=torch.float64, device="cuda")
        for row in range(rows):
            for weight, expert in zip(weights[row].tolist(), ids[row].tolist(), strict=True):
                gate, up, down = (made[expert, name][1] for name in shapes)
                hidden = torch.nn.functional.silu(gate @ x[row].double()) * (up @ x[row].double())
                wanted[row] += weight * (down @ hidden)
        assert (y.double() - wanted).norm() <= 3 * LIMITS[dtype] * wanted.norm()
        assert torch.equal(y, layer(x, weights, ids.int()))
