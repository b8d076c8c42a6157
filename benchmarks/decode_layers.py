"""The parts of a Llama model around its products, for `decode_model.py`: the same for every kind of weights.

Triton kernels (decode_kernels.py) for norms with the residual, rope with the store to the cache, attention of a token
to a full static cache, silu and the best word; PyTorch's attention for prompts; with another type of cache attention is
lowlp's. On a CPU, where nothing is timed, PyTorch stands in for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import lowlp

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
DTYPE = torch.bfloat16


@dataclass(frozen=True)
class Shape:
    """Layers, width, width between up and down, heads, heads of keys and values, elements of a head, words."""

    layers: int
    width: int
    feed: int
    heads: int
    kv_heads: int
    head: int
    words: int

    def products(self) -> dict[str, tuple[int, int, str | None]]:
        """Name -> N, K and epilogue; the head is outside of the layers."""
        return {
            "qkv": ((self.heads + 2 * self.kv_heads) * self.head, self.width, None),
            "o": (self.width, self.heads * self.head, None),
            "gate_up": (2 * self.feed, self.width, "silu_mul"),
            "down": (self.width, self.feed, None),
            "head": (self.words, self.width, None),
        }


SHAPES = {
    "8b": Shape(32, 4096, 14336, 32, 8, 128, 128256),
    "70b": Shape(80, 8192, 28672, 64, 8, 128, 128256),
    "7b": Shape(32, 4096, 11008, 32, 32, 128, 32000),
    "gemma-270m": Shape(18, 640, 2048, 4, 1, 256, 262144),
    "qwen-0.5b": Shape(24, 896, 4864, 14, 2, 64, 151936),
    "tiny": Shape(2, 256, 512, 4, 2, 64, 512),
}
"""Llama 3.1 8B's and 70B's, Llama 2 7B's, which VQ-LLM measured, those of Gemma 3 270M and Qwen2.5-Coder 0.5B, in
layers of Llama, and one for CPUs."""

if ON_GPU:
    import decode_kernels as kernels


def _power_of_two(number: int) -> int:
    """The least that is no less."""
    return 1 << (number - 1).bit_length()


def silu_mul(gu: torch.Tensor, feed: int) -> torch.Tensor:
    """silu(gate) * up of [rows, 2 * feed], where a product does not do it."""
    if not ON_GPU:
        return torch.nn.functional.silu(gu[:, :feed]) * gu[:, feed:]
    y = torch.empty(gu.shape[0], feed, device=gu.device, dtype=DTYPE)
    block = math.gcd(feed, 1024)
    kernels.silu_kernel[(gu.shape[0], feed // block)](gu, y, feed, block, launch_pdl=True)
    return y


class PagedCaches:
    """Keys and values of all layers in `lowlp.KVCache`s of a type, full of random tokens.

    Appends those of a step's tokens and attends: by `lowlp.attention_decode` for one token of each sequence, and to a
    prompt by PyTorch, as the keys and values are.
    """

    PAGE = 64

    def __init__(self, shape: Shape, kind: str, batch: int, tokens: int, length: int) -> None:
        self.batch, self.tokens = batch, tokens
        width = -(-length // self.PAGE)
        self.table = torch.randperm(batch * width, device=DEVICE).view(batch, width).int()
        self.lengths = torch.full((batch,), length, dtype=torch.int32, device=DEVICE)
        places = torch.arange(length, device=DEVICE)
        slots = self.table[:, places // self.PAGE] * self.PAGE + (places % self.PAGE).int()
        self.slots = slots[:, length - tokens :].reshape(-1).contiguous()
        sizes = {"kv_heads": shape.kv_heads, "head_dim": shape.head}
        self.caches = []
        for layer in range(shape.layers):
            books = _random_books(shape, kind, layer)
            cache = lowlp.KVCache(
                pages=batch * width, page=self.PAGE, dtype=kind, codebooks=books, device=DEVICE, **sizes
            )
            for some in slots.reshape(-1).split(1 << 15):
                rows = (2, len(some), shape.kv_heads, shape.head)
                lowlp.kv_append(cache, *torch.randn(rows, device=DEVICE, dtype=DTYPE), some)
            self.caches.append(cache)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: int) -> torch.Tensor:
        """[rows, heads * head] of q [batch, heads, tokens, head] and k, v [rows, kv_heads, head]."""
        lowlp.kv_append(self.caches[layer], k, v, self.slots)
        if self.tokens == 1:
            q = q.view(self.batch, -1, q.shape[-1])
            return lowlp.attention_decode(q, self.caches[layer], self.table, self.lengths).view(self.batch, -1)
        k, v = (x.view(self.batch, self.tokens, *x.shape[1:]).transpose(1, 2) for x in (k, v))
        return _attention(q, k, v)


def _random_books(shape: Shape, kind: str, seed: int) -> Any:
    vector = {"cq-4": 2, "cq-2": 4}.get(kind)
    if vector is None:
        return None
    extents = (2, shape.kv_heads, shape.head // vector, 256, vector)
    return lowlp.KVCodebooks(np.random.default_rng(seed).standard_normal(extents).astype(np.float16))


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """PyTorch's, [rows, heads * head]: a prompt fills the cache, and a token of decoding sees all of it."""
    a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1, enable_gqa=True)
    return a.transpose(1, 2).reshape(q.shape[0] * q.shape[2], -1)


