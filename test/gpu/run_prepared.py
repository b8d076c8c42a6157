"""Runs the cases that `prepare.py` made on a GPU, with lowlp_runtime, numpy and PyTorch only, and checks each.

    python test/gpu/run_prepared.py FOLDER [--json FILE] [--once]

Outputs are poisoned first. A case passes when its relative Frobenius error against float64 is within its tolerance;
a tolerance of 0 asks for equal values (-0 equals +0). With --once nothing is repeated and timed, and all cases run in
this process, as `sanitize.py` has it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch

import lowlp_runtime
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.timing import measure


def to_cuda(array: np.ndarray, is_bf16: bool) -> torch.Tensor:
    """A copy on the GPU, element for element."""
    if is_bf16:
        return torch.from_numpy(array.view(np.int16).copy()).cuda().view(torch.bfloat16)
    return torch.from_numpy(array.copy()).cuda()


def poison(tensor: torch.Tensor) -> None:
    """Fills with NaN, or with a byte that is no likely result."""
    tensor.fill_(float("nan") if tensor.is_floating_point() else 0xA5)


def run_case(folder: Path, once: bool = False) -> dict[str, object]:
    """Runs one case, twice and then for its time, or once; the result says what was found."""
    case = json.loads((folder / "case.json").read_text())
    arrays = np.load(folder / "arrays.npz")
    kernel = KernelBinary.load(folder / "kernel.lowlp")
    arguments: dict[str, object] = {}
    for argument in case["arguments"]:
        name = argument["name"]
        arguments[name] = argument["value"] if "value" in argument else to_cuda(arrays[f"arg_{name}"], argument["bf16"])
    output = arguments[case["output"]]
    assert isinstance(output, torch.Tensor)
    results = []
    for _ in range(1 if once else 2):
        poison(output)
        lowlp_runtime.launch(kernel, arguments)
        torch.cuda.synchronize()
        results.append(output.double().cpu().numpy())
    wanted = arrays["wanted"].astype(np.float64).reshape(results[0].shape)
    scale = float(np.linalg.norm(wanted)) or 1.0
    error = float(np.linalg.norm(results[0] - wanted)) / scale
    equal = bool(np.array_equal(results[0], wanted))
    passed = equal if case["tolerance"] == 0 else error <= case["tolerance"]
    repeatable = bool(np.array_equal(results[0], results[-1]))
    median_us = 0.0
    if not once:
        median_us = measure(lambda: lowlp_runtime.launch(kernel, arguments), repeats=10, warmups=2).median_us
    return {
        "name": folder.name,
        "passed": passed and repeatable,
        "error": error,
        "equal": equal,
        "repeatable": repeatable,
        "tolerance": case["tolerance"],
        "median_us": median_us,
        "shape": case.get("shape"),
    }


def run_cases(folders: list[Path]) -> list[dict[str, object]]:
    """Runs all cases, in another process: after an error of CUDA, which stays, the next one begins in a new one."""
    rows: list[dict[str, object]] = []
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, context)
    for folder in folders:
        try:
            rows.append(pool.submit(run_case, folder).result())
        except Exception as error:  # whatever it is, the others are to run
            print(f"{folder.name}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            failure = {"passed": False, "error": float("nan"), "tolerance": 0, "median_us": 0.0, "shape": None}
            rows.append({"name": folder.name, **failure})
            pool.shutdown(wait=False, cancel_futures=True)
            pool = ProcessPoolExecutor(1, context)
    pool.shutdown()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="run prepared cases on the GPU")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--once", action="store_true", help="run each case once, in this process, and time nothing")
    options = parser.parse_args()
    folders = [folder for folder in sorted(options.folder.iterdir()) if (folder / "case.json").exists()]
    if not folders:
        parser.error(f"{options.folder}: expected cases of prepare.py, found none")
    rows = [run_case(folder, once=True) for folder in folders] if options.once else run_cases(folders)
    print(f"{lowlp_runtime.device_name()}, {len(rows)} cases")
    print(f"{'case':<36} {'M, N, K':<16} {'error':>9} {'allowed':>8} {'us':>8}  result")
    for row in rows:
        shape = ", ".join(map(str, row["shape"])) if isinstance(row["shape"], list) else ""
        allowed = "equal" if row["tolerance"] == 0 else f"{row['tolerance']:.1e}"
        verdict = "ok" if row["passed"] else "FAILED"
        print(f"{row['name']:<36} {shape:<16} {row['error']:9.2e} {allowed:>8} {row['median_us']:8.1f}  {verdict}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    failed = [str(row["name"]) for row in rows if not row["passed"]]
    print(f"{len(rows) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
