"""Imports in python/lowlp point down only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "python" / "lowlp"
FLOORS = ["errors", "numeric", "layouts", "drawing", "activations", "weights", "checkpoints", "compiler"]
FLOORS += ["language", "schedules", "kernels", "kernels.activations", "kernels.attention", "kernels.linear"]
FLOORS += ["ops", "torch", "transformers", "serving", "vllm", "sglang", "tuning", "benchmarks", "cli"]
"""From below; what a kind of kernels has for itself stands over what all kinds share."""
EXTENSIONS = (["_layout"], ["_mlir"], ["__version__"])


def imported(path: Path, module: list[str]) -> Iterator[list[str]]:
    """The names of lowlp that a file imports anywhere, from the package's root on."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level] if node.level else []
            names = [[*base, *(node.module or "").split("."), alias.name] for alias in node.names]
        else:
            continue
        yield from ([part for part in name[1:] if part] for name in names if name[0] == "lowlp")


def floor_of(name: list[str]) -> int:
    """Of a module or what is imported of it; -1 for the package itself and its facades, which only users import."""
    found = [FLOORS.index(floor) for floor in (".".join(name[:2]), "".join(name[:1])) if floor in FLOORS]
    return max(found, default=-1)


def wrong_imports(path: Path) -> list[str]:
    module = ["lowlp", *path.relative_to(ROOT).with_suffix("").parts]
    floor = floor_of(module[1:])
    names = [name for name in imported(path, module) if floor >= 0 and name[:1] not in EXTENSIONS]
    return [f"{'.'.join(module)} imports {'.'.join(name)}" for name in names if not 0 <= floor_of(name) <= floor]


def test_imports_point_down() -> None:
    assert not [wrong for path in ROOT.rglob("*.py") for wrong in wrong_imports(path)]
