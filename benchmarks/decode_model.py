"""Tokens per second of models of Llama 3.1 8B's and 70B's shape with random weights, one CUDA graph a step.

    python benchmarks/decode_model.py --out decode.json                     # 8B: bf16 and all kinds, batch 1 to 128
    python benchmarks/decode_model.py --shape 70b --kinds bf16,int4 --steps 1x1,1x2048
    python benchmarks/decode_model.py --profile bf16,int4                   # where the time of a step at batch 1 goes

A step is BATCHxTOKENS: 1x1 decodes a token, 1x2048 is a prompt. Everything but the products is the same for all kinds
(decode_layers.py): PyTorch's attention over a full static cache, fused qkv and gate-up, and the head is quantised too,
of which a prompt needs one row. Layers take turns with `--distinct` sets of weights, more than the caches hold, and
have a cache of keys and values each, so that 70B in bf16 fits. Times are medians of replays of the whole step, weights
from memory. Results are written after each line. On a CPU a tiny model runs once, untimed.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from decode_layers import ON_GPU, SHAPES, Model, Shape
from decode_products import OURS, PEERS, compile_ahead, error_of, product

START = time.monotonic()


class Results:
    """What was measured, written after each."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path, self.fields = path, {**about, "results": [], "profiles": {}, "errors": []}

    def save(self) -> None:
        self.path.write_text(json.dumps(self.fields, indent=1) + "\n")

    def fail(self, text: str) -> None:
        print(text, flush=True)
        self.fields["errors"].append(text)
        self.save()

    def add(self, row: dict[str, Any]) -> None:
        self.fields["results"].append(row)
        step = f"{row['batch']} x {row['tokens']}"
        speed = row["batch"] * row["tokens"] / row["ms"] * 1e3
        base = self.find("bf16", row["batch"], row["tokens"])
        ratio = f"{base / row['ms']:5.2f}x bf16" if base else ""
        text = f"{row['kind']:13} {step:>9}: {row['ms']:8.3f} ms {speed:9.0f} tokens/s {ratio}"
        print(f"{text}  (at {time.monotonic() - START:.0f} s)", flush=True)
        self.save()

    def find(self, kind: str, batch: int, tokens: int) -> float | None:
        for row in self.fields["results"]:
            if (row["kind"], row["batch"], row["tokens"]) == (kind, batch, tokens):
                return float(row["ms"])
        return None


