"""Decode tokens per second of a model of Llama 3.1 8B's shape with random weights, one CUDA graph a step.

    BUDGET_S=60 OUT=. python benchmarks/decode_model.py      # writes decode.json, prints a table; smaller on a CPU

Everything but the products is the same for all: three Triton kernels (norm and residual, rope and cache, silu and
product), PyTorch's attention over a full static cache of 256 tokens, fused qkv and gate-up, the head quantised too.
"""

from __future__ import annotations

import json
import math
import os
import time

import torch

import lowlp
import lowlp.torch.warming as warming

START = time.monotonic()
BUDGET = float(os.environ.get("BUDGET_S", "60"))
ON_GPU = torch.cuda.is_available()
DEV = "cuda" if ON_GPU else "cpu"
SMALL = not ON_GPU
if ON_GPU:
    import triton
    import triton.language as tl

warming._MAX_WORKERS = 16
LAYERS = 2 if SMALL else 32
WIDTH, FEED, HEADS, KV, HEAD, WORDS = (256, 512, 4, 2, 64, 512) if SMALL else (4096, 14336, 32, 8, 128, 128256)
TOKENS = 256
DT = torch.bfloat16
QKV = (HEADS + 2 * KV) * HEAD
SHAPES = {
    "qkv": (QKV, WIDTH, None),
    "o": (WIDTH, HEADS * HEAD, None),
    "gate_up": (2 * FEED, WIDTH, "silu_mul"),
    "down": (WIDTH, FEED, None),
    "head": (WORDS, WIDTH, None),
}


def left():
    return BUDGET - (time.monotonic() - START)


