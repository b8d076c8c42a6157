"""The Triton kernels of `decode_layers.py`. Each lets the next launch begin early and waits for the one before
(programmatic dependent launch), as kernels of `lowlp.linear` do; kernels of other libraries come and go in turn.
"""
# mypy: ignore-errors

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def norm_kernel(x, r, w, y, W: tl.constexpr, ADD: tl.constexpr, BLOCK: tl.constexpr):
    """y = norm(x + r), or of x, and r = x + r: a program a row of W <= BLOCK."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    held = i < W
    g = tl.load(w + i, mask=held, other=0.0).to(tl.float32)
    gdc_launch_dependents()
    gdc_wait()
    v = tl.load(x + row * W + i, mask=held, other=0.0).to(tl.float32)
    if ADD:
        v += tl.load(r + row * W + i, mask=held, other=0.0).to(tl.float32)
    tl.store(r + row * W + i, v.to(tl.bfloat16), mask=held)
    s = tl.rsqrt(tl.sum(v * v) / W + 1e-5)
    tl.store(y + row * W + i, (v * s * g).to(tl.bfloat16), mask=held)


@triton.jit
def rope_kernel(
    qkv, q, k, v, cos, sin, first, T, S, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, PAGED: tl.constexpr,
    HS: tl.constexpr, GS: tl.constexpr,
):  # fmt: skip
    """All heads of a token, a program each: q [batch, H, T, D], and k and v into caches [batch, G, S, D], or, PAGED,
    rows [batch * T, G, D]. HS and GS are the powers of two that hold H and G."""
    row = tl.program_id(0).to(tl.int64)
    b, t = row // T, row % T
    p = tl.load(first) + t
    i = tl.arange(0, D // 2)[None, :]
    c, s = tl.load(cos + p * (D // 2) + i), tl.load(sin + p * (D // 2) + i)
    base = qkv + row * (H + 2 * G) * D
    gdc_launch_dependents()
    gdc_wait()
    h = tl.arange(0, HS)[:, None]
    mine = h < H
    lo = tl.load(base + h * D + i, mask=mine, other=0.0).to(tl.float32)
    hi = tl.load(base + h * D + D // 2 + i, mask=mine, other=0.0).to(tl.float32)
    out = q + ((b * H + h) * T + t) * D + i
    tl.store(out, (lo * c - hi * s).to(tl.bfloat16), mask=mine)
    tl.store(out + D // 2, (hi * c + lo * s).to(tl.bfloat16), mask=mine)
    g = tl.arange(0, GS)[:, None]
    mine = g < G
    place = (row * G + g if PAGED else (b * G + g) * S + p) * D + i
    keys = base + (H + g) * D + i
    lo = tl.load(keys, mask=mine, other=0.0).to(tl.float32)
    hi = tl.load(keys + D // 2, mask=mine, other=0.0).to(tl.float32)
    tl.store(k + place, (lo * c - hi * s).to(tl.bfloat16), mask=mine)
    tl.store(k + place + D // 2, (hi * c + lo * s).to(tl.bfloat16), mask=mine)
    values = base + (H + G + g) * D + i
    tl.store(v + place, tl.load(values, mask=mine, other=0.0), mask=mine)
    tl.store(v + place + D // 2, tl.load(values + D // 2, mask=mine, other=0.0), mask=mine)


@triton.jit
def attention_kernel(
    qkv, k, v, cos, sin, first, o, S, scale, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, R: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Rope of a token, the store of its key and value, and attention to them and the cache: a program for each head of
    keys and values, with its H // G <= R heads of queries. Caches are [batch, G, S, D]."""
    b, g = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i, d, j = tl.arange(0, D // 2), tl.arange(0, D), tl.arange(0, R)
    p = tl.load(first)
    c, s = tl.load(cos + p * (D // 2) + i), tl.load(sin + p * (D // 2) + i)
    row = qkv + b * (H + 2 * G) * D
    cache = (b * G + g) * S * D
    gdc_launch_dependents()
    gdc_wait()
    lo, hi = tl.load(row + (H + g) * D + i).to(tl.float32), tl.load(row + (H + g) * D + D // 2 + i).to(tl.float32)
    klo, khi = (lo * c - hi * s).to(tl.bfloat16), (hi * c + lo * s).to(tl.bfloat16)
    new = tl.load(row + (H + G + g) * D + d)
    tl.store(k + cache + p * D + i, klo)
    tl.store(k + cache + p * D + D // 2 + i, khi)
    tl.store(v + cache + p * D + d, new)
    mine = (j < H // G)[:, None]
    heads = row + (g * (H // G) + j[:, None]) * D + i[None, :]
    lo, hi = tl.load(heads, mask=mine, other=0.0).to(tl.float32), tl.load(heads + D // 2, mask=mine, other=0.0)
    hi = hi.to(tl.float32)
    qlo, qhi = (lo * c[None, :] - hi * s[None, :]).to(tl.bfloat16), (hi * c[None, :] + lo * s[None, :]).to(tl.bfloat16)
    most = tl.full([R], -float("inf"), tl.float32)
    total = tl.zeros([R], tl.float32)
    found = tl.zeros([R, D], tl.float32)
    for start in range(0, p + 1, BLOCK):
        t = start + tl.arange(0, BLOCK)
        before, last = (t < p)[:, None], (t == p)[:, None]
        keys = k + cache + t[:, None] * D + i[None, :]
        left = tl.where(last, klo[None, :], tl.load(keys, mask=before, other=0.0))
        right = tl.where(last, khi[None, :], tl.load(keys + D // 2, mask=before, other=0.0))
        values = tl.load(v + cache + t[:, None] * D + d[None, :], mask=before, other=0.0)
        values = tl.where(last, new[None, :], values)
        scores = (tl.dot(qlo, tl.trans(left)) + tl.dot(qhi, tl.trans(right))) * scale
        scores = tl.where((t <= p)[None, :], scores, -float("inf"))
        larger = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        shrink = tl.exp(most - larger)
        total = total * shrink + tl.sum(weights, 1)
        found = found * shrink[:, None] + tl.dot(weights.to(tl.bfloat16), values)
        most = larger
    out = o + (b * H + g * (H // G) + j[:, None]) * D + d[None, :]
    tl.store(out, (found / total[:, None]).to(tl.bfloat16), mask=mine)


@triton.jit
def silu_kernel(gu, y, F: tl.constexpr, BLOCK: tl.constexpr):
    """y = silu(gate) * up of rows with gate and up side by side."""
    row, i = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gdc_launch_dependents()
    gdc_wait()
    g, u = tl.load(gu + row * 2 * F + i).to(tl.float32), tl.load(gu + row * 2 * F + F + i).to(tl.float32)
    tl.store(y + row * F + i, (g / (1 + tl.exp(-g)) * u).to(tl.bfloat16))


@triton.jit
def best_of_part(x, values, places, W, PART: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """The largest number of each of PARTS parts of a row of W, and its place."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i = tl.arange(0, BLOCK)
    place = part * PART + i
    gdc_launch_dependents()
    gdc_wait()
    held = (i < PART) & (place < W)
    v = tl.load(x + row * W + place, mask=held, other=-float("inf")).to(tl.float32)
    best, at = tl.max(v, 0, return_indices=True)
    tl.store(values + row * PARTS + part, best)
    tl.store(places + row * PARTS + part, part * PART + at)


@triton.jit
def best_part(values, places, found, PARTS: tl.constexpr):
    """The place of the largest of PARTS numbers."""
    row = tl.program_id(0).to(tl.int64)
    gdc_launch_dependents()
    gdc_wait()
    at = tl.argmax(tl.load(values + row * PARTS + tl.arange(0, PARTS)), 0)
    tl.store(found + row, tl.load(places + row * PARTS + at).to(tl.int64))