def captured(model: Model) -> Any:
    """The graph of a step, and what it finds."""
    with torch.no_grad():
        for _ in range(2):
            model.step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model.step()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def median_ms(graph: Any, seconds: float = 0.35) -> float:
    """Of replays, each between two events."""
    times: list[float] = []
    began = time.monotonic()
    while len(times) < 7 or (time.monotonic() - began < seconds and len(times) < 50):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        graph.replay()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b))
    return sorted(times)[len(times) // 2]


def profiled(graph: Any) -> dict[str, Any]:
    """Of one replay: microseconds and launches by kernel, of all kernels and from the first to the last one's end."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        graph.replay()
        torch.cuda.synchronize()
    kernels: dict[str, list[float]] = {}
    spans = []
    for event in found.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            spans.append((event.time_range.start, event.time_range.end))
            kernels.setdefault(event.name[:90], []).append(event.time_range.end - event.time_range.start)
    busy, until = 0.0, 0.0
    for start, end in sorted(spans):
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    rows = sorted(((sum(times), len(times), name) for name, times in kernels.items()), reverse=True)
    return {
        "span_us": max(end for _, end in spans) - min(start for start, _ in spans),
        "busy_us": busy,
        "kernels": [{"us": round(us, 1), "launches": count, "name": name} for us, count, name in rows],
    }


def measure(kind: str, shape: Shape, given: argparse.Namespace, results: Results, profiles: list[str]) -> None:
    """All steps of a kind; of one in `profiles` where their time goes."""
    try:
        distinct = min(given.distinct, shape.layers)
        names = [name for name in shape.products() if name != "head"]
        products = [{name: product(kind, shape, name) for name in names} for _ in range(distinct)]
        head = product(kind, shape, "head")
        checked = kind in OURS and given.check and kind not in profiles
        error = error_of(kind, shape, 8) if checked else None
        for batch, tokens in given.steps:
            if time.monotonic() - START > given.budget:
                results.fail(f"{kind} {batch} x {tokens}: no time left")
                return
            # A prompt fills its cache, which causal attention has to know by its extent.
            model = Model(shape, products, head, batch, tokens, given.cache if tokens == 1 else tokens)
            if not ON_GPU:
                assert model.step().shape == (batch,)
                continue
            graph = captured(model)
            if not bool(torch.isfinite(model.last).all()):
                raise ValueError(f"{batch} x {tokens}: not all numbers are finite")
            if kind not in profiles:
                results.add({"kind": kind, "batch": batch, "tokens": tokens, "ms": median_ms(graph), "error": error})
            else:
                found = profiled(graph)
                results.fields["profiles"][f"{kind} {batch} x {tokens}"] = found
                print(f"  one replay: {found['span_us']:.0f} us, of which kernels {found['busy_us']:.0f}")
                for row in found["kernels"][:9]:
                    print(f"  {row['us']:8.1f} us {row['launches']:4} x {row['name']}", flush=True)
                results.save()
            del model, graph
            torch.cuda.empty_cache()
    except Exception as error:  # one that is not installed, or refuses
        results.fail(f"{kind:13} {type(error).__name__}: {str(error)[:300]}")
    finally:
        if ON_GPU:
            torch.cuda.empty_cache()


def steps_of(text: str) -> list[tuple[int, int]]:
    """'1x1,32x1' as pairs."""
    pairs = [step.split("x") for step in text.split(",")]
    return [(int(batch), int(tokens)) for batch, tokens in pairs]


def kinds_of(text: str) -> list[str]:
    """Names of kinds. Raises `argparse.ArgumentTypeError` for others."""
    kinds = [kind for kind in text.split(",") if kind]
    for kind in kinds:
        if kind not in (*PEERS, *OURS):
            raise argparse.ArgumentTypeError(f"{kind!r} is none of {', '.join((*PEERS, *OURS))}")
    return kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shape", choices=list(SHAPES), default="8b" if ON_GPU else "tiny")
    parser.add_argument("--kinds", type=kinds_of, default=[*PEERS, *OURS])
    steps = "1x1,8x1,32x1,128x1,1x64,1x2048"
    parser.add_argument("--steps", type=steps_of, default=steps_of(steps), help=f"BATCHxTOKENS, ...; {steps}")
    parser.add_argument("--cache", type=int, default=256, help="tokens of the static cache")
    parser.add_argument("--distinct", type=int, default=8, help="sets of weights that layers take turns with")
    parser.add_argument("--budget", type=float, default=600, help="seconds after which nothing is begun")
    parser.add_argument("--profile", type=kinds_of, default=[], help="kinds of which steps are profiled")
    parser.add_argument("--check", action="store_true", help="compare a product of each kind with float64 first")
    parser.add_argument("--out", type=Path, default=Path("decode.json"))
    given = parser.parse_args()
    shape = SHAPES[given.shape]
    about = {
        "device": torch.cuda.get_device_name() if ON_GPU else "CPU",
        "torch": torch.__version__,
        "shape": {"name": given.shape, **vars(shape)},
        "cache": given.cache,
        "distinct sets of weights": given.distinct,
    }
    results = Results(given.out, about)
    rows = sorted({batch * tokens for batch, tokens in given.steps}, reverse=True)
    of_head = {batch for batch, _ in given.steps}
    ours = [kind for kind in given.kinds if kind in OURS]
    jobs = [
        (kind, shape, name, count)
        for count in rows
        for kind in reversed(ours)
        for name in shape.products()
        if name != "head" or count in of_head
    ]
    print(f"{about['device']}, torch {torch.__version__}, {given.shape}; {len(jobs)} kernels", flush=True)
    compile_ahead(jobs, results.fail)
    print(f"compiled at {time.monotonic() - START:.0f} s", flush=True)
    for kind in given.kinds:
        measure(kind, shape, given, results, [])
    # Last, since a profiler that was on may slow what follows.
    for kind in given.profile:
        measure(kind, shape, given, results, given.profile)
    results.save()


if __name__ == "__main__":
    main()
