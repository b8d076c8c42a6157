"""Tokens per second of models of Llama 3.1 8B's shape and others with random weights, one CUDA graph a step.

    python benchmarks/decode_model.py --out decode.json                     # 8B: bf16 and all kinds, batch 1 to 128
    python benchmarks/decode_model.py --shape 70b --kinds bf16,int4 --steps 1x1,1x2048
    python benchmarks/decode_model.py --shape qwen-0.5b --distinct 24       # each layer with weights of its own
    python benchmarks/decode_model.py --kinds bf16,2x8:cq-2 --cache 1152 --steps 16x1,16x1024        # with its cache
    python benchmarks/decode_model.py --profile bf16,int4                   # where the time of a step at batch 1 goes

A step is BATCHxTOKENS: 1x1 decodes a token, 1x2048 is a prompt. Everything but the products is the same for all kinds
(decode_layers.py): attention over a full static cache, fused qkv and gate-up, and the head is quantised too,
of which a prompt needs one row. Layers take turns with `--distinct` sets of weights, more than the L2 cache holds, and
have a cache of keys and values each, so that 70B in bf16 leaves room for long prompts. Times are medians of replays of
the whole step, weights from memory. Results are written after each line. On a CPU a tiny model runs once, untimed.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from decode_layers import ON_GPU, SHAPES, Model, Shape
from decode_products import OURS, PEERS, compile_ahead, error_of, product

START = time.monotonic()
CACHES = ("f16", "bf16", "f8e4m3", "int8", "int4", "cq-4", "cq-2")
"""Types of `lowlp.KVCache`; without one the cache is bfloat16, and attention not lowlp's."""


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
        text = f"{row['kind']:15} {step:>9}: {row['ms']:8.3f} ms {speed:9.0f} tokens/s {ratio}"
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
        model.step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model.step()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def median_ms(graph: Any, seconds: float = 0.15) -> float:
    """Of replays, each between two events."""
    times: list[float] = []
    began = time.monotonic()
    while len(times) < 3 or (time.monotonic() - began < seconds and len(times) < 60):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        graph.replay()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b))
    return sorted(times)[len(times) // 2]


def warm(graph: Any, seconds: float = 0.3) -> None:
    """Replays for some time."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        graph.replay()
        torch.cuda.synchronize()


def profiled(graph: Any) -> dict[str, Any]:
    """Of one replay, by kernel: microseconds; of these those in which it alone was what the others waited for, from the
    end of all before it to its own; and launches. Products of lowlp apart by their place in a layer."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        graph.replay()
        torch.cuda.synchronize()
    events = [event for event in found.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    spans = sorted((event.time_range.end, event.time_range.start, event.name) for event in events)
    first = until = min(start for _, start, _ in spans)
    products = sum(name.startswith("linear") for _, _, name in spans)
    kernels: dict[str, list[tuple[float, float]]] = {}
    place = 0
    for end, start, name in spans:
        label = name[:80]
        if name.startswith("linear"):
            label += f" {('qkv', 'o', 'gate_up', 'down')[place % 4] if place < products - 1 else 'head'}"
            place += 1
        kernels.setdefault(label, []).append((end - start, end - until))
        until = end
    rows = [
        {"alone_us": sum(alone for _, alone in times), "us": sum(us for us, _ in times), "launches": len(times)}
        | {"name": name}
        for name, times in kernels.items()
    ]
    return {"span_us": until - first, "kernels": sorted(rows, key=lambda row: -row["alone_us"])}


def measure(name: str, shape: Shape, given: argparse.Namespace, results: Results, profiles: list[str]) -> None:
    """All steps of a kind; of one in `profiles` where their time goes."""
    kind, _, kv = name.partition(":")
    try:
        distinct = min(given.distinct, shape.layers)
        names = [name for name in shape.products() if name != "head"]
        products = [{name: product(kind, shape, name) for name in names} for _ in range(distinct)]
        head = product(kind, shape, "head")
        checked = kind in OURS and given.check and name not in profiles
        error = error_of(kind, shape, 8) if checked else None
        for batch, tokens in given.profile_steps if name in profiles else given.steps:
            if time.monotonic() - START > given.budget:
                results.fail(f"{name} {batch} x {tokens}: no time left")
                return
            # A prompt fills its cache, which causal attention has to know by its extent.
            length = given.cache if tokens == 1 else tokens
            model = Model(shape, products, head, batch, tokens, length, kv or None)
            if not ON_GPU:
                assert model.step().shape == (batch,)
                continue
            graph = captured(model)
            if not bool(torch.isfinite(model.last).all()):
                raise ValueError(f"{batch} x {tokens}: not all numbers are finite")
            if (batch, tokens) == given.steps[0]:
                # Making weights leaves clocks low.
                warm(graph)
            if name not in profiles:
                results.add({"kind": name, "batch": batch, "tokens": tokens, "ms": median_ms(graph), "error": error})
            else:
                found = profiled(graph)
                results.fields["profiles"][f"{name} {batch} x {tokens}"] = found
                print(f"  one replay of {batch} x {tokens}: {found['span_us']:.0f} us")
                for row in found["kernels"][:12]:
                    alone, us = (row[name] / row["launches"] for name in ("alone_us", "us"))
                    print(f"  {row['launches']:4} x {alone:7.2f} us alone of {us:7.2f}: {row['name'][:60]}", flush=True)
                results.save()
            del model, graph
            torch.cuda.empty_cache()
    except Exception as error:  # one that is not installed, or refuses
        results.fail(f"{name:15} {type(error).__name__}: {str(error)[:300]}")
    finally:
        if ON_GPU:
            torch.cuda.empty_cache()


def table(fields: dict[str, Any]) -> str:
    """Results as Markdown: tokens a second, and how many times as many as in bf16."""
    ms = {(row["kind"], row["batch"], row["tokens"]): row["ms"] for row in fields["results"]}
    steps = list(dict.fromkeys((batch, tokens) for _, batch, tokens in ms))
    heads = [f"batch {batch}" if tokens == 1 else f"{batch} x {tokens} tokens" for batch, tokens in steps]
    lines = [f"| {fields['shape']['name']} | {' | '.join(heads)} |", f"|---|{'--:|' * len(steps)}"]
    for kind in dict.fromkeys(kind for kind, _, _ in ms):
        cells = []
        for batch, tokens in steps:
            took, base = ms.get((kind, batch, tokens)), ms.get(("bf16", batch, tokens))
            ratio = f" ({base / took:.2f})" if took and base and kind != "bf16" else ""
            cells.append(f"{batch * tokens / took * 1e3:.0f}{ratio}" if took else "")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def steps_of(text: str) -> list[tuple[int, int]]:
    """'1x1,32x1' as pairs."""
    pairs = [step.split("x") for step in text.split(",")]
    return [(int(batch), int(tokens)) for batch, tokens in pairs]


def kinds_of(text: str) -> list[str]:
    """Names of kinds, with or without a type of cache. Raises `argparse.ArgumentTypeError` for others."""
    kinds = [kind for kind in text.split(",") if kind]
    for name in kinds:
        kind, _, kv = name.partition(":")
        if kind not in (*PEERS, *OURS) or kv not in ("", *CACHES):
            raise argparse.ArgumentTypeError(
                f"{name!r} is none of {', '.join((*PEERS, *OURS))} with :{'|'.join(CACHES)}"
            )
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
    parser.add_argument("--profile-steps", type=steps_of, default=[(1, 1)], help="of which steps; 1x1")
    parser.add_argument("--check", action="store_true", help="compare a product of each kind with float64 first")
    parser.add_argument("--prepare", action="store_true", help="compile kernels into their cache, and end")
    parser.add_argument("--prepared", action="store_true", help="kernels are compiled already")
    parser.add_argument("--out", type=Path, default=Path("decode.json"))
    parser.add_argument("--table", type=Path, help="results, to print as a table")
    given = parser.parse_args()
    if given.table:
        print(table(json.loads(given.table.read_text())))
        return
    shape = SHAPES[given.shape]
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if ON_GPU else "CPU",
        "torch": torch.__version__,
        "shape": {"name": given.shape, **vars(shape)},
        "cache": given.cache,
        "distinct sets of weights": given.distinct,
    }
    results = Results(given.out, about)
    rows = sorted({batch * tokens for batch, tokens in given.steps}, reverse=True)
    of_head = {batch for batch, _ in given.steps}
    caches = {kind.partition(":")[2] for kind in given.kinds} - {""}
    ours = list(dict.fromkeys(kind for kind in (name.partition(":")[0] for name in given.kinds) if kind in OURS))
    jobs = [
        (kind, shape, name, count)
        for count in rows
        for kind in reversed(ours)
        for name in shape.products()
        if name != "head" or count in of_head
    ]
    of_caches = [(kv, shape, *step, given.cache) for kv in sorted(caches) for step in given.steps]
    print(f"{about['device']}, torch {torch.__version__}, {given.shape}; {len(jobs)} kernels", flush=True)
    if not given.prepared:
        compile_ahead(jobs, of_caches, results.fail)
        print(f"compiled at {time.monotonic() - START:.0f} s", flush=True)
    if given.prepare:
        return
    for kind in given.kinds:
        measure(kind, shape, given, results, [])
    # Last, since a profiler that was on may slow what follows.
    for kind in given.profile:
        measure(kind, shape, given, results, given.profile)
    results.save()


if __name__ == "__main__":
    main()
