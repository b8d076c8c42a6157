"""`lowlp.torch.Embedding`: `torch.nn.Embedding` with quantised weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from lowlp.numeric.codec import Codec
from lowlp.weights.quantize.quantization import quantize
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpValueError

from . import operators
from .quantized_module import QuantizedModule, family_of, is_plain_call, options_of
from .stored_tensors import empty_tensors, tensors_of

_OUTPUTS = (torch.float16, torch.bfloat16, torch.float32)


class Embedding(QuantizedModule):
    """Rows of quantised weights [num_embeddings, embedding_dim], dequantised where they are looked up.

    codec   a `Codec` or its text, 'int8 g64 f16' for example
    family  for which activations the words are placed, 'f16' or 'bf16', for weights that a product shares
    device  None: PyTorch's default; 'meta' works
    dtype   of the result: float16, bfloat16 or float32; None: PyTorch's default. Casts of the module change it

    A row is that of `dequantize()`, rounded once. Rows that there are not raise `LowlpValueError` on a CPU, and are
    NaN on a GPU. `padding_idx`, `max_norm` and the like, which matter in training alone, are not there, nor are
    gradients.
    """

    rows_of_whole: tuple[int, int, int] | None = None
    """Of some rows of a vocabulary: the first, the one after the last, and how many there are in all."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        codec: Codec | str,
        *,
        family: str | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        kind = dtype or torch.get_default_dtype()
        tensors, header = empty_tensors(codec, (num_embeddings, embedding_dim), family or family_of(kind), device)
        self._hold(tensors, header, kind)

    def _hold(self, tensors: dict[str, torch.Tensor], header: str, dtype: torch.dtype) -> None:
        if dtype not in _OUTPUTS:
            raise LowlpValueError(f"dtype: must be float16, bfloat16 or float32, got {dtype}")
        QuantizedModule.__init__(self, tensors, header)
        self.num_embeddings, self.embedding_dim = self._shape
        # A buffer so that casts of the module, which leave the weights alone, say of which type results are.
        self.register_buffer("_like", torch.empty(0, dtype=dtype, device=tensors["packed"].device), persistent=False)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Embedding:
        like, words = self._buffers["_like"], self._buffers["packed"]
        if like.is_meta and not words.is_meta:
            # No state has it, so one that was assigned left it on the meta device, whence nothing can be moved.
            self._buffers["_like"] = torch.empty(0, dtype=like.dtype, device=words.device)
        return super()._apply(fn, recurse)

    @classmethod
    def from_quantized(cls, qw: QuantizedTensor, *, device: Any = None, dtype: torch.dtype | None = None) -> Embedding:
        """The module of weights [N, K], in their memory where that is on `device`; do not use `qw` afterwards.

        device  None: the CPU
        dtype   of the result; None: PyTorch's default
        """
        tensors, header = tensors_of(qw, device)
        found = cls.__new__(cls)
        found._hold(tensors, header, dtype or torch.get_default_dtype())
        return found

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, torch.Tensor], header: str, dtype: torch.dtype) -> Embedding:
        """The module of the buffers of another one, which it shares: a head and an embedding of the same weights."""
        found = cls.__new__(cls)
        found._hold(dict(tensors), header, dtype)
        return found

    @classmethod
    def from_embedding(cls, module: torch.nn.Embedding, codec: Any = "int8", **options: Any) -> Embedding:
        """The module quantised, on its device.

        codec    as `lowlp.quantize` takes it as `dtype`
        options  of `lowlp.quantize`: group_size, zero_point, scale_dtype, ...

        Raises as `lowlp.quantize`, and `LowlpValueError` for a module with `max_norm`, which changes weights.
        """
        if module.max_norm is not None:
            raise LowlpValueError(f"module: max_norm changes weights, and these are fixed; got {module.max_norm}")
        weight = module.weight.detach()
        qw = quantize(weight, codec, **options_of(weight.dtype, options))
        return cls.from_quantized(qw, device=weight.device, dtype=weight.dtype)

    @property
    def dtype(self) -> torch.dtype:
        """Of the result."""
        found: torch.dtype = self._like.dtype
        return found

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[*ids.shape, embedding_dim] of ids in 0..num_embeddings-1. Of a module with some rows of a vocabulary
        (`lowlp.torch.parallel`) ids are those of the whole, and rows that others have are zeros."""
        dtype = self._buffers["_like"].dtype
        look_up = operators.looked_up if is_plain_call(ids) else operators.embedding
        if self.rows_of_whole is None:
            return look_up(ids, self._tensors(), self._stored_header, dtype)
        first, last, count = self.rows_of_whole
        is_here, is_wrong = (ids >= first) & (ids < last), (ids < 0) | (ids >= count)
        # Ids that there are not stay so.
        own = torch.where(is_here, ids - first, is_wrong * (last - first))
        found = look_up(own, self._tensors(), self._stored_header, dtype)
        return found.masked_fill(~(is_here | is_wrong).unsqueeze(-1), 0)

    def extra_repr(self) -> str:
        extents = f"{self.num_embeddings}, {self.embedding_dim}"
        return f"{extents}, {super().extra_repr()}, dtype={str(self.dtype).removeprefix('torch.')}"
