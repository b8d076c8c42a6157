"""Modules on several ranks, by gloo: columns have the bits of one rank's, sums are near."""

from __future__ import annotations

import copy
import json
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

import torch.distributed as dist  # noqa: E402
from example_programs import output_of_example  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import Replicate, Shard  # noqa: E402
from torch.distributed.tensor.parallel import parallelize_module  # noqa: E402

import lowlp  # noqa: E402
import lowlp.torch  # noqa: E402
from lowlp.errors import LowlpError  # noqa: E402
from lowlp.torch.parallel import ColwiseParallel, ExpertParallel, RowwiseParallel, load  # noqa: E402
from lowlp.weights.quantized_tensor import QuantizedTensor  # noqa: E402

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
WIDTH, INNER, WORDS = 64, 256, 80


def exact(n: int, k: int, dtype: str = "int4", seed: int = 0, **options: Any) -> QuantizedTensor:
    """Weights whose products with small integers are integers: exact in float32, in whatever order they are added."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 16, (n, k), dtype=np.uint8)
    scales = 2.0 ** rng.integers(0, 2, (n, k // 32))
    return QuantizedTensor(codes, dtype=dtype, scales=scales.astype(np.float16), group_size=32, **options)


def integers(*shape: int) -> Any:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(1)).float()


class Block(torch.nn.Module):
    """Gate and up in one module, and down."""

    def __init__(self, device: str | None = None) -> None:
        super().__init__()
        codec = exact(64, 64).codec
        if device:
            options = {"device": device, "dtype": torch.float32}
            self.words = lowlp.torch.Embedding(WORDS, WIDTH, codec, **options)
            self.qkv = lowlp.torch.Linear(WIDTH, 256, codec, **options)
            self.gate_up = lowlp.torch.Linear(WIDTH, 2 * INNER, codec, epilogue="silu_mul", bias=False, **options)
            self.down = lowlp.torch.Linear(INNER, WIDTH, codec, **options)
        else:
            of = lowlp.torch.Linear.from_quantized
            self.words = lowlp.torch.Embedding.from_quantized(exact(WORDS, WIDTH), dtype=torch.float32)
            self.qkv = of(exact(256, WIDTH, seed=1), integers(256))
            self.gate_up = of(exact(2 * INNER, WIDTH, seed=2), epilogue="silu_mul")
            self.down = of(exact(WIDTH, INNER, seed=3), integers(WIDTH))
        self.norm = torch.nn.LayerNorm(WIDTH, device=device)
        self.head = torch.nn.Linear(WIDTH, 24, bias=False, device=device)

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        self.mid = self.gate_up(x)
        y = self.down(self.mid.round().clamp(-3, 3))
        return self.head(self.norm(y)), self.qkv(x), y


PLAN = {
    "words": RowwiseParallel(),
    "qkv": ColwiseParallel(blocks=(128, 64, 64)),
    "gate_up": ColwiseParallel(),
    "down": RowwiseParallel(),
}


def in_ranks(ranks: int, body: Callable[..., None], folder: Path, *arguments: Any) -> None:
    """Calls `body(mesh, *arguments)` in so many processes."""
    store = str(folder / f"store-{ranks}-{body.__name__}")
    # Forked, since a process that begins anew imports PyTorch for seconds.
    torch.multiprocessing.start_processes(_rank, (ranks, store, body, arguments), nprocs=ranks, start_method="fork")


def _rank(rank: int, ranks: int, store: str, body: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, ranks), rank=rank, world_size=ranks)
    try:
        body(init_device_mesh("cpu", (ranks,)), *arguments)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def rows_of_blocks(mesh: Any, *sizes: int) -> list[int]:
    """The rows of this rank, of blocks that ranks divide."""
    rank, ranks, first, found = mesh.get_local_rank(), mesh.size(), 0, []
    for size in sizes:
        found += range(first + rank * size // ranks, first + (rank + 1) * size // ranks)
        first += size
    return found


# --- a model ----------------------------------------------------------------------------------------------------------


def check_model(mesh: Any, folder: str) -> None:
    ids = torch.randint(0, WORDS, (3, 5), generator=torch.Generator().manual_seed(4))
    whole = torch.load(f"{folder}/block.pt", weights_only=False)
    head, qkv, y = whole(ids)
    cut = parallelize_module(copy.deepcopy(whole), mesh, {**PLAN, "head": ColwiseParallel(output_layouts=Replicate())})
    read = parallelize_module(Block("meta"), mesh, PLAN)
    found = load(read, f"{folder}/checkpoint")
    cut_at = rows_of_blocks(mesh, 128, 64, 64)
    for model in (cut, read):
        with torch.no_grad():
            parts = model(ids)
        assert torch.equal(parts[1], qkv[..., cut_at]), "columns"
        torch.testing.assert_close(model.mid, whole.mid[..., rows_of_blocks(mesh, INNER)])
        assert torch.equal(parts[2], y), "integers are added up exactly"
        torch.testing.assert_close(parts[0], head)
    assert read.qkv.quantized == cut.qkv.quantized and read.down.quantized == cut.down.quantized
    assert (read.down.bias is None) == (mesh.get_local_rank() > 0)
    total = torch.tensor([float(found.nbytes)])
    dist.all_reduce(total)
    # The norm and the head, and no more, are read by all ranks; the first has the sums' bias.
    shared = sum(p.nbytes for p in (*whole.norm.parameters(), *whole.head.parameters()))
    headers = sum(module.header.nbytes for module in (whole.words, whole.qkv, whole.gate_up, whole.down))
    assert int(total) == found.of - headers + (mesh.size() - 1) * shared
    with pytest.raises(LowlpError, match=r"checkpoint: has, beyond the model, head\.weight"):
        load(
            torch.nn.ModuleDict({name: part for name, part in read.named_children() if name != "head"}),
            f"{folder}/checkpoint",
        )
    check_words(mesh, whole, cut)
    check_layouts(mesh)
    check_experts(mesh, folder)
    check_mistakes(mesh)
    if mesh.size() == 2:
        check_gradients(mesh)
        check_compiled(mesh)


def check_words(mesh: Any, whole: Any, cut: Any) -> None:
    every = torch.arange(WORDS)
    assert torch.equal(cut.words(every), whole.words(every))
    with pytest.raises(LowlpError, match="ids"):
        cut.words(torch.tensor([0, WORDS]))


def check_layouts(mesh: Any) -> None:
    """Uneven parts, gathered; x that comes in parts of rows; permuted columns; shards with codecs of their own."""
    qw, x = exact(208, 64), integers(4, 64)
    whole = lowlp.torch.Linear.from_quantized(qw)(x)
    ranks = mesh.size()

    def column(**options: Any) -> Any:
        return parallelize_module(lowlp.torch.Linear.from_quantized(qw), mesh, ColwiseParallel(**options))

    assert torch.equal(column(output_layouts=Replicate())(x), whole)
    widths = [16 * (len(part)) for part in np.array_split(np.arange(13), ranks)]
    mine = column()
    assert mine.out_features == widths[mesh.get_local_rank()] == mine(x).shape[-1]
    sequence = parallelize_module(
        lowlp.torch.Linear.from_quantized(qw),
        mesh,
        ColwiseParallel(input_layouts=Shard(0), output_layouts=Replicate()),
    )
    part = x.chunk(ranks)[mesh.get_local_rank()]
    assert torch.equal(sequence(part), whole)
    down = exact(64, 256)
    x = integers(4, 256)
    added = parallelize_module(
        lowlp.torch.Linear.from_quantized(down),
        mesh,
        RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0), sums="f32"),
    )
    wanted = lowlp.torch.Linear.from_quantized(down)(x)
    assert torch.equal(added(x), wanted.chunk(ranks)[mesh.get_local_rank()])
    by_sums = {
        sums: parallelize_module(
            lowlp.torch.Linear.from_quantized(down), mesh, RowwiseParallel(input_layouts=Replicate(), sums=sums)
        )(x.bfloat16() / 4)
        for sums in ("auto", "f32", "x")
    }
    nearest = lowlp.torch.Linear.from_quantized(down)(x.bfloat16() / 4)
    assert torch.equal(by_sums["auto"], nearest) and torch.equal(by_sums["f32"], nearest)
    assert by_sums["x"].dtype == torch.bfloat16 and not torch.equal(by_sums["x"], nearest)
    moved = exact(64, 256, permutation=np.random.default_rng(0).permutation(256))
    by_order = parallelize_module(
        lowlp.torch.Linear.from_quantized(moved), mesh, RowwiseParallel(input_layouts=Replicate())
    )
    assert torch.equal(by_order(x), lowlp.torch.Linear.from_quantized(moved)(x))
    shards = [exact(64, 256, seed=5), exact(128, 256, "uint4", seed=6)]

    def merged() -> Any:
        return lowlp.torch.MergedLinear([lowlp.torch.Linear.from_quantized(shard) for shard in shards])

    x = integers(2, 256)
    columns = parallelize_module(merged(), mesh, ColwiseParallel())
    assert torch.equal(columns(x), merged()(x)[:, rows_of_blocks(mesh, 64, 128)])
    rows = parallelize_module(merged(), mesh, RowwiseParallel(input_layouts=Replicate()))
    assert torch.equal(rows(x), merged()(x))


def check_experts(mesh: Any, folder: str) -> None:
    rng = np.random.default_rng(8)
    up, down = (
        lowlp.quantize(rng.normal(size=shape).astype(np.float32) / 8, "int6", group_size=32)
        for shape in ((5, 512, 64), (5, 64, 256))
    )
    biases = {"gate_up_bias": torch.randn(5, 512, generator=torch.Generator().manual_seed(2))}
    biases["down_bias"] = torch.randn(5, 64, generator=torch.Generator().manual_seed(3))
    x, ids = integers(7, 64), torch.from_numpy(rng.integers(-1, 6, (7, 2)))
    weights = torch.from_numpy(rng.random((7, 2))).float()
    wanted = lowlp.torch.Experts(up, down, **biases)(x, ids, weights)
    path = f"{folder}/experts-{mesh.get_local_rank()}"
    stored = {"gate_up.weight": up, "down.weight": down}
    stored |= {"gate_up.bias": biases["gate_up_bias"], "down.bias": biases["down_bias"]}
    lowlp.checkpoints.save(path, stored)
    for how in ("experts", "inner"):
        empty = lowlp.torch.Experts.empty(5, 64, 256, up.codec, bias=True, device="meta", dtype=torch.float32)
        parallelize_module(empty, mesh, ExpertParallel(how))
        found = load(empty, path)
        assert found.nbytes < 0.62 * found.of
        torch.testing.assert_close(empty(x, ids, weights), wanted, rtol=1e-5, atol=1e-5)
        module = lowlp.torch.Experts(up, down, **biases)
        parallelize_module(module, mesh, ExpertParallel(how))
        torch.testing.assert_close(module(x, ids, weights), wanted, rtol=1e-5, atol=1e-5)
        assert module.down.weight_bytes < 0.61 * lowlp.torch.Experts(up, down).down.weight_bytes


def check_mistakes(mesh: Any) -> None:
    ranks = mesh.size()

    def refused(module: Any, style: Any, message: str) -> None:
        with pytest.raises(LowlpError, match=message):
            parallelize_module(module, mesh, style)

    def linear(n: int, k: int, **options: Any) -> Any:
        return lowlp.torch.Linear.from_quantized(exact(n, k), **options)

    refused(
        linear(16, 64), ColwiseParallel(), rf"^N: 16 .* multiples of 16 only, into at most 1 parts, and {ranks} ranks"
    )
    refused(linear(64, 64), RowwiseParallel(multiple=64), rf"^K: 64 .* multiples of 64 only, .* and {ranks} ranks")
    refused(linear(64, 256, epilogue="relu"), RowwiseParallel(), r"^epilogue: relu is of whole sums")
    refused(
        linear(64, 256), ColwiseParallel(blocks=(40, 24)), r"^blocks: rows of each but the last .* of 16, .* got 40"
    )
    refused(linear(64, 256), ColwiseParallel(blocks=(32, 16)), r"^blocks: expected positive .* N = 64, got \[32, 16\]")
    refused(linear(208, 64), ColwiseParallel(output_layouts=Shard(0)), r"^output_layouts: S\(0\) .* of equal parts")
    with pytest.raises(LowlpError, match=r"^sums: must be one of auto, x, f32, got torch.float32"):
        RowwiseParallel(sums=torch.float32)
    moved = exact(64, 192, permutation=np.random.default_rng(0).permutation(192))
    refused(lowlp.torch.Linear.from_quantized(moved), RowwiseParallel(), r"^input_layouts: .*act-order.*Replicate\(\)")
    cut = parallelize_module(linear(64, 256), mesh, ColwiseParallel())
    refused(cut, RowwiseParallel(), r"^Linear: is cut already")
    words = lowlp.torch.Embedding.from_quantized(exact(64, 64))
    refused(words, ExpertParallel(), r"^Embedding: ExpertParallel is for")
    added = parallelize_module(linear(64, 256), mesh, RowwiseParallel())
    with pytest.raises(LowlpError, match=r"^x: expected the \d+ columns \d+ to \d+ .* got 256; cut the layer"):
        added(integers(2, 256))


def module_values(qw: QuantizedTensor) -> Any:
    return torch.from_numpy(qw.dequantize())


def check_gradients(mesh: Any) -> None:
    qw, weights = exact(208, 64), integers(3, 208)
    gathers = parallelize_module(
        lowlp.torch.Linear.from_quantized(qw), mesh, ColwiseParallel(output_layouts=Replicate())
    )
    for module in (lowlp.torch.Linear.from_quantized(qw), gathers):
        x = integers(3, 64).requires_grad_()
        (module(x) * weights).sum().backward()
        assert torch.equal(x.grad, weights @ module_values(qw))
    first, second = exact(256, 64, seed=2), exact(64, 256, seed=3)
    single = [lowlp.torch.Linear.from_quantized(part) for part in (first, second)]
    ranks = [lowlp.torch.Linear.from_quantized(part) for part in (first, second)]
    parallelize_module(ranks[0], mesh, ColwiseParallel())
    parallelize_module(ranks[1], mesh, RowwiseParallel())
    found = []
    for up, down in (single, ranks):
        x = integers(3, 64).requires_grad_()
        down(up(x)).square().sum().backward()
        found.append(x.grad)
    assert (found[1] - found[0]).norm() < 1e-5 * found[0].norm()


def check_compiled(mesh: Any) -> None:
    block = torch.nn.Sequential(*[lowlp.torch.Linear.from_quantized(exact(*shape)) for shape in ((256, 64), (64, 256))])
    x = integers(3, 64)
    wanted = block(x)
    parallelize_module(block, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    with torch.no_grad():
        found = torch.compile(block, fullgraph=True, backend="eager")(x)
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_compute_what_one_does(ranks: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    block = Block().eval()
    torch.save(block, tmp_path / "block.pt")
    quantised = {name: module for name, module in block.named_modules() if hasattr(module, "quantized")}
    kept = {f"{name}.{part}" for name, module in quantised.items() for part in (*module._names, "header")}
    others = {name: tensor.numpy() for name, tensor in block.state_dict().items() if name not in kept}
    weights = {f"{name}.weight": module.quantized for name, module in quantised.items()}
    lowlp.checkpoints.save(tmp_path / "checkpoint", {**weights, **others})
    in_ranks(ranks, check_model, tmp_path, str(tmp_path))


def run_benchmark(mesh: Any, name: str, *arguments: str) -> None:
    sys.argv = [name, "--kinds", "int4", *arguments]
    sys.path.insert(0, str(BENCHMARKS))
    # It ends with the group of processes.
    runpy.run_path(str(BENCHMARKS / name), run_name="__main__")


def test_a_step_of_the_benchmark(tmp_path: Path) -> None:
    # All words of a rank's logits are looked through: ranks that find other words, or none, are an error.
    out = tmp_path / "out.json"
    in_ranks(2, run_benchmark, tmp_path, "decode_on_two_gpus.py", "--steps", "3x1", "--out", str(out))
    assert json.loads(out.read_text())["gpus"] == 2


def test_products_of_the_benchmark(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    in_ranks(2, run_benchmark, tmp_path, "products_on_two_gpus.py", "--rows", "3", "--out", str(out))
    found = json.loads(out.read_text())["results"]
    assert len(found) == 8 and all(row["same"] for row in found if "same" in row)


def test_the_example_checks_itself() -> None:
    assert "counted: 1 ranks" in output_of_example("tensor_parallel.py", "--width", "128", "--layers", "1")
