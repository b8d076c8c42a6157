"""Products of Llama 3.1 70B's shape divided among GPUs, held against one GPU's: bits of columns, errors of sums.

    torchrun --nproc-per-node 2 benchmarks/products_on_two_gpus.py --out products.json

Every rank makes the same random weights, whole, and cuts a copy of them by the styles of `lowlp.torch.parallel`: q, k
and v, and gate and up along N, with `batch_invariant`, whose columns must be those of the whole to the bit; o and down
along K, whose sums must be within 2e-3 of the whole's in float16. In bfloat16, which rounds y by up to 3.9e-3 a number,
both may be so far apart, and the errors against float64 say which is nearer. Without a GPU a tiny shape goes by gloo.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from decode_layers import DEVICE, ON_GPU, SHAPES, Shape
from decode_on_two_gpus import of_rank, style_of
from decode_products import OURS, compile_ahead, ours
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

LIMIT = {torch.float16: 2e-3, torch.bfloat16: 6e-3}
NAMES = ("qkv", "gate_up", "o", "down")
SUMS = ("o", "down")


def distance(found: Any, wanted: Any) -> float:
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


def columns_of(y: Any, name: str, shape: Shape, mesh: Any) -> Any:
    """Those of the whole y that this rank computes."""
    heads = [shape.heads, shape.kv_heads, shape.kv_heads]
    widths = [count * shape.head for count in heads] if name == "qkv" else [y.shape[-1]]
    return torch.cat([part.chunk(mesh.size(), -1)[mesh.get_local_rank()] for part in y.split(widths, -1)], -1)


def compare(kind: str, shape: Shape, name: str, dtype: Any, rows: list[int], mesh: Any) -> list[dict[str, Any]]:
    """Of each number of rows what this rank finds."""
    torch.manual_seed(0)
    n, k, epilogue = shape.products()[name]
    whole = ours(kind, n, k, epilogue, dtype, batch_invariant=name not in SUMS)
    cut = parallelize_module(copy.deepcopy(whole), mesh, style_of(name, shape, "auto"))
    meant = whole.dequantize().double() if name in SUMS else None
    found = []
    for count in rows:
        x = torch.randn(count, k, device=DEVICE, dtype=dtype)
        wanted = whole(x)
        row = {"kind": kind, "product": name, "dtype": str(dtype).removeprefix("torch."), "rows": count}
        if meant is None:
            same = torch.equal if ON_GPU else torch.allclose
            found.append(row | {"same": same(cut(x), columns_of(wanted, name, shape, mesh))})
            continue
        width = k // mesh.size()
        y = cut(x[:, mesh.get_local_rank() * width :][:, :width].contiguous())
        exact = x.double() @ meant.T
        errors = {"error": distance(y, exact), "error of one GPU": distance(wanted, exact)}
        found.append(row | {"apart": distance(y, wanted), **errors})
    return found


def main() -> None:
    """Joins the ranks, compares, prints what the worst rank found."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--shape", choices=list(SHAPES), default="70b" if ON_GPU else "tiny")
    parser.add_argument("--kinds", default="int8,int4", help=f"some of {', '.join(OURS)}")
    parser.add_argument("--rows", default="1,16,300")
    parser.add_argument("--out", type=Path, default=Path("products.json"))
    given = parser.parse_args()
    kinds, rows, shape = given.kinds.split(","), [int(count) for count in given.rows.split(",")], SHAPES[given.shape]
    if ON_GPU:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if not dist.is_initialized():
        dist.init_process_group("nccl" if ON_GPU else "gloo")
    mesh = init_device_mesh(DEVICE, (dist.get_world_size(),))
    lead = mesh.get_local_rank() == 0
    if lead:
        wholes, parts = [(name, "x", name not in SUMS) for name in NAMES], [(name, "auto", False) for name in SUMS]
        parts += [(name, "x", shape.products()[name][0]) for name in NAMES if name not in SUMS]
        jobs = [
            (kind, of, name, count, sums, {"dtype": dtype, "batch_invariant": invariant})
            for of, products in ((shape, wholes), (of_rank(shape, mesh.size()), parts))
            for name, sums, invariant in products
            for kind in kinds
            for dtype in LIMIT
            for count in rows
        ]
        compile_ahead(jobs, [], print)
    dist.barrier()
    found: list[dict[str, Any]] = []
    with torch.no_grad():
        for kind in kinds:
            for name in NAMES:
                for dtype in LIMIT:
                    found += compare(kind, shape, name, dtype, rows, mesh)
    every: list[Any] = [None] * mesh.size()
    dist.all_gather_object(every, found)
    for row, *others in zip(*every, strict=True):
        for key in {"same", "apart", "error"} & row.keys():
            row[key] = (min if key == "same" else max)(other[key] for other in (row, *others))
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if ON_GPU else "CPU",
        "gpus": mesh.size(),
        "torch": torch.__version__,
        "shape": {"name": given.shape, **vars(shape)},
    }
    if lead:
        given.out.write_text(json.dumps({**about, "results": found}, indent=1) + "\n")
        for row in found:
            said = {key: f"{value:.1e}" if isinstance(value, float) else value for key, value in row.items()}
            print(", ".join(f"{key} {value}" for key, value in said.items()), flush=True)
    wrong = [
        row for row in found if not row.get("same", True) or row.get("apart", 0) > LIMIT[getattr(torch, row["dtype"])]
    ]
    dist.barrier()
    dist.destroy_process_group()
    assert not wrong, wrong
    if lead:
        print(f"counted: {len(found)} products on {mesh.size()} ranks")


if __name__ == "__main__":
    main()
