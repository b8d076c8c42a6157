"""Compiles the kernels of all paths into a folder. Needs the compiler and no GPU.

Kinds that differ by their activations alone have the same kernels of bytes and halves; each is compiled once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.prepared import KernelEntry, PreparedKernels, file_stem
from lowlp.benchmarks.preparing import MULTIPROCESSORS, AnyJob, Job, as_known, compiled, describe, describe_packed
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.kernel_cache import compiler_version
from lowlp.compiler.targets import target
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.integer_sums import for_many_rows
from lowlp.kernels.linear.operand_list import TAKES_ALL
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.planes.choosing import choose_planes
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import PlaneSchedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import dtype
from lowlp.ops.planes_kernels import compile_planes
from lowlp.schedules.device import device_ahead
from lowlp.weights.packing import PLANES, find_placement
from lowlp.weights.quantize.quantization import quantize
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.operands import Operand

from .cases import SUPER_GROUP, ActivationKind, Weights

_SAMPLE = Shape(128, 256)


@dataclass(frozen=True)
class PlanesJob:
    """One kernel of products of planes to compile."""

    spec: PlanesSpec
    schedule: PlaneSchedule
    entry: KernelEntry

    def compile(self, arch: str) -> CompiledKernel:
        """Raises `LowlpError`."""
        return compile_planes(self.spec, self.schedule, arch)


def codec_of(weights: Weights) -> Codec:
    """What their codes mean."""
    supers: dict[str, Any] = {"super_scale": "f16", "super_group": SUPER_GROUP} if weights.has_levels else {}
    return Codec(dtype(weights.dtype), weights.group or "channel", weights.scale, **supers)


def sample_of(weights: Weights, family: str) -> QuantizedTensor:
    """A few weights, packed in a family."""
    values = np.random.default_rng(weights.bits).normal(size=(_SAMPLE.n, _SAMPLE.k)).astype(np.float32)
    return quantize(values, codec_of(weights), activation=family)


def bytes_spec(kind: ActivationKind, path: str, sample: QuantizedTensor, shape: Shape) -> LinearSpec:
    """Of the kernel for a path of bytes, or of halves."""
    if path == "f16":
        of_sample = spec_for(sample, "f16", "f16", aligned=True)
    else:
        bipolar = kind.bits if kind.is_bipolar else 0
        of_sample = spec_for(sample, kind.element, "f16", aligned=True, x_scale="token", x_bipolar=bipolar)
    return replace(of_sample, n=shape.n, k=shape.k, codec=codec_of(kind.weights))


def planes_spec(kind: ActivationKind, shape: Shape) -> PlanesSpec:
    """Of the kernel for planes."""
    return PlanesSpec(
        n=shape.n, k=shape.k, weight=kind.weights.dtype, activation=kind.activation, scale="f16", x_scale=True,
        out="f16",
    )  # fmt: skip


def prepare(
    folder: Path,
    arch: str,
    kinds: Sequence[ActivationKind],
    shapes: Sequence[Shape],
    rows: Sequence[int],
    paths: Sequence[str],
    jobs: int = 0,
    multiprocessors: int = MULTIPROCESSORS,
    gpu: str = "",
) -> Iterator[tuple[int, int, str]]:
    """Writes the folder anew; arguments as `lowlp.benchmarks.preparing.prepare` has them, and paths of ours.

    Yields (done, of how many, what was done last).
    """
    folder.mkdir(parents=True, exist_ok=True)
    index = PreparedKernels(folder, arch, compiler_version(), multiprocessors, gpu=gpu)
    wanted: dict[tuple[str, Shape], list[AnyJob]] = {}
    for kind in kinds:
        for path in kind.paths:
            if path not in paths:
                continue
            sample = _described(index, kind, path, shapes)
            for shape in shapes:
                name = kind.kernel_kind(path)
                if (name, shape) not in wanted:
                    wanted[name, shape] = list(_jobs(index, kind, path, sample, shape, rows))
    every = [job for of_kind in wanted.values() for job in of_kind]
    for number, (_, entry) in enumerate(compiled(index, every, jobs, code_alone=True), 1):
        index.kernels.append(entry)
        yield number, len(every), f"{entry.kind} {entry.n}x{entry.k}"
    index.kernels.sort(key=lambda entry: (entry.kind, entry.n, entry.k, entry.rows))
    index.save()


def _described(index: PreparedKernels, kind: ActivationKind, path: str, shapes: Sequence[Shape]) -> QuantizedTensor:
    """Puts weights of a path into the index, and a sample with its operands into the folder."""
    packed = kind.weights.kind_for(path)
    sample = sample_of(kind.weights, packed.activation)
    if packed.name in index.weights:
        return sample
    index.kinds[packed.name] = packed
    stored = dict(sample.meaning.arrays())
    arrays: dict[str, Any] = {"codes": sample.codes, "scales": as_known(stored["scales"])}
    if "super_scales" in stored:
        arrays["super_scales"] = stored["super_scales"]
    if path == "planes":
        placement = find_placement(kind.weights.dtype, PLANES)
        words = Operand("weights", "packed", "uint32", placement.packed_shape(*sample.shape))
        scales = Operand("scales", "scales", "f16", (1, sample.shape[0]), "by_group")
        operands = {"weights": sample.packed_for(PLANES), "scales": np.ascontiguousarray(sample.scales.T)}
        index.weights[packed.name] = describe_packed(packed, sample, placement, (words, scales), shapes, {})
    else:
        spec = bytes_spec(kind, path, sample, Shape(*sample.shape))
        operands = host_operands(sample, "f16" if path == "f16" else kind.element, schedule=TAKES_ALL)
        index.weights[packed.name] = describe(packed, sample, spec, shapes, {})
    arrays |= {f"operand {name}": as_known(np.asarray(operand)) for name, operand in operands.items()}
    np.savez_compressed(index.folder / f"{file_stem(packed.name)}.npz", **arrays)
    return sample


def _jobs(
    index: PreparedKernels, kind: ActivationKind, path: str, sample: QuantizedTensor, shape: Shape, rows: Sequence[int]
) -> Iterator[AnyJob]:
    by_schedule: dict[Any, tuple[Any, list[int]]] = {}
    device = device_ahead(index.arch, index.multiprocessors, index.gpu)
    spec: Any = planes_spec(kind, shape) if path == "planes" else bytes_spec(kind, path, sample, shape)
    has_warpgroups = bool(target(index.arch).instructions["wgmma.mma_async"])
    for m in rows:
        if path == "planes":
            taken: Any = spec
            schedule: Any = choose_planes(spec, m, device, index.gpu).schedule
        else:
            taken = for_many_rows(spec, m, has_warpgroups)
            schedule = schedule_for(taken, m, device, gpu=index.gpu)
        by_schedule.setdefault(schedule, (taken, []))[1].append(m)
    name = kind.kernel_kind(path)
    for schedule, (taken, shared) in by_schedule.items():
        file = f"{file_stem(name)}-{shape}-m{shared[0]}.lowlp"
        entry = KernelEntry(name, shape.n, shape.k, tuple(shared), file, asdict(schedule))
        yield PlanesJob(taken, schedule, entry) if path == "planes" else Job(taken, schedule, entry)
