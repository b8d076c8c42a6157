"""The kernels of products of planes, compiled when first needed and kept; and what each tells of itself."""

from __future__ import annotations

import functools
from dataclasses import asdict, replace

from lowlp.compiler.compilation import CpuKernel, compile, compile_cpu
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.kernel_cache import Once
from lowlp.kernels.linear.planes.program import STEP_K, PlanesSpec
from lowlp.kernels.linear.planes.shapes import PlaneSchedule, tile_shapes
from lowlp.kernels.linear.planes.streams import stream_kernel
from lowlp.kernels.linear.planes.warpgroups import WarpgroupSchedule, warpgroup_kernel
from lowlp.language.kernels import Kernel
from lowlp.schedules.measured_file import PLANES

_kernels = Once()


def kernel_of(spec: PlanesSpec, schedule: PlaneSchedule) -> Kernel:
    """The block program of a schedule of either form."""
    if isinstance(schedule, WarpgroupSchedule):
        return warpgroup_kernel(spec, schedule)
    return stream_kernel(spec, schedule)


def cpu_planes_kernel(spec: PlanesSpec, schedule: PlaneSchedule) -> CpuKernel:
    """The kernel for the CPU target."""
    make = functools.partial(compile_cpu, kernel_of(spec, schedule))
    kernel: CpuKernel = _kernels.get((spec, schedule, "cpu"), make)
    return kernel


def gpu_planes_kernel(spec: PlanesSpec, schedule: PlaneSchedule, arch: str, reason: str) -> CompiledKernel:
    """The kernel for an architecture; its report says `reason`, why the schedule was taken. Kernels that differ by that
    alone are compiled once."""

    def make() -> CompiledKernel:
        kernel: CompiledKernel = _kernels.get(
            (spec, schedule, arch), functools.partial(compile_planes, spec, schedule, arch)
        )
        notes = {**kernel.description.notes, **notes_of_planes(spec, schedule, reason)}
        return replace(kernel, binary=replace(kernel.binary, description=replace(kernel.description, notes=notes)))

    found: CompiledKernel = _kernels.get((spec, schedule, arch, reason), make)
    return found


def compile_planes(spec: PlanesSpec, schedule: PlaneSchedule, arch: str, reason: str = "") -> CompiledKernel:
    """Compiles the kernel for an architecture."""
    return compile(kernel_of(spec, schedule), arch, notes=notes_of_planes(spec, schedule, reason))


def notes_of_planes(spec: PlanesSpec, schedule: PlaneSchedule, reason: str = "") -> dict[str, object]:
    """What is kept with the kernel for its reader: its problem, schedule and plan, and the bytes that it cannot do
    without."""
    p, q = spec.w_code.bits, spec.x_code.bits
    extents = tile_shapes(spec, schedule)
    instruction = f"m{extents.instruction_rows}n{extents.instruction_columns}k{STEP_K}"
    y_bytes = {"f16": 2, "bf16": 2}.get(spec.out, 4)
    kept = {name: value for name, value in asdict(spec).items() if value not in ("", False)}
    return {
        PLANES: {**kept, "weight bits": p, "activation bits": q},
        "schedule": asdict(schedule),
        "plan": {
            "path": f"planes: {p} of weights by {q} of x",
            **({"chosen": reason} if reason else {}),
            "operands": f"weights as A, planes of x as B of {instruction}",
            "tile": f"{extents.weight_rows} x {extents.x_columns} planes of rows: {extents.warps} times "
            f"{extents.row_tiles} x {extents.column_tiles} of them",
        },
        "floor": {
            "weight bytes": -(-spec.n // 16) * 16 * spec.units_k * STEP_K * p // 8,
            "bytes per row of x": q * spec.words * 4 + spec.n * y_bytes,
        },
    }
