"""What a kernel prints on a GPU, promises that hold, and blocks that end early."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

SIZE = 4


def main() -> None:
    """Launches three blocks: the second one ends before it stores. A GPU prints to the standard output of the process,
    so the test runs this file in a process of its own."""
    import lowlp
    from lowlp import language as ll

    @lowlp.kernel(grid=(3,), num_threads=32)
    def speak(y: ll.pointer("int32"), n: ll.i32, f: ll.f32) -> None:
        (block,) = ll.block_indices()
        ll.assume_divisible(n, 4)
        ll.print("100% of n =", n, "and f =", f * 2.0, 7, n > 3)
        ll.print("block", block * 10000000000, all_blocks=True)
        sums = ll.sum(ll.iota(0, layout=lowlp.spatial(SIZE, 8), dtype="int32"), 1)
        ll.print_tile("sums", sums)
        if block == 1:
            ll.exit()
        ll.store_global(sums, ll.view_global(y, shape=[3, SIZE]), offsets=[block, 0])

    y = torch.full((3, SIZE), -1, dtype=torch.int32, device="cuda")
    lowlp.compile(speak, lowlp.compiler.current_arch())(y, 12, 0.25)
    torch.cuda.synchronize()
    print("y", y.cpu().tolist(), flush=True)


def test_a_gpu_prints_and_blocks_end_early() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.count("100% of n = 12 and f = 0.5 7 1") == 1
    assert sorted(line for line in lines if line.startswith("block")) == [f"block {i * 10**10}" for i in range(3)]
    assert sorted(line for line in lines if line.startswith("sums")) == [f"sums[{i}] = {8 * i}" for i in range(SIZE)]
    rows = [[8 * i if block != 1 else -1 for i in range(SIZE)] for block in range(3)]
    assert lines[-1] == f"y {rows}"


if __name__ == "__main__":
    main()
