"""`lowlp.torch.parallel` on GPUs: NCCL within a CUDA graph, and by gloo ranks that share one GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import Replicate  # noqa: E402
from torch.distributed.tensor.parallel import parallelize_module  # noqa: E402

import lowlp  # noqa: E402
import lowlp.torch  # noqa: E402
from lowlp.torch.parallel import ColwiseParallel, ExpertParallel, RowwiseParallel, load  # noqa: E402

WIDTH, INNER, EXPERTS, TOP = 512, 1024, 6, 2
ROWS = (1, 16, 100)
LIMITS = {torch.float16: 2e-3, torch.bfloat16: 6e-3}
"""Of what ranks add: x and y of `down` are rounded to the type of x, and results of experts on each rank."""
NO_WORSE = 2.0
"""Sums of two ranks may be so many times as far from the exact product as one GPU's is: added in float16 they are
rounded twice more, and kernels for other shapes may round weights where one GPU's does not."""


class Block(torch.nn.Module):
    """Attention's projections, gate and up, down, and experts, without weights."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        codec = lowlp.Codec.parse("int4 g64 f16")
        of = {"bias": False, "dtype": dtype, "device": "meta", "batch_invariant": True}
        self.qkv = lowlp.torch.Linear(WIDTH, 2 * WIDTH, codec, **of)
        self.gate_up = lowlp.torch.Linear(WIDTH, 2 * INNER, codec, epilogue="silu_mul", **of)
        self.down = lowlp.torch.Linear(INNER, WIDTH, codec, **of)
        self.experts = lowlp.torch.Experts.empty(EXPERTS, WIDTH, 256, codec, device="meta", dtype=dtype)

    def forward(self, x: Any, ids: Any, weights: Any) -> Any:
        return self.qkv(x), self.down(self.gate_up(x)), self.experts(x, ids, weights)


def save(folder: Path, dtype: Any) -> None:
    """A checkpoint of random weights."""
    family = "bf16" if dtype == torch.bfloat16 else "f16"
    shapes = {
        "qkv": (2 * WIDTH, WIDTH),
        "gate_up": (2 * INNER, WIDTH),
        "down": (WIDTH, INNER),
        "experts.gate_up": (EXPERTS, 512, WIDTH),
        "experts.down": (EXPERTS, WIDTH, 256),
    }
    torch.manual_seed(0)
    weights = {name: torch.randn(*shape) / shape[-1] ** 0.5 for name, shape in shapes.items()}
    codec = lowlp.Codec.parse("int4 g64 f16")
    lowlp.checkpoints.save(
        folder, {f"{name}.weight": lowlp.quantize(w, codec, activation=family) for name, w in weights.items()}
    )


def distance(found: Any, wanted: Any) -> float:
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


def check(mesh: Any, folder: str, dtype: Any, how: str, graph: bool) -> None:
    """What this rank computes is its part of what one GPU does."""
    whole = Block(dtype)
    load(whole, folder, device="cuda")
    plan = {"qkv": ColwiseParallel(blocks=(WIDTH, 256, 256)), "gate_up": ColwiseParallel(), "down": RowwiseParallel()}
    cut = parallelize_module(Block(dtype), mesh, {**plan, "experts": ExpertParallel(how)})
    load(cut, folder, device="cuda")
    gathers = parallelize_module(Block(dtype), mesh, {"gate_up": ColwiseParallel(output_layouts=Replicate())})
    load(gathers, folder, device="cuda")
    rank, ranks = mesh.get_local_rank(), mesh.size()
    down = whole.down.dequantize().double()
    rows = torch.cat([part.chunk(ranks)[rank] for part in torch.arange(2 * WIDTH).split((WIDTH, 256, 256))]).cuda()
    for m in ROWS:
        torch.manual_seed(m)
        x = torch.randn(m, WIDTH, dtype=dtype, device="cuda")
        ids, weights = torch.randint(-1, EXPERTS, (m, TOP), device="cuda"), torch.rand(m, TOP, device="cuda")
        columns, y, of_experts = whole(x, ids, weights)
        found = cut(x, ids, weights)
        if graph:
            replayed = torch.cuda.CUDAGraph()
            with torch.cuda.graph(replayed):
                found = cut(x, ids, weights)
            for part in found:
                part.fill_(float("nan"))
            replayed.replay()
        assert torch.equal(found[0], columns[:, rows]), (m, "columns")
        exact = whole.gate_up(x).double() @ down.T
        far = {"sums": distance(found[1], y), "experts": distance(found[2], of_experts)}
        assert max(far.values()) <= LIMITS[dtype], (m, dtype, far)
        errors = distance(found[1], exact), distance(y, exact)
        assert errors[0] <= NO_WORSE * errors[1], (m, dtype, errors)
        assert torch.equal(gathers.gate_up(x), whole.gate_up(x)), (m, "gathered")


def main(rank: int, ranks: int, backend: str, folder: str) -> None:
    """One rank."""
    torch.cuda.set_device(rank % torch.cuda.device_count())
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": "0" if backend == "gloo" else str(rank)}
    dist.init_process_group(backend, store=dist.FileStore(f"{folder}/store", ranks), rank=rank, world_size=ranks)
    mesh = init_device_mesh("cuda", (ranks,))
    with torch.no_grad():
        for dtype, how in ((torch.float16, "experts"), (torch.bfloat16, "inner")):
            path = f"{folder}/{dtype}".replace("torch.", "")
            if rank == 0:
                save(Path(path), dtype)
            dist.barrier()
            check(mesh, path, dtype, how, graph=backend == "nccl")
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_ranks_compute_what_one_gpu_does(backend: str, tmp_path: Path) -> None:
    # NCCL takes a GPU for each rank; ranks of gloo share them, and exchange through the host.
    ranks = min(2, torch.cuda.device_count()) if backend == "nccl" else 2
    begun = [
        subprocess.Popen(
            [sys.executable, __file__, str(rank), str(ranks), backend, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    said = [process.communicate(timeout=300)[0] for process in begun]
    assert [process.returncode for process in begun] == [0] * ranks, "\n".join(said)[-3000:]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
