"""`kernel(x, qw)` of saved kernels on a GPU: the same bits as `lowlp.linear` with the same schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
import lowlp_runtime
from lowlp.compiler.architectures import current_arch

torch = pytest.importorskip("torch")

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "int4": ({"dtype": "int4"}, {"weight": "int4"}),
    "zeros": ({"dtype": "uint3", "zero_point": True}, {"weight": "uint3", "zeros": "uint8"}),
    "table": ({"lut": lowlp.nf(4)}, {"weight": "lut4"}),
    "bf16": ({"dtype": "int6", "scale_dtype": "bf16", "activation": "bf16"}, {"weight": "int6", "scale_dtype": "bf16"}),
}


@pytest.mark.parametrize("m", [1, 16, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_kernel_gives_what_linear_gives(kind: str, m: int, tmp_path: Path) -> None:
    made_of, compiled = KINDS[kind]
    activation = made_of.get("activation", "f16")
    weight = np.random.default_rng(0).normal(size=(384, 512)).astype(np.float32)
    qw = lowlp.quantize(weight, group_size=128, **made_of)
    kernel = lowlp.compile_linear(
        n=384, k=512, m=(m, m), group_size=128, activation=activation, target=current_arch(), bias="f32",
        gpu=torch.cuda.get_device_name(0), **compiled,
    )  # fmt: skip
    kernel.save(tmp_path / "k.lowlp")
    types = {"f16": torch.float16, "bf16": torch.bfloat16}
    x = torch.randn(2 * m, 512, device="cuda").to(types[activation])
    bias = torch.randn(384, device="cuda")
    arrays, header = qw.to_arrays()
    for rows in (x[:m], x[::2]):
        wanted = lowlp.linear(rows, qw, bias=bias)
        for call in (lowlp.load(tmp_path / "k.lowlp"), lowlp_runtime.load(tmp_path / "k.lowlp")):
            for weights in (qw, (arrays, header)):
                for _ in range(2):
                    assert torch.equal(call(rows, weights, bias=bias), wanted)


def test_rows_without_alignment_and_another_stream(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(64, 100)).astype(np.float32)
    qw = lowlp.quantize(weight, "int4", group_size=20)
    kernel = lowlp.compile_linear(n=64, k=100, weight="int4", group_size=20, target=current_arch(), residual="f16")
    x, residual = torch.randn(5, 101, device="cuda").half()[:, 1:], torch.randn(5, 65, device="cuda").half()[:, 1:]
    wanted = lowlp.linear(x, qw, residual=residual)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    y = kernel(x, qw, residual=residual, stream=stream)
    torch.cuda.synchronize()
    assert torch.linalg.norm(y.float() - wanted.float()) <= 2e-3 * torch.linalg.norm(wanted.float())


def test_weights_on_the_device(tmp_path: Path) -> None:
    """Arrays as tensors of PyTorch, as safetensors.torch reads them."""
    qw = lowlp.quantize(np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32), "int4", group_size=64)
    kernel = lowlp.compile_linear(n=64, k=128, weight="int4", group_size=64, target=current_arch())
    arrays, header = qw.to_arrays()
    tensors = {
        "packed": torch.from_numpy(arrays["packed"].view(np.int32)),
        "scales": torch.from_numpy(arrays["scales"]),
    }
    x = torch.randn(3, 128, device="cuda").half()
    on_device = {name: tensor.cuda() for name, tensor in tensors.items()}
    assert torch.equal(kernel(x, (on_device, header)), kernel(x, qw))
