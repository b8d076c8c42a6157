"""Tokens per second of a model of Llama 3.1 70B's shape on one GPU and on two, one CUDA graph a step, NCCL in it.

    python benchmarks/decode_on_two_gpus.py --out one.json
    torchrun --nproc-per-node 2 benchmarks/decode_on_two_gpus.py --out two.json --beside one.json

The model, its kinds of weights and how it is timed are those of `decode_model.py`; q, k, v, gate, up and the head are
cut along N, o and down along K by the styles of `lowlp.torch.parallel`. Each rank has random codes of its parts. With
`--beside` the times of one GPU are held against those of two: int8 is asked to be 1.5 times as fast, int4 1.3 times.
`--profile` says where the time of a step goes, with NCCL's waiting for the other rank in its own kernels.
Without a GPU a tiny model takes one step by gloo, and its ranks must agree on the words.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from decode_layers import DEVICE, DTYPE, ON_GPU, SHAPES, Model, Shape
from decode_model import Results, captured, profiled, steps_of
from decode_products import OURS, compile_ahead, ours
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import parallelize_module

import lowlp.torch
from lowlp.torch.parallel import ColwiseParallel, RowwiseParallel

ASKED = {"int8": 1.5, "int4": 1.3}


def of_rank(shape: Shape, ranks: int) -> Shape:
    """The shape of the parts of each of some ranks."""
    parts = {name: getattr(shape, name) for name in ("feed", "heads", "kv_heads", "words")}
    for name, extent in parts.items():
        if extent % ranks:
            raise SystemExit(f"{ranks} ranks do not divide {name} = {extent}")
    return replace(shape, **{name: extent // ranks for name, extent in parts.items()})


def style_of(name: str, shape: Shape, sums: str) -> Any:
    """How a product of the whole shape is divided."""
    if name in ("o", "down"):
        return RowwiseParallel(sums=sums)
    if name == "head":
        return ColwiseParallel(output_layouts=Replicate())
    heads = [shape.heads, shape.kv_heads, shape.kv_heads]
    return ColwiseParallel(blocks=[count * shape.head for count in heads]) if name == "qkv" else ColwiseParallel()


def divided(kind: str, shape: Shape, name: str, mesh: Any, sums: str) -> Any:
    """The part of a product that this rank has: a module without weights, divided, gets random ones of its part. One
    rank has the whole, and nothing to exchange."""
    n, k, epilogue = shape.products()[name]
    filled = ours(kind, *of_rank(shape, mesh.size()).products()[name])
    if mesh.size() == 1:
        return filled
    options = {"bias": False, "epilogue": epilogue, "activation": filled.activation, "dtype": DTYPE}
    family = filled._fields["family"]
    module = lowlp.torch.Linear(k, n, filled.codec, device="meta", family=family, **options).eval()
    parallelize_module(module, mesh, style_of(name, shape, sums))
    assert json.loads(module._stored_header) == json.loads(filled._stored_header)
    module._set_weights({part: filled.get_buffer(part) for part in filled._names}, filled._stored_header)
    return module


def median_ms(graph: Any, replays: int) -> float:
    """Of so many replays, each between two events, after as many that are not counted: NCCL waits for ranks that replay
    less often, so no clock may say how many there are."""
    times: list[float] = []
    for _ in range(2 * replays):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        graph.replay()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last))
    return sorted(times[replays:])[replays // 2]


def measure(kind: str, shape: Shape, mesh: Any, given: argparse.Namespace, results: Results) -> None:
    """All steps of a kind."""
    torch.manual_seed(mesh.get_local_rank())
    names = [name for name in shape.products() if name != "head"]
    count = min(given.distinct, shape.layers)
    products = [{name: divided(kind, shape, name, mesh, given.sums) for name in names} for _ in range(count)]
    head = divided(kind, shape, "head", mesh, given.sums)
    for batch, tokens in given.steps:
        # Words and their table are the same on all ranks.
        torch.manual_seed(1)
        # A rank has some of the heads, and after the head the logits of all words.
        part = replace(of_rank(shape, mesh.size()), words=shape.words)
        model = Model(part, products, head, batch, tokens, given.cache)
        with torch.no_grad():
            words = model.step()
        every = [torch.empty_like(words) for _ in range(mesh.size())]
        dist.all_gather(every, words)
        if not all(torch.equal(found, every[0]) for found in every):
            raise ValueError(f"{kind} {batch} x {tokens}: ranks found other words: {every}")
        if not ON_GPU:
            continue
        words = words.clone()
        graph = captured(model)
        if not torch.equal(model.found, words):
            raise ValueError(f"{kind} {batch} x {tokens}: the graph found {model.found}, the step before it {words}")
        dist.barrier()
        ms = median_ms(graph, given.replays)
        if mesh.get_local_rank() == 0:
            results.add({"kind": kind, "batch": batch, "tokens": tokens, "ms": ms, "gpus": mesh.size()})
            if given.profile:
                results.fields["profiles"][f"{kind} {batch} x {tokens}"] = profiled(graph)
                results.save()
        elif given.profile:
            graph.replay()
            torch.cuda.synchronize()
        del model, graph
        torch.cuda.empty_cache()


def beside(results: Results, path: Path) -> None:
    """Prints how many times as fast these are as those of a file."""
    for row in json.loads(path.read_text())["results"]:
        ms = results.find(row["kind"], row["batch"], row["tokens"])
        if ms:
            asked = ASKED.get(row["kind"])
            verdict = f", asked {asked}: {'met' if row['ms'] / ms >= asked else 'missed'}" if asked else ""
            print(f"{row['kind']} {row['batch']} x {row['tokens']}: {row['ms'] / ms:.2f}x of one GPU{verdict}")


def main() -> None:
    """Joins the ranks, measures, compares."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--shape", choices=list(SHAPES), default="70b" if ON_GPU else "tiny")
    parser.add_argument("--kinds", default="int8,int4", help=f"some of {', '.join(OURS)}")
    parser.add_argument("--steps", type=steps_of, default=steps_of("1x1,16x1"), help="BATCHxTOKENS, ...")
    parser.add_argument("--cache", type=int, default=256, help="tokens of the static cache")
    parser.add_argument("--distinct", type=int, default=8, help="sets of weights that layers take turns with")
    parser.add_argument("--sums", choices=("auto", "x", "f32"), default="auto", help="type in which ranks add")
    parser.add_argument("--replays", type=int, default=40, help="of a step, as many on all ranks")
    parser.add_argument("--profile", action="store_true", help="also one replay of each step, by kernel")
    parser.add_argument("--beside", type=Path, help="results of one GPU")
    parser.add_argument("--out", type=Path, default=Path("decode-gpus.json"))
    given = parser.parse_args()
    kinds = [kind for kind in given.kinds.split(",") if kind]
    for kind in kinds:
        if kind not in OURS:
            parser.error(f"--kinds: {kind!r} is none of {', '.join(OURS)}")
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if ON_GPU:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        backend = "nccl" if ON_GPU else "gloo"
        store = dist.FileStore(f"{tempfile.mkdtemp()}/store", 1) if ranks == 1 else None
        dist.init_process_group(backend, **({"store": store, "rank": 0, "world_size": 1} if store else {}))
    shape, mesh = SHAPES[given.shape], init_device_mesh(DEVICE, (dist.get_world_size(),))
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if ON_GPU else "CPU",
        "gpus": mesh.size(),
        "torch": torch.__version__,
        "shape": {"name": given.shape, **vars(shape)},
        "cache": given.cache,
        "distinct sets of weights": given.distinct,
        "sums": given.sums,
    }
    results = Results(given.out, about)
    if rank == 0:
        print(f"{about['device']} x {mesh.size()}, torch {torch.__version__}, {given.shape}", flush=True)
        part = of_rank(shape, mesh.size())
        rows = [batch * tokens for batch, tokens in given.steps]
        sums = dict.fromkeys(("o", "down"), given.sums) if mesh.size() > 1 else {}
        names = [(name, sums.get(name, "x")) for name in shape.products()]
        jobs = [(kind, part, name, count, of, {}) for count in rows for kind in kinds for name, of in names]
        compile_ahead(jobs, [], results.fail)
    dist.barrier()
    for kind in kinds:
        measure(kind, shape, mesh, given, results)
    if rank == 0:
        results.save()
        if given.beside:
            beside(results, given.beside)
        print(f"counted: {len(kinds)} kinds of weights on {mesh.size()} ranks")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
