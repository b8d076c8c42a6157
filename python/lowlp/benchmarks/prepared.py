"""A folder of compiled kernels: an index, saved kernels, and samples of weights. Read here without the compiler."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from lowlp.numeric.host_array import AnyArray
from lowlp.tuning.prepared_folder import INDEX, load_index
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.errors import LowlpValueError

from .cases import Shape, WeightKind
from .saved_weights import SavedWeights

FORMAT: Final = 9
EMPTY: Final = "empty.lowlp"


@dataclass(frozen=True)
class KernelEntry:
    """A kernel for one kind and shape, and the M it is for; or why there is none.

    slabs            where it decodes slabs, by which a library multiplies: of each slab the first row, how many rows,
                     and among how many blocks they are divided; (): the kernel makes the product
    spilled_bytes    of registers, for each thread
    product_remarks  how often the assembler makes products of warpgroups wait
    """

    kind: str
    n: int
    k: int
    rows: tuple[int, ...]
    file: str
    schedule: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    spilled_bytes: int = 0
    product_remarks: int = 0
    slabs: tuple[tuple[int, int, int], ...] = ()

    @property
    def slow_code(self) -> str:
        """What is wrong with a kernel that is right but for its speed; ''."""
        found = []
        if self.spilled_bytes:
            found.append(f"{self.spilled_bytes} bytes of registers of each thread are spilled")
        if self.product_remarks:
            found.append(f"the assembler makes products of warpgroups wait, in {self.product_remarks} remarks")
        return "; ".join(found)


@dataclass
class PreparedKernels:
    """The index of a folder.

    multiprocessors  of the GPU that the kernels divide their work for
    gpu              its name, by which schedules were chosen, or ''
    batch_invariant  schedules are those of `linear(..., batch_invariant=True)`
    kinds            what the weights are, by name
    """

    folder: Path
    arch: str
    version: str
    multiprocessors: int
    weights: dict[str, SavedWeights] = field(default_factory=dict)
    kernels: list[KernelEntry] = field(default_factory=list)
    gpu: str = ""
    batch_invariant: bool = False
    kinds: dict[str, WeightKind] = field(default_factory=dict)

    def entry(self, kind: str, shape: Shape, m: int) -> KernelEntry:
        """The kernel for M rows. Raises `LowlpValueError` where there is none, with the reason."""
        for entry in self.kernels:
            if (entry.kind, entry.n, entry.k) == (kind, shape.n, shape.k) and m in entry.rows:
                if entry.problem:
                    raise LowlpValueError(entry.problem)
                return entry
        raise LowlpValueError(f"{self.folder}: no kernel of {kind} {shape} for M = {m}; prepare it")

    def check_device(self, multiprocessors: int) -> None:
        """Raises `LowlpValueError` for a GPU of another size."""
        if multiprocessors != self.multiprocessors:
            raise LowlpValueError(
                f"{self.folder}: prepared for a GPU of {self.multiprocessors} multiprocessors, and this one has "
                f"{multiprocessors}; prepare with --multiprocessors {multiprocessors}"
            )

    def load(self, entry: KernelEntry) -> KernelBinary:
        """Reads a kernel."""
        return KernelBinary.load(self.folder / entry.file)

    def load_empty(self) -> KernelBinary:
        """Reads the kernel that does nothing."""
        return KernelBinary.load(self.folder / EMPTY)

    def weights_in(self, kind: str, shape: Shape) -> tuple[SavedWeights, dict[str, AnyArray]]:
        """How weights of a kind and shape become operands, and a few such weights with theirs."""
        spread = self.weights.get(name_of_spread(kind))
        name = name_of_spread(kind) if spread and str(shape) in spread.placement.shapes else kind
        return self.weights[name], self.sample(name)

    def sample(self, name: str) -> dict[str, AnyArray]:
        """A few weights of a name in `weights`, with their operands."""
        with np.load(self.folder / f"{file_stem(name)}.npz") as arrays:
            return dict(arrays)

    def save(self) -> None:
        """Writes the index."""
        data = {
            "format": FORMAT,
            "arch": self.arch,
            "lowlp": self.version,
            "multiprocessors": self.multiprocessors,
            "gpu": self.gpu,
            "batch_invariant": self.batch_invariant,
            "weights": {name: weights.to_json() for name, weights in self.weights.items()},
            "kernels": [vars(entry) for entry in self.kernels],
            "kinds": [asdict(kind) for kind in self.kinds.values()],
        }
        (self.folder / INDEX).write_text(json.dumps(data), encoding="utf-8")

    @staticmethod
    def load_index(folder: Path) -> PreparedKernels:
        """Reads the index. Raises `LowlpValueError` where the folder has none of this format, `OSError`."""
        return load_index(
            folder,
            "bench",
            "kernels",
            FORMAT,
            lambda data: PreparedKernels(
                folder,
                data["arch"],
                data["lowlp"],
                data["multiprocessors"],
                {name: SavedWeights.from_json(weights) for name, weights in data["weights"].items()},
                [entry_of(entry) for entry in data["kernels"]],
                data["gpu"],
                data["batch_invariant"],
                {kind["name"]: kind_of_json(kind) for kind in data["kinds"]},
            ),
        )


def name_of_spread(kind: str) -> str:
    """Under which the weights of a kind are known that have spread codes."""
    return f"{kind}+1"


def file_stem(name: str) -> str:
    """The name of a kind as names of files have it."""
    return name.replace(" ", "-").replace(":", "-")


def kind_of_json(data: dict[str, Any]) -> WeightKind:
    """A kind from its JSON."""
    return WeightKind(**{**data, "values": tuple(data["values"])})


def entry_of(data: dict[str, Any]) -> KernelEntry:
    """An entry from its JSON."""
    slabs = tuple((first, rows, blocks) for first, rows, blocks in data["slabs"])
    return KernelEntry(**{**data, "rows": tuple(data["rows"]), "slabs": slabs})
