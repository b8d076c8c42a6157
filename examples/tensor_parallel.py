"""A decoder on several ranks: each reads its part of one checkpoint, and all compute what one computes.

Queries, keys and values, and gate and up, are cut along N, whole heads each; what follows them is cut along K, and the
ranks add up. Communication is `torch.distributed`'s: NCCL on GPUs, one for each rank, and gloo on a CPU.

    python examples/tensor_parallel.py                                    one rank
    torchrun --nproc-per-node 2 examples/tensor_parallel.py [--codec int4 --layers 2 --width 512 --tokens 7]
"""

import argparse
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

import lowlp
import lowlp.errors
import lowlp.torch
from lowlp.torch.parallel import ColwiseParallel, RowwiseParallel, load

HEAD = 64


class Layer(torch.nn.Module):
    """Attention and a gated MLP, with norms before both; `width` columns, four times as many inside of the MLP."""

    def __init__(self, width, codec, dtype, device):
        super().__init__()
        shapes = {
            "qkv": (width, 3 * width),
            "o": (width, width),
            "gate_up": (width, 8 * width),
            "down": (4 * width, width),
        }
        for name, (k, n) in shapes.items():
            # With one order of sums for all M and for all parts: columns have the bits that one rank computes.
            options = {"batch_invariant": True, "epilogue": "silu_mul" if name == "gate_up" else None}
            self.add_module(name, lowlp.torch.Linear(k, n, codec, bias=False, dtype=dtype, device=device, **options))
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(width, dtype=dtype, device=device) for _ in range(2))

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, -1, HEAD)).permute(1, 2, 0, 3)
        heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(heads.transpose(0, 1).flatten(1))
        return x + self.down(self.gate_up(self.norms[1](x)))


def save_random(folder, layers, width, codec, dtype):
    """A checkpoint of random weights, quantised one at a time."""
    like = Layer(width, codec, dtype, "cpu")

    def tensors():
        torch.manual_seed(0)
        for number in range(layers):
            for name, module in like.named_children():
                if isinstance(module, lowlp.torch.Linear):
                    w = torch.randn(module.out_features, module.in_features) / module.in_features**0.5
                    family = "bf16" if dtype == torch.bfloat16 else "f16"
                    yield f"{number}.{name}.weight", lowlp.quantize(w, lowlp.Codec.parse(codec), activation=family)
            for name, norm in like.norms.named_parameters():
                yield f"{number}.norms.{name}", norm.detach()

    lowlp.checkpoints.save(folder, tensors())


def main():
    """Cuts, loads, computes, compares."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--codec", default="int4 g64 f16")
    for name, default in (("layers", 2), ("width", 512), ("tokens", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if args.width % (HEAD * ranks):
        parser.error(f"--width must be a multiple of {HEAD} for each of {ranks} ranks, got {args.width}")
    on_gpu = torch.cuda.is_available() and torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else torch.device("cpu")
    dtype = torch.float16 if on_gpu else torch.float32
    if on_gpu:
        torch.cuda.set_device(device)
    # It says that a CPU multiplies slabs of dequantised weights.
    warnings.simplefilter("ignore", lowlp.errors.CpuProductWarning)
    began = time.monotonic()

    def say(number, text):
        if rank == 0:
            print(f"[{number}/4] {text} ({time.monotonic() - began:.1f} s)", flush=True)

    folder = [tempfile.mkdtemp()] if rank == 0 else [""]
    if ranks > 1:
        dist.init_process_group("nccl" if on_gpu else "gloo")
        dist.broadcast_object_list(folder, device=device)
    else:
        store = dist.FileStore(f"{folder[0]}/store", 1)
        dist.init_process_group("nccl" if on_gpu else "gloo", store=store, rank=0, world_size=1)
    mesh, path = init_device_mesh(device.type, (ranks,)), Path(folder[0]) / "model"
    if rank == 0:
        save_random(path, args.layers, args.width, args.codec, dtype)
    dist.barrier()
    say(1, f"rank 0 wrote {args.layers} layers in {args.codec}")

    def model():
        return torch.nn.Sequential(*[Layer(args.width, args.codec, dtype, "meta") for _ in range(args.layers)])

    # q, k and v lie one below the other, so each of them is cut; gate and up are without being named.
    plan = {
        "*.qkv": ColwiseParallel(blocks=3 * [args.width]),
        "*.o": RowwiseParallel(),
        "*.gate_up": ColwiseParallel(),
        "*.down": RowwiseParallel(),
    }
    parts = parallelize_module(model(), mesh, plan)
    read = load(parts, path, device=device)
    say(2, f"each of {ranks} ranks read its part, rank 0 {read.nbytes:,} of {read.of:,} bytes")

    torch.manual_seed(1)
    x = torch.randn(args.tokens, args.width).to(device, dtype)
    with torch.no_grad():
        y = parts(x)
        columns = parts[0].qkv(x)
    say(3, f"{args.tokens} tokens went through {device.type} with {'NCCL' if on_gpu else 'gloo'}")

    whole = model()
    load(whole, path, device=device)
    with torch.no_grad():
        wanted = whole(x)
        own = whole[0].qkv(x).unflatten(-1, (3, ranks, -1))[:, :, rank].flatten(1)
    # A CPU adds as PyTorch's product for the shape does; a GPU in the order that `batch_invariant` promises.
    same = torch.equal(columns, own) if on_gpu else torch.allclose(columns, own, rtol=1e-5, atol=1e-5)
    error = float((y.double() - wanted.double()).norm() / wanted.double().norm())
    verdict = torch.tensor([float(not same), error], device=device)
    dist.all_reduce(verdict, op=dist.ReduceOp.MAX)
    differ, worst = verdict.tolist()
    exactly = "to the bit" if on_gpu else "within 1e-5"
    say(4, f"columns are those of one rank {exactly}: {not differ}; the result's relative error is {worst:.1e}")
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])
    dist.destroy_process_group()
    assert not differ and worst < 2e-3
    if rank == 0:
        print(f"counted: {ranks} ranks compute what one does", flush=True)


if __name__ == "__main__":
    main()
