"""A launch with its arguments and what it should give, as files for `run_prepared.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import lowlp
from lowlp_runtime.module import split_arch

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass
class Case:
    """A launch: arguments in order, of which `output` names the one that is written."""

    name: str
    kernel: lowlp.compiler.CompiledKernel
    arguments: dict[str, Any]
    output: str
    wanted: np.ndarray
    tolerance: float
    facts: dict[str, object] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        folder = folder / self.name
        folder.mkdir(parents=True, exist_ok=True)
        # Machine code is what runs, unless the GPU is a later one, which takes PTX, if not of an architecture with a
        # suffix. Texts are several times as large.
        binary = self.kernel.binary
        is_for_one_gpu = binary.cubins and all(split_arch(arch)[2] for arch in binary.ptx)
        replace(binary, ir={}, ptx={} if is_for_one_gpu else binary.ptx).save(folder / "kernel.lowlp")
        arrays: dict[str, np.ndarray] = {
            "wanted": self.wanted.astype(np.float32) if self.wanted.dtype == BF16 else self.wanted
        }
        order: list[dict[str, object]] = []
        for name, value in self.arguments.items():
            if isinstance(value, np.ndarray):
                is_bf16 = value.dtype == BF16
                arrays[f"arg_{name}"] = value.view(np.uint16) if is_bf16 else value
                order.append({"name": name, "bf16": is_bf16})
            else:
                order.append({"name": name, "value": value if isinstance(value, float) else int(value)})
        np.savez_compressed(folder / "arrays.npz", **arrays)  # type: ignore[arg-type]
        case = {"arguments": order, "output": self.output, "tolerance": self.tolerance, **self.facts}
        (folder / "case.json").write_text(json.dumps(case, indent=1))
