"""The operators of `lowlp.torch`: `opcheck`, compiled and exported modules, gradients, autocast."""

from __future__ import annotations

import time
import warnings
from typing import Any

import pytest

import lowlp

torch: Any = pytest.importorskip("torch")
lt: Any = lowlp.torch

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.CpuProductWarning")
K, N = 64, 48


def a_module(**options: Any) -> Any:
    torch.manual_seed(0)
    return lt.Linear.from_linear(torch.nn.Linear(K, N), "int3", group_size=32, **options)


def test_opcheck() -> None:
    module = a_module()
    weights, header = module._tensors(), module._stored_header
    x = torch.randn(2, 3, K, requires_grad=True)
    torch.library.opcheck(torch.ops.lowlp.linear.default, (x, weights, module.bias, header, "", "f32", "", ""))
    gradient = (torch.randn(3, N), weights, header, torch.float16)
    # Without gradients of their own they are traced as the first is.
    some = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.lowlp.linear_input_gradient.default, gradient, test_utils=some)
    ids = torch.tensor([[0, 47], [5, 5]])
    torch.library.opcheck(torch.ops.lowlp.embedding.default, (ids, weights, header, torch.bfloat16), test_utils=some)


@pytest.mark.parametrize("epilogue", [None, "silu_mul"])
def test_a_compiled_module_is_one_graph_for_every_number_of_rows(epilogue: str | None) -> None:
    module = torch.nn.Sequential(a_module(epilogue=epilogue), torch.nn.ReLU())
    module[0].bias.requires_grad_()
    graphs = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=backend)
    with torch.no_grad():
        for rows in (2, 5, 9):
            x = torch.randn(rows, K)
            assert torch.equal(compiled(x), module(x))
    assert len(graphs) == 1
    x, other = (torch.ones(3, K, requires_grad=True) for _ in range(2))
    torch.compile(module, fullgraph=True, backend="aot_eager")(x).square().sum().backward()
    of_bias, module[0].bias.grad = module[0].bias.grad, None
    module(other).square().sum().backward()
    assert torch.allclose(x.grad, other.grad) and torch.allclose(of_bias, module[0].bias.grad)


def test_an_exported_module() -> None:
    module, x = a_module(), torch.randn(3, K)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("rows", min=2)},))
    assert torch.equal(program.module()(x[:2]), module(x[:2]))


def test_the_gradient_is_the_transposed_product() -> None:
    module, x = a_module(), torch.randn(2, 5, K, dtype=torch.float64).float().requires_grad_()
    weight = torch.randn(2, 5, N)
    module.bias.requires_grad_()
    (module(x) * weight).sum().backward()
    assert torch.allclose(x.grad.double(), weight.double() @ module.dequantize().double(), rtol=1e-5, atol=1e-6)
    assert torch.allclose(module.bias.grad, weight.sum((0, 1)), rtol=1e-5)
    module.bias.grad = None
    module(x[0, 0]).sum().backward()
    assert torch.equal(module.bias.grad, torch.ones(N))


def test_a_checkpointed_module_computes_again_for_its_gradient() -> None:
    checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
    module, x = a_module(), torch.randn(3, K, requires_grad=True)
    checkpoint(module, x, use_reentrant=False).sum().backward()
    assert torch.allclose(x.grad, module.dequantize().sum(0).expand(3, K), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, K), (2, 3, K)])
def test_results_may_be_changed_in_place(shape: tuple[int, ...]) -> None:
    """By an activation function with inplace=True, or a residual, with a gradient too."""
    module, x = a_module(), torch.randn(*shape, requires_grad=True)
    torch.relu_(module(x)).sum().backward()
    wanted = (module(x) > 0).float() @ module.dequantize()
    assert torch.allclose(x.grad, wanted, rtol=1e-4, atol=1e-5)


def test_slabs_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from lowlp.torch import host_products

    monkeypatch.setattr(host_products, "_SLAB_ELEMENTS", 16 * K)
    monkeypatch.setattr(host_products, "_MAX_WORKERS", 2)
    module, x = a_module(), torch.randn(4, K, requires_grad=True)
    assert len(module.quantized.form.bands(16 * K)) == 3
    y = module(x)
    y.square().sum().backward()
    w = module.dequantize()
    assert torch.allclose(y, x @ w.T + module.bias, rtol=1e-5, atol=1e-6)
    assert torch.allclose(x.grad, 2 * y @ w, rtol=1e-5, atol=1e-5)


def test_transforms_and_modes_see_the_operator() -> None:
    module, x = a_module(), torch.randn(2, K)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(x).dtype == torch.bfloat16
    traced = torch.fx.experimental.proxy_tensor.make_fx(module)(x)
    assert "lowlp.linear" in traced.code
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert tuple(module(mode.from_tensor(x)).shape) == (2, N)


def test_what_a_cpu_computes_is_said_once() -> None:
    from lowlp.torch import host_products

    host_products._say_once.cache_clear()
    with pytest.warns(lowlp.errors.CpuProductWarning, match="slabs of dequantised weights"):
        a_module()(torch.zeros(1, K))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a_module()(torch.zeros(1, K))


def test_a_module_adds_less_than_ten_microseconds_to_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many calls in turns with others of a module, whose time says how busy the machine is."""
    from lowlp.torch import products

    y = torch.empty(1, N)
    monkeypatch.setattr(products, "product_with_slabs", lambda *_: y)
    module, x = a_module(), torch.zeros(1, K)
    empty = torch.nn.Identity()

    def seconds(call: Any) -> float:
        start = time.perf_counter()
        for _ in range(300):
            call(x)
        return (time.perf_counter() - start) / 300

    with torch.inference_mode():
        pairs = [(seconds(module), seconds(empty)) for _ in range(15)]
    ours, others = (min(times) for times in zip(*pairs, strict=True))
    # 1 us for a module that does nothing, on a machine of its own.
    assert ours < 10e-6 * max(1.0, others / 1e-6)


@pytest.mark.parametrize("how", ["jvp", "dual level", "bias"])
def test_tangents_are_refused(how: str) -> None:
    module, x = a_module(), torch.randn(3, K)
    with pytest.raises(lowlp.errors.LowlpRuntimeError, match=r"(x|bias): has a tangent .*backward\(\)"):
        if how == "jvp":
            torch.func.jvp(module, (x,), (torch.ones_like(x),))
        with torch.autograd.forward_ad.dual_level():
            if how == "bias":
                module._parameters["bias"] = torch.autograd.forward_ad.make_dual(module.bias.detach(), torch.ones(N))
                module(x)
            module(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)))