if ON_GPU:

    @triton.jit
    def norm_kernel(x, r, w, y, W: tl.constexpr, ADD: tl.constexpr):
        row = tl.program_id(0)
        i = tl.arange(0, W)
        v = tl.load(x + row * W + i).to(tl.float32)
        if ADD:
            v += tl.load(r + row * W + i).to(tl.float32)
            tl.store(r + row * W + i, v.to(tl.bfloat16))
        else:
            tl.store(r + row * W + i, v.to(tl.bfloat16))
        s = tl.rsqrt(tl.sum(v * v) / W + 1e-5)
        tl.store(y + row * W + i, (v * s * tl.load(w + i).to(tl.float32)).to(tl.bfloat16))

    @triton.jit
    def rope_kernel(qkv, q, k, v, cos, sin, pos, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, S: tl.constexpr):
        b, h = tl.program_id(0), tl.program_id(1)
        i = tl.arange(0, D // 2)
        p = tl.load(pos)
        base = qkv + b * (H + 2 * G) * D + h * D
        lo, hi = tl.load(base + i).to(tl.float32), tl.load(base + D // 2 + i).to(tl.float32)
        if h < H + G:
            c, s = tl.load(cos + p * (D // 2) + i), tl.load(sin + p * (D // 2) + i)
            lo, hi = lo * c - hi * s, hi * c + lo * s
        if h < H:
            out = q + (b * H + h) * D
        elif h < H + G:
            out = k + ((b * G + h - H) * S + p) * D
        else:
            out = v + ((b * G + h - H - G) * S + p) * D
        tl.store(out + i, lo.to(tl.bfloat16))
        tl.store(out + D // 2 + i, hi.to(tl.bfloat16))

    @triton.jit
    def silu_kernel(gu, y, F: tl.constexpr, BLOCK: tl.constexpr):
        row, i = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        g, u = tl.load(gu + row * 2 * F + i).to(tl.float32), tl.load(gu + row * 2 * F + F + i).to(tl.float32)
        tl.store(y + row * F + i, (g / (1 + tl.exp(-g)) * u).to(tl.bfloat16))


class Model:
    """products: name -> function of x, by layer; those of gate_up give silu(gate) * up."""

    def __init__(self, products, head, batch):
        self.products, self.head, self.batch = products, head, batch
        self.norms = torch.ones(2 * LAYERS + 1, WIDTH, device=DEV, dtype=DT)
        self.words = torch.randn(WORDS if SMALL else 1024, WIDTH, device=DEV, dtype=DT)
        self.k, self.v = (torch.randn(LAYERS, batch, KV, TOKENS, HEAD, device=DEV, dtype=DT) for _ in range(2))
        angle = torch.arange(TOKENS, device=DEV)[:, None] * 5e5 ** (-torch.arange(0, HEAD, 2, device=DEV) / HEAD)
        self.cos, self.sin = angle.cos().float().contiguous(), angle.sin().float().contiguous()
        self.pos = torch.tensor([TOKENS - 1], device=DEV, dtype=torch.int32)
        self.ids = torch.zeros(batch, device=DEV, dtype=torch.int64)

    def norm(self, x, r, number, add):
        if not ON_GPU:
            r.copy_(x + r if add else x)
            return torch.nn.functional.rms_norm(r.float(), (WIDTH,), eps=1e-5).to(DT)
        y = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, r, self.norms[number], y, WIDTH, add, num_warps=8)
        return y

    def rope(self, qkv, layer):
        q = torch.empty(self.batch, HEADS, 1, HEAD, device=DEV, dtype=DT)
        if ON_GPU:
            rope_kernel[(self.batch, HEADS + 2 * KV)](
                qkv, q, self.k[layer], self.v[layer], self.cos, self.sin, self.pos, HEADS, KV, HEAD, TOKENS, num_warps=1
            )
            return q
        return qkv[:, : HEADS * HEAD].reshape(q.shape)

    def step(self):
        x = self.words[self.ids % self.words.shape[0]]
        r = torch.empty_like(x)
        x = self.norm(x, r, 0, False)
        for layer, p in enumerate(self.products):
            q = self.rope(p["qkv"](x), layer)
            a = torch.nn.functional.scaled_dot_product_attention(q, self.k[layer], self.v[layer], enable_gqa=True)
            x = self.norm(p["o"](a.reshape(self.batch, -1)), r, 2 * layer + 1, True)
            x = self.norm(p["down"](p["gate_up"](x)), r, 2 * layer + 2, True)
        self.ids.copy_(self.head(x).argmax(-1))
        return self.ids


def plain_gate_up(product):
    def call(x):
        gu = product(x)
        if not ON_GPU:
            return torch.nn.functional.silu(gu[:, :FEED]) * gu[:, FEED:]
        y = torch.empty(x.shape[0], FEED, device=DEV, dtype=DT)
        silu_kernel[(x.shape[0], FEED // 1024)](gu, y, FEED, 1024)
        return y

    return call


def bf16(name):
    n, k, epilogue = SHAPES[name]
    w = torch.empty(n, k, device=DEV, dtype=DT).normal_(0, k**-0.5)

    def call(x):
        return torch.nn.functional.linear(x, w)

    return plain_gate_up(call) if epilogue else call


def tinygemm(name):
    n, k, epilogue = SHAPES[name]
    w = torch.randint(0, 256, (n, k // 2), device=DEV, dtype=torch.uint8)
    packed = torch.ops.aten._convert_weight_to_int4pack(w, 8)
    scales = torch.full((k // 128, n, 2), 1 / (4.6 * math.sqrt(k)), device=DEV, dtype=DT)
    scales[..., 1] = 0

    def call(x):
        return torch.ops.aten._weight_int4pack_mm(x, packed, 128, scales)

    return plain_gate_up(call) if epilogue else call


def bitsandbytes(name):
    import bitsandbytes as bnb

    n, k, epilogue = SHAPES[name]
    w = torch.empty(n, k, device=DEV, dtype=DT).normal_(0, k**-0.5)
    packed, state = bnb.functional.quantize_4bit(w, blocksize=128, quant_type="nf4")
    del w

    def call(x):
        return bnb.matmul_4bit(x, packed.t(), quant_state=state)

    return plain_gate_up(call) if epilogue else call


def codec_of(kind):
    import numpy as np

    w = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)
    return lowlp.quantize(w, kind, group_size=128, activation="bf16")


def lowlp_of(kind):
    sample = codec_of(kind)
    stored = lowlp.torch.Linear.from_quantized(sample).state_dict()

    def make(name):
        n, k, epilogue = SHAPES[name]
        m = lowlp.torch.Linear(
            k, n, sample.codec, bias=False, epilogue=epilogue, device=DEV, dtype=DT, family="bf16"
        ).eval()
        for part in m._names:
            t = m.get_buffer(part)
            if part == "packed":
                t.random_(-(2**31), 2**31 - 1)
            elif part == "scales":
                rms = 0.5 if kind == "nf4" else 2 ** int(kind[-1]) / math.sqrt(12)
                t.uniform_(0.75, 1.25).mul_(1 / (rms * math.sqrt(k)))
            else:
                t.copy_(stored[part])
        return m

    return make


KINDS = ["int4", "int2", "int8", "nf4", "int3"]
MAKERS = {
    "bf16": bf16,
    "int4 (torch tinygemm)": tinygemm,
    "nf4 (bitsandbytes)": bitsandbytes,
    **{f"{kind} (lowlp)": lowlp_of(kind) for kind in KINDS},
}


def timed(model):
    with torch.no_grad():
        for _ in range(3):
            model.step()
        if not ON_GPU:
            return float("nan"), model.step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model.step()
        graph.replay()
        torch.cuda.synchronize()
        times = []
        for _ in range(25):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            graph.replay()
            b.record()
            b.synchronize()
            times.append(a.elapsed_time(b))
        return sorted(times)[len(times) // 2], out


results = []


def save():
    with open(os.path.join(os.environ.get("OUT", "."), "decode.json"), "w") as f:
        json.dump(
            {
                "device": torch.cuda.get_device_name() if ON_GPU else "cpu",
                "torch": torch.__version__,
                "layers": LAYERS,
                "cache tokens": TOKENS,
                "results": results,
            },
            f,
            indent=1,
        )


def measure(kind, batches):
    made = MAKERS[kind]
    try:
        products = [{name: made(name) for name in SHAPES if name != "head"} for _ in range(LAYERS)]
        head = made("head")
        for batch in batches:
            ms, _ = timed(Model(products, head, batch))
            row = {"kind": kind, "batch": batch, "ms": ms, "tokens_per_s": batch / ms * 1e3}
            results.append(row)
            speed = batch / ms * 1e3
            print(f"{kind:24} batch {batch:3}: {ms:7.3f} ms a step, {speed:8.0f} tokens/s", flush=True)
            save()
    except Exception as error:  # one that is not installed, or refuses
        print(f"{kind:24} {type(error).__name__}: {str(error)[:300]}", flush=True)
        results.append({"kind": kind, "error": f"{type(error).__name__}: {str(error)[:300]}"})
    finally:
        products = head = None
        if ON_GPU:
            torch.cuda.empty_cache()


def main():
    print(f"start {time.monotonic() - START:.1f} s; {DEV}, {torch.__version__}")
    plan = [
        ("bf16", (1, 32)),
        ("int4 (lowlp)", (1, 32)),
        ("int4 (torch tinygemm)", (1, 32)),
        ("int2 (lowlp)", (1, 32)),
        ("nf4 (lowlp)", (1,)),
        ("nf4 (bitsandbytes)", (1,)),
        ("int8 (lowlp)", (1,)),
        ("int3 (lowlp)", (1,)),
    ]
    began = time.monotonic()
    try:
        for batches in {some for _, some in plan}:
            ours = [kind for kind, some in plan if kind.endswith("(lowlp)") and some == batches]
            one = torch.nn.ModuleList([MAKERS[kind](name) for kind in ours for name in SHAPES])
            warming.warm_up(one, rows=list(batches), dtype=DT, progress=False)
        del one
    except lowlp.LowlpError as error:
        print(f"warm up: {type(error).__name__}: {str(error)[:300]}")
    print(f"compiled in {time.monotonic() - began:.1f} s", flush=True)
    for kind, batches in plan:
        if left() < 3:
            print(f"{kind}: no time left")
            break
        measure(kind, batches)
    save()
    base = {r["batch"]: r["ms"] for r in results if r["kind"] == "bf16" and "ms" in r}
    for r in results:
        if "ms" in r and ON_GPU:
            times = f"{r['ms']:7.3f} ms  {r['tokens_per_s']:8.0f} tokens/s  {base[r['batch']] / r['ms']:.2f}x bf16"
            print(f"{r['kind']:24} batch {r['batch']:3}  {times}")


if __name__ == "__main__":
    main()
