"""The forms that kernels of `linear` with stages have, schedules of each, and what a compiled kernel of it shows.

A form says how weights are multiplied and whose a tile of y is. Groups of 128 and of 64 take different schedules of a
form, so that few kernels have many of the fields that schedules differ by.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np

import lowlp
from lowlp.compiler.architectures import arch_of
from lowlp.compiler.targets import target
from lowlp.kernels.linear.candidates import for_rows
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.fitting import fits, fitted
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.tiles import tiles_of
from lowlp.numeric.codec import Codec, Table
from lowlp.numeric.dtypes import dtype
from lowlp.ops.linear_kernels import gpu_kernel
from lowlp.schedules.device import Device, device_like, device_of
from lowlp_runtime import KernelBinary
from lowlp_runtime.device import cuda_device_count, current_device, device_name

PLAIN_TYPES = (*(f"int{bits}" for bits in range(1, 9)), "f6e3m2", "f3e1m1", "f5e2m2", "f4e2m1")
KINDS: dict[str, dict[str, Any]] = {
    **{name: {"dtype": name} for name in PLAIN_TYPES},
    "uint4z": {"dtype": "uint4", "zero_point": True},
    "nf4": {"lut": lowlp.nf(4)},
    "lut3": {"lut": lowlp.nf(3)},
}
"""What `quantize` takes for each kind of weights: integers, floats, zero points, tables of 4 and 3 bits."""

GROUPS = (128, 64)
ROWS = (1, 7, 16, 17, 33, 64, 100, 129, 400, 1100)

FORMS: dict[str, tuple[Schedule, Schedule]] = {
    "streaming, shared tiles": (
        Schedule(8, warps=1, row_tiles=4, slices=4, stages=3),
        Schedule(32, warps=2, row_tiles=4, slices=2, stages=2, producer=False),
    ),
    "streaming, a tile each": (
        Schedule(16, warps=1, row_tiles=4, slices=4, units=2, stages=3, share_tiles=False),
        Schedule(8, warps=2, row_tiles=4, slices=2, steps=2, stages=3, share_tiles=False),
    ),
    "wgmma, shared tiles": (
        Schedule(64, stages=3, warpgroups=2, row_tiles=1, steps=2),
        Schedule(
            128,
            stages=2,
            warpgroups=2,
            row_tiles=1,
            steps=2,
            column_tiles=2,
            scales_on="weights",
            aligned_shares=True,
        ),
    ),
    "wgmma, a tile each": (
        Schedule(64, stages=3, warpgroups=2, row_tiles=1, steps=4, share_tiles=False),
        Schedule(32, stages=2, warpgroups=2, row_tiles=4, steps=1, share_tiles=False, scales_on="weights"),
    ),
    "wgmma, clusters": (
        Schedule(32, stages=2, warpgroups=1, row_tiles=1, steps=4, cluster=2),
        Schedule(128, stages=3, warpgroups=2, row_tiles=1, steps=1, column_tiles=2, cluster=2, scales_on="weights"),
    ),
}
"""For groups of 128 and for others. `Product.schedule` takes as many stages as fit."""


@functools.cache
def gpu_of(arch: str) -> tuple[Device, str]:
    """The GPU that is here, if it is one of this architecture, for which `linear` chooses, and its name; else one like
    an H200, without."""
    if cuda_device_count() and arch_of(current_device()) == arch:
        return device_of(current_device()), device_name(current_device())
    return device_like(arch), ""


def form_of(schedule: Schedule) -> str:
    """The form of a schedule, or 'plain' without stages."""
    if not schedule.stages:
        return "plain"
    tiles = "clusters" if schedule.cluster > 1 else "a tile each" if schedule.has_tile_each else "shared tiles"
    return f"{'wgmma' if schedule.warpgroups else 'streaming'}, {tiles}"


def forms_of(arch: str) -> tuple[str, ...]:
    """The forms that an architecture has instructions for."""
    has_wgmma = bool(target(arch).instructions["wgmma.mma_async"])
    return tuple(form for form in FORMS if has_wgmma or form.startswith("streaming"))


def what_differs(kernel: KernelBinary, arch: str, schedule: Schedule) -> list[str]:
    """What of a compiled kernel is not as its schedule says, by what the compiler tells and by its PTX. Of kernels
    without stages nothing."""
    if not schedule.stages:
        return []
    description, ptx = kernel.description, kernel.ptx[arch]
    pipelines: Any = description.notes.get("pipelines", {})
    expected = {
        "stages": str(pipelines.get("1", "")).startswith(f"{schedule.stages} stages of "),
        "mma.sync or wgmma": ("wgmma.mma_async" in ptx) == bool(schedule.warpgroups),
        "whose tiles are": bool(description.workspace) != schedule.has_tile_each,
        "cluster": re.findall(r"\.reqnctapercluster (\d+)", ptx) == [str(schedule.cluster)] * (schedule.cluster > 1),
    }
    return [what for what, is_so in expected.items() if not is_so]


@functools.lru_cache(maxsize=64)
def weights(kind: str, n: int, k: int, group: int = 128, scale: str = "f16") -> lowlp.QuantizedTensor:
    """Random weights by which rows of normal numbers have sums of about 1.5, where epilogues bend."""
    matrix = np.random.default_rng([n, k]).normal(0, 1.5 / math.sqrt(k), (n, k)).astype(np.float32)
    return lowlp.quantize(matrix, group_size=group, scale_dtype=scale, activation=scale, **KINDS[kind])


@dataclass(frozen=True)
class Product:
    """Products by weights of one kind and shape.

    form     one of `FORMS`; '' is what `linear` chooses
    follows  columns follow M as in what `linear` chooses, so that rows do not depend on M up to 16
    """

    kind: str
    n: int
    k: int
    group: int = 128
    form: str = ""
    follows: bool = False
    activation: str = "f16"
    out: str = ""
    bias: str = ""
    epilogue: str = ""
    residual: str = ""
    batch_invariant: bool = False
    rows: tuple[int, ...] = ROWS

    def __str__(self) -> str:
        form = self.form.replace(",", "").replace(" ", "_") or "chosen"
        parts = [self.kind, f"g{self.group}", f"{self.n}x{self.k}", form, self.activation]
        endings = ((name, getattr(self, name)) for name in ("out", "bias", "epilogue", "residual"))
        parts += [f"{name}_{value}" for name, value in endings if value]
        return "-".join([*parts, *["invariant"] * self.batch_invariant])

    @property
    def weights(self) -> lowlp.QuantizedTensor:
        return weights(self.kind, self.n, self.k, self.group, self.activation)

    @property
    def spec(self) -> LinearSpec:
        """As `linear` has it for aligned rows, found without the weights."""
        made_of = KINDS[self.kind]
        table = made_of.get("lut")
        return LinearSpec(
            n=self.n,
            k=self.k,
            codec=Codec(
                dtype(made_of["dtype"]) if table is None else Table(int(math.log2(len(table))), "f32", "tensor"),
                self.group,
                self.activation,
                "uint8" if "zero_point" in made_of else None,
            ),
            activation=self.activation,
            out=self.out or self.activation,
            bias=self.bias,
            epilogue=self.epilogue,
            residual=self.residual,
            aligned=True,
        )

    def schedule(self, m: int, arch: str) -> Schedule:
        """For m rows of x."""
        spec, (device, gpu) = self.spec, gpu_of(arch)
        if not self.form:
            return schedule_for(spec, m, device, self.batch_invariant, gpu)
        division = FORMS[self.form][self.group != GROUPS[0]]
        if division.warpgroups and spec.corrector:
            division = replace(division, scales_on="weights")
        return for_rows(spec, division, m, device) if self.follows else fitted(spec, division, device)

    def kernel(self, m: int, arch: str) -> tuple[LinearSpec, Schedule, str]:
        """What `gpu_kernel` takes for m rows. Kernels may begin early, as those of `linear` do."""
        schedule = self.schedule(m, arch)
        return replace(self.spec, dependent_launch=schedule.stages > 0), schedule, arch

    def numbers(self, m: int, arch: str, multiprocessors: int) -> dict[str, int]:
        """The numbers that the kernel for m rows takes, where rows of x and of the residual lie one after the other."""
        product = product_of(self.spec, self.schedule(m, arch))
        stride = self.spec.columns_of_y if self.residual else None
        return product.by_name(product.launch_numbers(m, self.k, stride, multiprocessors))

    def shares_sums(self, m: int, arch: str, multiprocessors: int) -> bool:
        """Whether some tile surely is of several blocks: there are more blocks than tiles."""
        schedule = self.schedule(m, arch)
        blocks = self.numbers(m, arch, multiprocessors).get("blocks", 0)
        return not schedule.has_tile_each and blocks > tiles_of(self.spec, schedule, m)


GIVING = [Product(kind, 14336, 3072) for kind in ("f3e1m1", "int4", "lut3")]
"""On sm_90a `linear` chooses kernels of 8 warps for 16 rows, whose producer gives its registers away."""


def products_by_form(n: int, k: int, arch: str) -> list[Product]:
    """Every kind, group and form, without those for which the architecture has too little shared memory."""
    every = [Product(kind, n, k, group, form) for kind in KINDS for group in GROUPS for form in forms_of(arch)]
    return [product for product in every if fits(product.spec, product.schedule(1, arch), device_like(arch))]


def compile_ahead(products: Iterable[Product], arch: str, processes: int = 0) -> int:
    """Compiles all kernels of products in several processes, into the cache on disk, and says how many these are.

    processes  0: one for each processor
    """
    wanted = {product.kernel(m, arch): None for product in products for m in product.rows}
    # The compiler's threads and locks do not survive a fork.
    with ProcessPoolExecutor(processes or os.cpu_count() or 1, get_context("spawn")) as pool:
        list(pool.map(_compile, wanted, chunksize=4))
    return len(wanted)


def _compile(wanted: tuple[LinearSpec, Schedule, str]) -> None:
    gpu_kernel(*wanted)
