"""Modules of `lowlp.torch` on a GPU: results, CUDA graphs, `torch.compile`, gradients, embeddings."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpRuntimeError, LowlpValueError

torch: Any = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

lt: Any = lowlp.torch
N, K = 192, 256


def a_model(dtype: Any) -> Any:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(96, K), torch.nn.Linear(K, N), torch.nn.Linear(N, 64, bias=False))
    model = model.to(dtype).cuda()
    return lt.quantize_(model, "int4", group_size=64, rules={"0": "int8", "2": "nf4"}, progress=False)


def wanted_of(model: Any, ids: Any) -> Any:
    x = model[0].dequantize().double()[ids]
    x = x @ model[1].dequantize().double().T + model[1].bias.double()
    return x @ model[2].dequantize().double().T


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_model_against_float64(dtype: Any) -> None:
    model, ids = a_model(dtype), torch.randint(0, 96, (3, 5), device="cuda")
    wanted = wanted_of(model, ids)
    for _ in range(2):
        y = model(ids)
        assert y.dtype == dtype and y.shape == (3, 5, 64)
        assert (y.double() - wanted).norm() <= (4e-3 if dtype == torch.float16 else 2.5e-2) * wanted.norm()
    # Words are those of the buffer, not another copy.
    assert model[1].quantized.words_on(ids.device, "f16" if dtype == torch.float16 else "bf16") is not None
    moved = copy.deepcopy(model).cpu()
    assert moved[1].quantized == model[1].quantized


def test_graphs_after_warm_up() -> None:
    model, ids = a_model(torch.float16), torch.randint(0, 96, (2, 4), device="cuda")
    with pytest.raises(LowlpRuntimeError, match="capture of a CUDA graph"), torch.no_grad():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(ids)
    torch.cuda.synchronize()
    lt.warm_up(model, rows=8, progress=False)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        y = model(ids)
    for seed in range(2):
        ids.copy_(torch.randint(0, 96, (2, 4), generator=torch.Generator().manual_seed(seed)))
        graph.replay()
        torch.cuda.synchronize()
        with torch.no_grad():
            assert torch.equal(y, model(ids))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled(mode: str) -> None:
    model = a_model(torch.float16)
    compiled = torch.compile(model, fullgraph=True, dynamic=mode == "default", mode=mode)
    with torch.no_grad():
        for rows in (2, 3, 3, 3):
            ids = torch.randint(0, 96, (rows, 4), device="cuda")
            assert torch.allclose(compiled(ids).clone(), model(ids), rtol=2e-3, atol=2e-3)


def test_other_devices_are_refused() -> None:
    model = a_model(torch.float16)
    with pytest.raises(LowlpValueError, match=r"ids: is on cpu, and the weights are on cuda:0; move one of them"):
        model(torch.zeros(2, dtype=torch.int64))
    with pytest.raises(LowlpValueError, match=r"x: is on cuda:0, and the weights are on cpu"):
        model[1].cpu()(torch.zeros(2, K, device="cuda").half())


def test_gradients() -> None:
    module = a_model(torch.float16)[1]
    x = torch.randn(5, K, device="cuda", dtype=torch.float16, requires_grad=True)
    weight = torch.randn(5, N, device="cuda", dtype=torch.float16)
    (module(x) * weight).sum().backward()
    wanted = weight.double() @ module.dequantize().double()
    assert (x.grad.double() - wanted).norm() <= 1e-3 * wanted.norm()


@pytest.mark.parametrize(
    "options", [{"dtype": "int3"}, {"dtype": "nf4"}, {"vq": lowlp.vq(8, 8, 2), "group_size": None}]
)
def test_rows_bit_for_bit(options: dict[str, Any]) -> None:
    w = np.random.default_rng(0).normal(size=(300, 1536)).astype(np.float32)
    qw = lowlp.quantize(w, **{"group_size": 64, **options})
    ids = torch.randint(0, 300, (7, 3), device="cuda")
    wanted = qw.dequantize()[ids.cpu().numpy()]
    assert np.array_equal(lowlp.embedding(ids, qw, out_dtype="f32").cpu().numpy(), wanted)
    assert np.array_equal(lowlp.embedding(ids.int(), qw).cpu().numpy(), wanted.astype(np.float16))
    assert lowlp.embedding(torch.tensor([0, -1, 300], device="cuda"), qw)[1:].isnan().all()


def test_a_second_device_state_and_casts() -> None:
    model = a_model(torch.float16)
    ids = torch.randint(0, 96, (4,), device="cuda")
    before = model(ids)
    other = a_model(torch.float16)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(ids), before)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state["2.scales"] *= 2
    # A state that is loaded counts at once, in calls that were made ready before too.
    other.load_state_dict(state)
    assert torch.allclose(other(ids).float(), 2 * before.float(), rtol=1e-2, atol=1e-2)


def test_quantised_activations() -> None:
    torch.manual_seed(0)
    linear = torch.nn.Linear(K, N).half().cuda()
    module = lt.Linear.from_linear(linear, "int4", group_size=64, activation="int8")
    x = torch.randn(2, 3, K, device="cuda").half()
    meant = lowlp.quantize_activations(x, "int8").dequantize().double()
    wanted = meant @ module.dequantize().double().T + module.bias.double()
    y = module(x)
    assert y.dtype == torch.float16 and (y.double() - wanted).norm() <= 2e-3 * wanted.norm()
    lt.warm_up(module, rows=6, progress=False)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        captured = module(x)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(captured, y)
