"""`lowlp.linear` beside PyTorch: `torch.compile`, gradients, types of the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpRuntimeError, LowlpTypeError

torch: Any = pytest.importorskip("torch")


def test_a_compiled_function_breaks_its_graph_at_linear() -> None:
    # Of a type that no other test uses, so that the call under the compiler is the first one.
    qw = lowlp.quantize(np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32), "f7e2m4", group_size=64)
    graphs = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def function(x: Any) -> Any:
        return lowlp.linear(x * 2, qw) + 1

    x = torch.randn(3, 64).half()
    y = torch.compile(function, backend=backend)(x)
    assert torch.equal(y, function(x)) and len(graphs) == 2


@pytest.mark.parametrize("name", ["x", "bias", "residual"])
def test_gradients_are_refused(name: str) -> None:
    qw = lowlp.quantize(np.eye(16, 32, dtype=np.float32), "int4", group_size=32)
    parts = {"x": torch.ones(1, 32).half(), "bias": torch.ones(16), "residual": torch.ones(1, 16).half()}
    parts[name].requires_grad_()
    with pytest.raises(LowlpRuntimeError, match=rf"{name}: requires a gradient.* torch.no_grad.* {name}.detach"):
        lowlp.linear(parts["x"], qw, bias=parts["bias"], residual=parts["residual"])
    with torch.no_grad():
        y = lowlp.linear(parts["x"], qw, bias=parts["bias"], residual=parts["residual"])
    assert not y.requires_grad


def test_types_of_libraries_name_types() -> None:
    matrix = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    for scale, wanted in ((torch.float16, "f16"), (np.float32, "f32"), (np.dtype("float16"), "f16")):
        assert lowlp.quantize(matrix, "int4", group_size=64, scale_dtype=scale).codec.scale == wanted
    assert lowlp.quantize(matrix, torch.float8_e5m2, group_size=64).dtype == lowlp.dtype("f8e5m2")
    assert lowlp.quantize(matrix, "int4", 64, scale_dtype=torch.float8_e8m0fnu).codec.scale == "e8m0"
    qw = lowlp.quantize(matrix, "int4", group_size=64)
    assert lowlp.linear(torch.ones(1, 64).half(), qw, out_dtype=torch.float32).dtype == torch.float32
    with pytest.raises(LowlpTypeError, match=r"scale_dtype: expected .* got type"):
        lowlp.quantize(matrix, "int4", group_size=64, scale_dtype=float)


def test_a_bias_of_float64_is_answered_with_what_to_do() -> None:
    qw = lowlp.quantize(np.eye(16, 32, dtype=np.float32), "int4", group_size=32)
    with pytest.raises(LowlpTypeError, match=r"bias: .* got float64; pass bias.astype\(np.float32\)"):
        lowlp.linear(np.ones((1, 32), np.float16), qw, bias=np.ones(16))