class Model:
    """A step of a model: `tokens` tokens of each of `batch` sequences, the last of which are the cache's last.

    products  of each layer, name -> function of x; that of gate_up gives silu(gate) * up
    head      the product of the last token of each sequence
    cache     tokens of the static cache; those before the step's are random
    kv        the type of a `lowlp.KVCache`; None: bfloat16, and attention that is not lowlp's
    """

    def __init__(
        self, shape: Shape, products: list[Any], head: Any, batch: int, tokens: int, cache: int, kv: str | None = None
    ) -> None:
        self.shape, self.products, self.head = shape, products, head
        self.batch, self.tokens, self.cache = batch, tokens, cache
        self.norms = torch.ones(shape.width, device=DEVICE, dtype=DTYPE)
        # The table of words is read by a row a token, so that its size does not matter.
        self.words = torch.randn(1024, shape.width, device=DEVICE, dtype=DTYPE)
        self.paged = None if kv is None else PagedCaches(shape, kv, batch, tokens, cache)
        sizes = (shape.layers, batch, shape.kv_heads, cache, shape.head)
        if self.paged:
            sizes = (1, batch * tokens, shape.kv_heads, 1, shape.head)
        self.k, self.v = (torch.randn(sizes, device=DEVICE, dtype=DTYPE) for _ in range(2))
        powers = torch.arange(0, shape.head, 2, device=DEVICE) / shape.head
        angle = torch.arange(cache, device=DEVICE)[:, None] * 5e5**-powers
        self.cos, self.sin = angle.cos().float().contiguous(), angle.sin().float().contiguous()
        self.first = torch.tensor([cache - tokens], device=DEVICE, dtype=torch.int32)
        self.ids = torch.randint(0, 1024, (batch * tokens,), device=DEVICE)
        self.found = torch.zeros(batch, device=DEVICE, dtype=torch.int64)

    def norm(self, x: torch.Tensor, r: torch.Tensor, add: bool) -> torch.Tensor:
        """The norm of x, or of x + r; r becomes what is normed."""
        if not ON_GPU:
            r.copy_(x + r if add else x)
            return torch.nn.functional.rms_norm(r.float(), (self.shape.width,), eps=1e-5).to(DTYPE)
        y = torch.empty_like(x)
        kernels.norm_kernel[(x.shape[0],)](
            x, r, self.norms, y, self.shape.width, add, _power_of_two(self.shape.width),
            num_warps=8 if x.shape[0] > 132 else 16, launch_pdl=True,
        )  # fmt: skip
        return y

    def attention(self, qkv: torch.Tensor, layer: int) -> torch.Tensor:
        """Rope, the store to the cache, and attention; [rows, heads * head]."""
        shape = self.shape
        k, v = (caches[0 if self.paged else layer] for caches in (self.k, self.v))
        sizes = (shape.heads, shape.kv_heads, shape.head)
        if ON_GPU and self.tokens == 1 and not self.paged:
            o = torch.empty(self.batch, shape.heads * shape.head, device=DEVICE, dtype=DTYPE)
            # Of large heads fewer tokens at once, which shared memory has room for.
            tokens = min(128, 128 * 128 // shape.head)
            kernels.attention_kernel[(self.batch, shape.kv_heads)](
                qkv, k, v, self.cos, self.sin, self.first, o, self.cache, shape.head**-0.5, *sizes, 16, tokens,
                num_warps=8, launch_pdl=True,
            )  # fmt: skip
            return o
        q = torch.empty(self.batch, shape.heads, self.tokens, shape.head, device=DEVICE, dtype=DTYPE)
        if ON_GPU:
            held = (_power_of_two(shape.heads), _power_of_two(shape.kv_heads))
            numbers = (self.tokens, self.cache, *sizes, self.paged is not None, *held)
            kernels.rope_kernel[(self.batch * self.tokens,)](
                qkv, q, k, v, self.cos, self.sin, self.first, *numbers, launch_pdl=True
            )
        else:
            rows = qkv[:, : shape.heads * shape.head].view(self.batch, self.tokens, shape.heads, shape.head)
            q.copy_(rows.transpose(1, 2))
        if self.paged:
            return self.paged.attend(q, k.squeeze(2), v.squeeze(2), layer)
        return _attention(q, k, v)

    def step(self) -> torch.Tensor:
        """The next word of each sequence [batch]."""
        x = self.words[self.ids]
        r = torch.empty_like(x)
        x = self.norm(x, r, False)
        for layer in range(self.shape.layers):
            p = self.products[layer % len(self.products)]
            x = self.norm(p["o"](self.attention(p["qkv"](x), layer)), r, True)
            x = self.norm(p["down"](p["gate_up"](x)), r, True)
        self.last = x.view(self.batch, self.tokens, -1)[:, -1].contiguous()
        return self.greatest(self.head(self.last))

    def greatest(self, logits: torch.Tensor) -> torch.Tensor:
        """The places of the largest logits [batch]; PyTorch's argmax of few rows takes a block for each."""
        if not ON_GPU:
            return logits.view(self.batch, self.shape.words).argmax(-1)
        parts, part = 128, -(-self.shape.words // 128)
        values = torch.empty(self.batch, parts, device=DEVICE)
        places = torch.empty(self.batch, parts, device=DEVICE, dtype=torch.int32)
        block = 1 << (part - 1).bit_length()
        kernels.best_of_part[(self.batch, parts)](
            logits, values, places, self.shape.words, part, parts, block, launch_pdl=True
        )
        kernels.best_part[(self.batch,)](values, places, self.found, parts, launch_pdl=True)
        return self.found
