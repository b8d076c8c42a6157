"""The kernels of `linear`, compiled when first needed and kept; and what each of them tells of itself."""

from __future__ import annotations

import functools
from dataclasses import asdict, replace

from lowlp.compiler.architectures import DEFAULT_ARCH
from lowlp.compiler.compilation import CpuKernel, compile, compile_cpu, compile_quietly
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.kernel_cache import Once
from lowlp.kernels.linear.codebooks.vector_order import vector_order_kernel
from lowlp.kernels.linear.fitting import scale_bytes
from lowlp.kernels.linear.gating import gating_kernel
from lowlp.kernels.linear.operand_list import product_of, vector_order_of
from lowlp.kernels.linear.operands import NUMPY_TYPES, padded_row, padding_bytes
from lowlp.kernels.linear.paths import Path
from lowlp.kernels.linear.permuting import permuting_kernel
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.scaled_weights import can_scale_weights
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import SUMS, LinearSpec
from lowlp.kernels.linear.warpgroup_layouts import ends_with_scales
from lowlp.language import Kernel
from lowlp_runtime.vector_order import VectorOrder

_kernels = Once()


def cpu_kernel(spec: LinearSpec, schedule: Schedule) -> CpuKernel:
    """The kernel for the CPU target."""
    key = (spec, schedule, "cpu")
    kernel: CpuKernel = _kernels.get(key, functools.partial(compile_for_cpu, spec, schedule))
    return kernel


def gpu_kernel(spec: LinearSpec, schedule: Schedule, arch: str) -> CompiledKernel:
    """The kernel for an architecture."""
    key = (spec, schedule, arch)
    kernel: CompiledKernel = _kernels.get(key, functools.partial(compile_for_gpu, spec, schedule, arch))
    return kernel


def has_gpu_kernel(spec: LinearSpec, schedule: Schedule, arch: str) -> bool:
    """Whether that is compiled."""
    return _kernels.has((spec, schedule, arch))


def cpu_ordering_kernel(k: int, order: VectorOrder | None, aligned: bool) -> CpuKernel:
    """What puts the columns of x in the order of vectors, or of permuted weights where it is None, for the CPU target;
    see `vector_order_kernel` and `permuting_kernel`."""

    def make() -> CpuKernel:
        return compile_cpu(_ordering(k, order, aligned, False, DEFAULT_ARCH))

    kernel: CpuKernel = _kernels.get(("ordering", k, order, aligned, "cpu"), make)
    return kernel


def gpu_ordering_kernel(
    k: int, order: VectorOrder | None, aligned: bool, dependent_launch: bool, arch: str
) -> CompiledKernel:
    """The same for an architecture."""

    def make() -> CompiledKernel:
        return compile(_ordering(k, order, aligned, dependent_launch, arch), arch)

    kernel: CompiledKernel = _kernels.get(("ordering", k, order, aligned, dependent_launch, arch), make)
    return kernel


def has_gpu_ordering_kernel(
    k: int, order: VectorOrder | None, aligned: bool, dependent_launch: bool, arch: str
) -> bool:
    """Whether that is compiled."""
    return _kernels.has(("ordering", k, order, aligned, dependent_launch, arch))


def _ordering(k: int, order: VectorOrder | None, aligned: bool, dependent_launch: bool, arch: str) -> Kernel:
    if order:
        return vector_order_kernel(k, order, aligned, dependent_launch)
    return permuting_kernel(k, aligned, dependent_launch, arch)


def _of_gating(columns: int, epilogue: str, out: str, dependent_launch: bool, arch: str) -> tuple[object, ...]:
    return ("gating", columns, epilogue, out, dependent_launch, arch)


def gpu_gating_kernel(columns: int, epilogue: str, out: str, dependent_launch: bool, arch: str) -> CompiledKernel:
    """What ends products of gate and up that are made apart, for an architecture."""

    def make() -> CompiledKernel:
        return compile(gating_kernel(columns, epilogue, out, dependent_launch), arch)

    kernel: CompiledKernel = _kernels.get(_of_gating(columns, epilogue, out, dependent_launch, arch), make)
    return kernel


def has_gpu_gating_kernel(columns: int, epilogue: str, out: str, dependent_launch: bool, arch: str) -> bool:
    """Whether that is compiled."""
    return _kernels.has(_of_gating(columns, epilogue, out, dependent_launch, arch))


