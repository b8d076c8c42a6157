"""The parts of a Llama model around its products, for `decode_model.py`: the same for every kind of weights.

Three Triton kernels (norm with the residual, rope with the store to the cache, silu and product), PyTorch's attention
over a full static cache, and the argmax over the head. On a CPU, where nothing is timed, PyTorch stands in for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

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
    "tiny": Shape(2, 256, 512, 4, 2, 64, 512),
}
"""Llama 3.1 8B's and 70B's, and one for CPUs."""

if ON_GPU:
    import triton
    import triton.language as tl

    @triton.jit
    def norm_kernel(x, r, w, y, W: tl.constexpr, ADD: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        i = tl.arange(0, W)
        v = tl.load(x + row * W + i).to(tl.float32)
        if ADD:
            v += tl.load(r + row * W + i).to(tl.float32)
        tl.store(r + row * W + i, v.to(tl.bfloat16))
        s = tl.rsqrt(tl.sum(v * v) / W + 1e-5)
        tl.store(y + row * W + i, (v * s * tl.load(w + i).to(tl.float32)).to(tl.bfloat16))

    @triton.jit
    def rope_kernel(qkv, q, k, v, cos, sin, first, T, S, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr):
        row, h = tl.program_id(0).to(tl.int64), tl.program_id(1)
        b, t = row // T, row % T
        i = tl.arange(0, D // 2)
        p = tl.load(first) + t
        base = qkv + row * (H + 2 * G) * D + h * D
        lo, hi = tl.load(base + i).to(tl.float32), tl.load(base + D // 2 + i).to(tl.float32)
        if h < H + G:
            c, s = tl.load(cos + p * (D // 2) + i), tl.load(sin + p * (D // 2) + i)
            lo, hi = lo * c - hi * s, hi * c + lo * s
        if h < H:
            out = q + ((b * H + h) * T + t) * D
        elif h < H + G:
            out = k + ((b * G + h - H) * S + p) * D
        else:
            out = v + ((b * G + h - H - G) * S + p) * D
        tl.store(out + i, lo.to(tl.bfloat16))
        tl.store(out + D // 2 + i, hi.to(tl.bfloat16))

    @triton.jit
    def silu_kernel(gu, y, F: tl.constexpr, BLOCK: tl.constexpr):
        row, i = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        g, u = tl.load(gu + row * 2 * F + i).to(tl.float32), tl.load(gu + row * 2 * F + F + i).to(tl.float32)
        tl.store(y + row * F + i, (g / (1 + tl.exp(-g)) * u).to(tl.bfloat16))


def silu_mul(gu: torch.Tensor, feed: int) -> torch.Tensor:
    """silu(gate) * up of [rows, 2 * feed], where a product does not do it."""
    if not ON_GPU:
        return torch.nn.functional.silu(gu[:, :feed]) * gu[:, feed:]
    y = torch.empty(gu.shape[0], feed, device=gu.device, dtype=DTYPE)
    silu_kernel[(gu.shape[0], feed // 1024)](gu, y, feed, 1024)
    return y


class Model:
    """A step of a model: `tokens` tokens of each of `batch` sequences, the last of which are the cache's last.

    products  of each layer, name -> function of x; that of gate_up gives silu(gate) * up
    head      the product of the last token of each sequence
    cache     tokens of the static cache; those before the step's are random
    """

    def __init__(self, shape: Shape, products: list[Any], head: Any, batch: int, tokens: int, cache: int) -> None:
        self.shape, self.products, self.head = shape, products, head
        self.batch, self.tokens, self.cache = batch, tokens, cache
        self.norms = torch.ones(shape.width, device=DEVICE, dtype=DTYPE)
        # The table of words is read by a row a token, so that its size does not matter.
        self.words = torch.randn(1024, shape.width, device=DEVICE, dtype=DTYPE)
        kv = (shape.layers, batch, shape.kv_heads, cache, shape.head)
        self.k, self.v = (torch.randn(kv, device=DEVICE, dtype=DTYPE) for _ in range(2))
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
        norm_kernel[(x.shape[0],)](x, r, self.norms, y, self.shape.width, add, num_warps=16)
        return y

    def attention(self, qkv: torch.Tensor, layer: int) -> torch.Tensor:
        """Rope, the store to the cache, and attention; [rows, heads * head]."""
        shape, k, v = self.shape, self.k[layer], self.v[layer]
        q = torch.empty(self.batch, shape.heads, self.tokens, shape.head, device=DEVICE, dtype=DTYPE)
        sizes = (shape.heads, shape.kv_heads, shape.head)
        if ON_GPU:
            grid = (self.batch * self.tokens, shape.heads + 2 * shape.kv_heads)
            rope_kernel[grid](
                qkv, q, k, v, self.cos, self.sin, self.first, self.tokens, self.cache, *sizes, num_warps=1
            )
        else:
            rows = qkv[:, : shape.heads * shape.head].view(self.batch, self.tokens, shape.heads, shape.head)
            q.copy_(rows.transpose(1, 2))
        # A prompt fills the cache; a token of decoding sees all of it.
        causal = self.tokens > 1
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return a.transpose(1, 2).reshape(self.batch * self.tokens, -1)

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
        self.found.copy_(self.head(self.last).argmax(-1))
        return self.found
