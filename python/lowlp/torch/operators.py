"""The operators `torch.ops.lowlp.*`: what `torch.compile`, `torch.export` and autograd see of modules.

    linear(x, weights, bias, header, epilogue, out_dtype, activation, path, batch_invariant=0)
                                                                 y = epilogue(x @ w^T + bias)
    linear_input_gradient(gradient, weights, header, dtype)      gradient @ w
    embedding(ids, weights, header, dtype)                       w[ids]
    grouped_linear(x, weights, offsets, bias, header, epilogue)  the same as linear of rows sorted by expert

`weights` are the tensors of `stored_tensors.tensor_types(header)`, in that order: all that the result depends on is an
argument, so that graphs can be saved and run by another process. They are registered by `torch.library.Library`, which
costs a call less than `torch.library.custom_op` does.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Final

import torch

from lowlp.errors import LowlpRuntimeError, LowlpValueError
from lowlp.kernels.linear.spec import GATED
from lowlp.ops.embedding import dequantized_rows

from .host_products import transposed_product
from .products import TYPES, check_device, grouped_product, product
from .stored_tensors import weights_of

Tensors = list[torch.Tensor]

_NAMES: Final = {dtype: name for name, dtype in TYPES.items()}
_TAGS: Final = (torch.Tag.pt2_compliant_tag,)
# Operators live as long as this.
_library = torch.library.Library("lowlp", "DEF")
_library.define(
    "linear(Tensor x, Tensor[] weights, Tensor? bias, str header, str epilogue, str out_dtype, "
    "str activation, str path, int batch_invariant=0) -> Tensor",
    tags=_TAGS,
)
_library.define(
    "linear_input_gradient(Tensor gradient, Tensor[] weights, str header, ScalarType dtype) -> Tensor", tags=_TAGS
)
_library.define("embedding(Tensor ids, Tensor[] weights, str header, ScalarType dtype) -> Tensor", tags=_TAGS)

_library.define(
    "grouped_linear(Tensor x, Tensor[] weights, Tensor offsets, Tensor? bias, str header, str epilogue) -> Tensor",
    tags=_TAGS,
)

linear: Final = torch.ops.lowlp.linear.default
linear_input_gradient: Final = torch.ops.lowlp.linear_input_gradient.default
embedding: Final = torch.ops.lowlp.embedding.default
grouped_linear: Final = torch.ops.lowlp.grouped_linear.default


@functools.lru_cache(maxsize=4096)
def shape_of(header: str) -> tuple[int, int]:
    """(N, K) of the weights with this header."""
    n, k = json.loads(header)["shape"]
    return n, k


# --- what is computed -------------------------------------------------------------------------------------------------


def _linear(
    x: torch.Tensor,
    weights: Tensors,
    bias: torch.Tensor | None,
    header: str,
    epilogue: str,
    out_dtype: str,
    activation: str,
    path: str,
    batch_invariant: int = 0,
) -> torch.Tensor:
    y = product(x, weights, bias, header, epilogue, out_dtype, activation, path, batch_invariant)
    # Autograd lets nobody change a view in place that a function of ours returns.
    return torch.ops.aten._unsafe_view.default(y, y.shape) if y._is_view() else y


def _input_gradient(gradient: torch.Tensor, weights: Tensors, header: str, dtype: torch.dtype) -> torch.Tensor:
    return transposed_product(gradient, weights_of(weights, header), dtype)


def looked_up(ids: torch.Tensor, weights: Tensors, header: str, dtype: torch.dtype) -> torch.Tensor:
    """What `embedding` computes."""
    if dtype not in _NAMES:
        raise LowlpValueError(f"dtype: must be float16, bfloat16 or float32, got {dtype}")
    check_device(ids, weights, "ids")
    found: torch.Tensor = dequantized_rows(ids, weights_of(weights, header), _NAMES[dtype])
    return found


for _key in ("CPU", "CUDA"):
    _library.impl("linear", _linear, _key)
    _library.impl("linear_input_gradient", _input_gradient, _key)
    _library.impl("embedding", looked_up, _key)
    _library.impl("grouped_linear", grouped_product, _key)


# --- shapes and types alone -------------------------------------------------------------------------------------------


def _fake_linear(
    x: torch.Tensor,
    weights: Tensors,
    bias: torch.Tensor | None,
    header: str,
    epilogue: str,
    out_dtype: str,
    activation: str,
    path: str,
    batch_invariant: int = 0,
) -> torch.Tensor:
    n, k = shape_of(header)
    torch._check(x.shape[-1] == k, lambda: f"x: the last dimension must be K = {k}, got shape {tuple(x.shape)}")
    columns = n // 2 if epilogue in GATED else n
    return x.new_empty((*x.shape[:-1], columns), dtype=TYPES[out_dtype] if out_dtype else x.dtype)


def _fake_input_gradient(gradient: torch.Tensor, weights: Tensors, header: str, dtype: torch.dtype) -> torch.Tensor:
    return gradient.new_empty((*gradient.shape[:-1], shape_of(header)[1]), dtype=dtype)


def _fake_embedding(ids: torch.Tensor, weights: Tensors, header: str, dtype: torch.dtype) -> torch.Tensor:
    return ids.new_empty((*ids.shape, shape_of(header)[1]), dtype=dtype)


def _fake_grouped(
    x: torch.Tensor, weights: Tensors, offsets: torch.Tensor, bias: torch.Tensor | None, header: str, epilogue: str
) -> torch.Tensor:
    experts, n, k = json.loads(header)["shape"]
    torch._check(x.dim() == 2 and x.shape[1] == k, lambda: f"x: expected shape [M, {k}], got {tuple(x.shape)}")
    torch._check(
        tuple(offsets.shape) == (experts + 1,), lambda: f"offsets: expected [{experts + 1}], got {tuple(offsets.shape)}"
    )
    return x.new_empty((x.shape[0], n // 2 if epilogue in GATED else n))


torch.library.register_fake("lowlp::linear", _fake_linear, lib=_library)
torch.library.register_fake("lowlp::linear_input_gradient", _fake_input_gradient, lib=_library)
torch.library.register_fake("lowlp::embedding", _fake_embedding, lib=_library)
torch.library.register_fake("lowlp::grouped_linear", _fake_grouped, lib=_library)


# --- gradients --------------------------------------------------------------------------------------------------------


def _keep_for_gradient(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weights, bias, header, epilogue = inputs[:5]
    if epilogue:
        raise LowlpRuntimeError(
            f"epilogue: {epilogue!r} has no gradient in the operator; lowlp.torch.Linear applies it outside then"
        )
    ctx.save_for_backward(*weights)
    ctx.header, ctx.dtype = header, x.dtype
    ctx.bias_dtype = None if bias is None else bias.dtype


def _gradient_of_linear(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    of_x = of_bias = None
    # Once: under torch.utils.checkpoint they are computed anew, and given out one time.
    weights = list(ctx.saved_tensors)
    if ctx.needs_input_grad[0]:
        of_x = linear_input_gradient(gradient, weights, ctx.header, ctx.dtype)
    if ctx.bias_dtype is not None and ctx.needs_input_grad[2]:
        of_bias = gradient.float().reshape(-1, gradient.shape[-1]).sum(0).to(ctx.bias_dtype)
    # An argument that has its default is none of them.
    others = len(ctx.needs_input_grad) - 3
    return of_x, [None] * len(weights), of_bias, *[None] * others


torch.library.register_autograd("lowlp::linear", _gradient_of_linear, setup_context=_keep_for_gradient, lib=_library)
