"""A product compiled and saved on one machine, loaded and launched on another, which has no compiler.

The first half needs the package lowlp, and no GPU. The second half needs `lowlp_runtime`, NumPy and PyTorch alone: it
loads the kernel and the packed weights, multiplies on the GPU, and compares. Without a GPU it ends with what the kernel
would take.

    python examples/saved_linear.py                  both halves, each in a process of its own
    python examples/saved_linear.py --save FOLDER    the first half: kernel, weights, x, and y by the CPU target
    python examples/saved_linear.py --load FOLDER    the second half
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

N, K, ROWS, GROUP = 256, 512, 8, 128
LIMIT = 2e-3


def save(folder: Path, target: str) -> None:
    """Compiles, and writes everything that the other machine needs."""
    import lowlp

    rng = np.random.default_rng(0)
    qw = lowlp.quantize(rng.normal(size=(N, K)).astype(np.float32), "int4", group_size=GROUP)
    kernel = lowlp.compile_linear(n=N, k=K, m=(1, 16), weight="int4", group_size=GROUP, target=target)
    kernel.save(folder / "linear.lowlp")
    arrays, header = qw.to_arrays()
    np.savez(folder / "weights.npz", **arrays)
    (folder / "weights.json").write_text(header, encoding="utf-8")
    x = rng.normal(size=(ROWS, K)).astype(np.float16)
    np.savez(folder / "check.npz", x=x, y=lowlp.linear(x, qw))
    size = (folder / "linear.lowlp").stat().st_size
    print(f"saved      {kernel.name} for {target}, {size} bytes, and weights of {qw.nbytes} bytes")


def load(folder: Path) -> None:
    """Launches what `save` wrote. Imports no compiler."""
    import lowlp_runtime

    kernel = lowlp_runtime.load(folder / "linear.lowlp")
    with np.load(folder / "weights.npz") as stored:
        qw = dict(stored), (folder / "weights.json").read_text(encoding="utf-8")
    with np.load(folder / "check.npz") as stored:
        x, wanted = stored["x"], stored["y"]
    print(f"loaded     {kernel}, which takes")
    for operand in kernel.description.require_product().operands:
        print(f"  {operand.name:<10} {operand.role:<10} {operand.element:<8} {list(operand.shape) or ''}")
    assert "lowlp" not in sys.modules
    if lowlp_runtime.why_no_device():
        print(f"no GPU     {lowlp_runtime.why_no_device()}")
        return
    import torch

    y = kernel(torch.from_numpy(x).cuda(), qw)
    error = np.linalg.norm(y.float().cpu().numpy() - wanted) / np.linalg.norm(wanted.astype(np.float32))
    print(f"multiplied {list(y.shape)}, error {error:.1e} against the CPU target")
    if not error <= LIMIT:
        raise SystemExit(f"the error is {error:.1e}, over {LIMIT:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", metavar="FOLDER", type=Path, help="compile and write there")
    parser.add_argument("--load", metavar="FOLDER", type=Path, help="load from there and launch")
    parser.add_argument("--target", default="sm_90a", help="architecture to compile for (default: %(default)s)")
    options = parser.parse_args()
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
        save(options.save, options.target)
    if options.load:
        load(options.load)
    if not options.save and not options.load:
        with tempfile.TemporaryDirectory() as folder:
            for half in ("--save", "--load"):
                command = [sys.executable, __file__, half, folder, "--target", options.target]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
