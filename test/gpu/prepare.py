"""Compiles kernels and makes inputs for `run_prepared.py`, on a machine with a compiler and no GPU.

    python test/gpu/prepare.py FOLDER [--arch sm_90a] [--only MODULE ...]

Each case is a folder with `kernel.lowlp`, `arrays.npz` (the arguments, and what float64 and the CPU target say) and
`case.json`. A GPU machine then needs lowlp_runtime, numpy and PyTorch only. The modules in `cases/` make the cases.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

MODULES = sorted(
    path.stem for path in (Path(__file__).parent / "cases").glob("*.py") if path.stem not in ("__init__", "case")
)


def main() -> None:
    parser = argparse.ArgumentParser(description="compile kernels and make inputs for run_prepared.py")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument(
        "--only", nargs="+", choices=MODULES, default=MODULES, metavar="MODULE", help=", ".join(MODULES)
    )
    options = parser.parse_args()
    count = 0
    for module in options.only:
        for case in importlib.import_module(f"cases.{module}").cases(options.arch):
            case.write(options.folder)
            count += 1
            if sys.stdout.isatty():
                print(f"\r{count} cases, last {case.name:<48}", end="", flush=True)
    print(
        f"\r{count} cases in {options.folder}{'':<40}" if sys.stdout.isatty() else f"{count} cases in {options.folder}"
    )


if __name__ == "__main__":
    main()