def compile_for_gpu(
    spec: LinearSpec,
    schedule: Schedule,
    arch: str,
    rows: tuple[int, int] | None = None,
    path: Path | None = None,
    reason: str = "",
) -> CompiledKernel:
    """Compiles the kernel for an architecture; where it takes x in the order of vectors, with the kernel that makes it.

    rows    the least and the largest number of rows of x it is meant for; None: any
    path    of quantised x: by which products it is multiplied, and why
    reason  why the schedule was chosen
    """
    notes, product = notes_of(spec, schedule, path, reason), product_of(spec, schedule, rows)
    kernel = compile_quietly(linear_kernel(spec, schedule), arch, notes, product)
    order = vector_order_of(spec, schedule)
    if not order:
        return kernel
    before = gpu_ordering_kernel(spec.k, order, True, spec.dependent_launch, kernel.arch)
    return replace(kernel, binary=replace(kernel.binary, before=before.binary))


def compile_for_cpu(spec: LinearSpec, schedule: Schedule) -> CpuKernel:
    """Compiles the kernel for the CPU target."""
    return compile_cpu(
        linear_kernel(spec, schedule), notes=notes_of(spec, schedule), product=product_of(spec, schedule)
    )


def notes_of(spec: LinearSpec, schedule: Schedule, path: Path | None = None, reason: str = "") -> dict[str, object]:
    """What is kept with the kernel for its reader: its problem, schedule and plan, and the bytes that it cannot do
    without."""
    weight_bytes, padding = padding_bytes(spec)
    per_column = sum(NUMPY_TYPES[kind].itemsize for kind in (spec.out, spec.residual) if kind)
    units = f"{spec.rows_of_unit} rows by {spec.unit_k} weights"
    return {
        "linear": _what_is_kept(spec),
        "schedule": _what_counts(schedule),
        "plan": {
            **({"path": f"{path.name}: {path.reason}"} if path else {}),
            **({"chosen": reason} if reason else {}),
            "placement": spec.placement.name,
            "units": f"{units}, rows padded to {padded_row(spec)}",
            "scales": _where_scales_go(spec, schedule),
            "operands": f"weights as A, x as B of {_instruction(spec, schedule)}",
        },
        "floor": {
            "weight bytes": weight_bytes,
            "of these padding": padding,
            "scale bytes": scale_bytes(spec),
            "bytes per row of x": spec.x_bytes * spec.k + per_column * spec.columns_of_y,
        },
    }


def _instruction(spec: LinearSpec, schedule: Schedule) -> str:
    return f"{'wgmma m64nN' if schedule.warpgroups else 'mma m16n8'}k{spec.step_k}"


def _where_scales_go(spec: LinearSpec, schedule: Schedule) -> str:
    if spec.vectors and schedule.has_wgmma:
        is_twice = spec.vectors.has_book_scales and spec.activation == "bf16"
        types = "f16 and bf16" if is_twice else spec.activation
        sums = f", sums of books rounded to {types}" if schedule.scales_on == "weights" else ""
        return f"on f32 accumulators{sums}"
    if schedule.warpgroups and ends_with_scales(spec, schedule):
        return "on the f32 accumulators of whole rows"
    if schedule.stages and schedule.scales_on == "weights":
        return f"on weights, in {spec.activation if can_scale_weights(spec) else 'f32, rounded once'}"
    if spec.adds_integers:
        return "none" if spec.out == SUMS else "on sums of int32, of rows"
    return "on the f32 accumulators of a group"


def _what_is_kept(spec: LinearSpec) -> dict[str, object]:
    """The fields of the problem that say something, the codec's among them."""
    names = ("n", "k", "weight", "group_size", "activation", "out", "scale", "zeros", "offsets", "table", "scale2")
    supers = ("super_scale", "super_group_size") if spec.super_scale else ()
    more = (
        *supers,
        "row_scale2",
        "ordered_rows",
        "bias",
        "epilogue",
        "residual",
        "aligned",
        "dependent_launch",
        "x_scale",
        "experts",
    )
    fields = {name: getattr(spec, name) for name in (*names, *more)}
    return {name: value for name, value in fields.items() if value not in ("", False)}


def _what_counts(schedule: Schedule) -> dict[str, object]:
    """The fields of the schedule that decide something; without stages those of streaming do not, and without
    warpgroups not theirs."""
    fields = asdict(schedule)
    if not schedule.stages:
        kept = ["columns", "warps", "table_form", "table_copies", "splits", "codebooks"]
        if schedule.partial_sums:
            kept = ["warps", "row_tiles", "splits", "kept_rows", "partial_sums"]
        fields = {name: fields[name] for name in kept}
    elif not schedule.warpgroups:
        for name in ("products_in_flight", "column_tiles", "cluster", "aligned_shares", "multicast"):
            del fields[name]
        if schedule.scales_on == "accumulators":
            del fields["scales_on"]
    if schedule.splits == 1:
        del fields["splits"]
    if not schedule.partial_sums:
        fields.pop("partial_sums", None)
    for name in ("multicast", "blocks_at_once"):
        if fields.get(name) == 1:
            del fields[name]
    return {name: value for name, value in fields.items() if value not in ("auto", 0, "f32")}
