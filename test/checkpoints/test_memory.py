"""What reading needs beside the packed model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from genuine_files import write

ROWS, COLUMNS, LAYERS = 16384, 8192, 4
READ = """
import resource, sys
import lowlp
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kept = [value for _, value in lowlp.checkpoints.read(sys.argv[1])]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, sum(value.nbytes for value in kept) >> 10)
"""


def test_peak_is_the_packed_model_and_less_than_half_a_gibibyte(tmp_path: Path) -> None:
    """Codes of all layers, a byte each, would take 512 MiB, and the file, mapped, 256 MiB."""
    tensors = {}
    for layer in range(LAYERS):
        words = torch.randint(-(2**31), 2**31, (COLUMNS // 8, ROWS), dtype=torch.int64).to(torch.int32)
        zeros = torch.full((COLUMNS // 128, ROWS // 8), 0x77777777, dtype=torch.int32)
        scales = torch.ones(COLUMNS // 128, ROWS, dtype=torch.float16)
        tensors |= {f"{layer}.qweight": words, f"{layer}.qzeros": zeros, f"{layer}.scales": scales}
    write(tmp_path, tensors, {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True})
    done = subprocess.run([sys.executable, "-c", READ, tmp_path], capture_output=True, text=True, check=True)
    peak_kib, packed_kib = map(int, done.stdout.split())
    assert packed_kib > 256 << 10
    assert peak_kib < packed_kib + (350 << 10)
