"""Compiles what the bench launches, in several processes, and saves it in a folder. Needs the compiler and no GPU.

Kernels of one kind and shape differ by their schedule, so numbers of rows with the same schedule share one.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from lowlp import language as ll
from lowlp._layout import Placement
from lowlp.compiler.compilation import compile
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.kernel_cache import compiler_version
from lowlp.errors import LowlpValueError, ProductWarning, SpillWarning
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.codebooks.choosing import begins_early
from lowlp.kernels.linear.codebooks.lattice_tables import lattice_tables
from lowlp.kernels.linear.codebooks.versions import version_schedule
from lowlp.kernels.linear.operand_list import TAKES_ALL, operands_of_weights
from lowlp.kernels.linear.operands import for_weights, host_operands, slabs_of, spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.slab_estimates import parts_of_slabs, slabs_take_less
from lowlp.kernels.linear.slabs import blocks_for_slab, slab_kernel
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.vectors import lattice_vectors
from lowlp.ops.linear_kernels import compile_for_gpu
from lowlp.schedules.device import Device, device_ahead
from lowlp.weights.packing import stored_form
from lowlp.weights.quantize.quantization import quantize
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.errors import LowlpError
from lowlp_runtime.operands import Operand

from .book_form import book_form
from .cases import Shape, WeightKind
from .prepared import EMPTY, KernelEntry, PreparedKernels, file_stem, name_of_spread
from .random_books import draw_books
from .saved_weights import SavedPlacement, SavedWeights

_SAMPLE = Shape(128, 256)

MULTIPROCESSORS: Final = 132
"""Of an H200."""


class AnyJob(Protocol):
    """A kernel to compile, and its entry in the index."""

    @property
    def entry(self) -> KernelEntry: ...

    def compile(self, arch: str) -> CompiledKernel:
        """Raises `LowlpError`."""


@dataclass(frozen=True)
class Job:
    """One kernel of `linear` to compile; where the entry has slabs, what decodes them."""

    spec: LinearSpec
    schedule: Schedule
    entry: KernelEntry

    def compile(self, arch: str) -> CompiledKernel:
        """Raises `LowlpError`."""
        if self.entry.slabs:
            return compile(slab_kernel(self.spec, self.schedule), arch)
        return compile_for_gpu(self.spec, self.schedule, arch, (self.entry.rows[0], self.entry.rows[-1]))


def job_by(kind: WeightKind, spec: LinearSpec, schedule: Schedule, m: int, mark: str = "") -> Job:
    """The compilation of the kernel for m rows of x that decodes in the product, by this schedule; `mark` tells its
    file from others of the same problem. One of codebooks may begin while the kernel before it runs, as `linear` has
    it."""
    if spec.vectors and begins_early(spec, schedule, m):
        spec = replace(spec, dependent_launch=True)
    file = f"{file_stem(kind.name)}-{spec.n}x{spec.k}-m{m}{mark}.lowlp"
    return Job(spec, schedule, KernelEntry(kind.name, spec.n, spec.k, (m,), file, asdict(schedule)))


def job_of(kind: WeightKind, spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> Job:
    """The compilation of what `linear` takes for m rows of x where it would have this schedule: that kernel, or one
    that decodes slabs."""
    job = job_by(kind, spec, schedule, m)
    found = slabs_of(spec, sample_of(kind)) if slabs_take_less(spec, schedule, m, device) else None
    if found is None:
        return job
    slabs = [(part.start, part.stop - part.start) for part in parts_of_slabs(spec.n, spec.k)]
    divided = tuple((first, rows, blocks_for_slab(*found, rows, device)) for first, rows in slabs)
    return Job(*found, replace(job.entry, schedule=asdict(found[1]), slabs=divided))


def prepare(
    folder: Path,
    arch: str,
    kinds: Sequence[WeightKind],
    shapes: Sequence[Shape],
    rows: Sequence[int],
    jobs: int = 0,
    multiprocessors: int = MULTIPROCESSORS,
    gpu: str = "",
    batch_invariant: bool = False,
) -> Iterator[tuple[int, int, str]]:
    """Compiles all kernels and writes the folder; what another call put there for other kinds and shapes stays.

    jobs             processes; 0: one for each processor
    multiprocessors  of the GPU that will run them
    gpu              its name, whose measured schedules go before those of others; '': what the architecture has
    batch_invariant  with the schedules of `linear(..., batch_invariant=True)`

    Yields (done, of how many, what was done last). Raises `LowlpError` where nothing can be compiled; what is wrong
    with one kernel goes to the index.
    """
    fresh = PreparedKernels(folder, arch, compiler_version(), multiprocessors, gpu=gpu, batch_invariant=batch_invariant)
    folder.mkdir(parents=True, exist_ok=True)
    index = _open_index(fresh)
    specs = {kind.name: add_kind(index, kind, shapes) for kind in kinds}
    wanted = [
        job
        for kind in kinds
        for shape in shapes
        for job in _jobs(index, kind, spec_in(specs[kind.name], kind, shape), rows, gpu, batch_invariant)
    ]
    replaced = {(job.entry.kind, job.entry.n, job.entry.k) for job in wanted}
    index.kernels = [entry for entry in index.kernels if (entry.kind, entry.n, entry.k) not in replaced]
    for number, (_, entry) in enumerate(compiled(index, wanted, jobs), 1):
        index.kernels.append(entry)
        yield number, len(wanted), f"{entry.kind} {entry.n}x{entry.k}"
    index.kernels.sort(key=lambda entry: (entry.kind, entry.n, entry.k, entry.rows))
    index.save()


def spec_in(spec: LinearSpec, kind: WeightKind, shape: Shape) -> LinearSpec:
    """The spec of a kind's sample for weights of another shape. The codec is the kind's own: that of a spec says of a
    block of books, or a group, as long as a row, that it is one of all of K."""
    return replace(spec, n=shape.n, k=shape.k, codec=kind.codec_in(shape.n, shape.k))


def compiled(
    index: PreparedKernels, wanted: Sequence[AnyJob], processes: int = 0, code_alone: bool = False
) -> Iterator[tuple[int, KernelEntry]]:
    """Compiles into the folder, with the kernel that does nothing, and yields each job's number and entry when it is
    done.

    processes   how many; 0: one for each processor
    code_alone  saves machine code and not what it was made of: a quarter of the bytes
    """
    compile(_empty, index.arch).save(index.folder / EMPTY)
    count = min(processes or os.cpu_count() or 1, len(wanted)) or 1
    # The compiler's threads and locks do not survive a fork.
    pool = ProcessPoolExecutor(count, get_context("spawn"))
    try:
        futures: dict[Future[KernelEntry], int] = {
            pool.submit(_compile, job, index.arch, str(index.folder), code_alone): number
            for number, job in enumerate(wanted)
        }
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        # Whoever asks for no more does not wait for the rest.
        pool.shutdown(cancel_futures=True)


def _open_index(fresh: PreparedKernels) -> PreparedKernels:
    """The folder's index; or the one given, which is empty, where the folder has none, or one of another compiler, GPU
    or choice of schedules."""
    try:
        found = PreparedKernels.load_index(fresh.folder)
    except LowlpError:
        return fresh
    return found if replace(found, weights={}, kernels=[], kinds={}) == fresh else fresh


@ll.kernel(grid=(1,), num_threads=32)
def _empty(m: ll.i32) -> None:  # type: ignore[valid-type]
    pass


@functools.lru_cache(maxsize=256)
def sample_of(kind: WeightKind) -> QuantizedTensor:
    """A few weights of this kind, as `quantize` makes them for a user; of codebooks random codes and entries."""
    if kind.vectors:
        return _sample_of_books(kind)
    weights = np.random.default_rng(kind.bits).normal(size=(_SAMPLE.n, _SAMPLE.k)).astype(np.float32)
    if kind.is_positive:
        weights = np.abs(weights)
    return quantize(weights, kind.codec, activation=kind.activation)


def _sample_of_books(kind: WeightKind) -> QuantizedTensor:
    drawn = draw_books(np.random.default_rng(kind.bits), book_form(kind.vectors), _SAMPLE)
    vectors = kind.codec.vectors
    assert vectors is not None
    return QuantizedTensor(
        drawn.codes,
        codebooks=str(vectors) if drawn.entries is None else drawn.entries,
        book_scales=drawn.book_scales,
        book_per=vectors.book_per if vectors.block else None,
        scales=drawn.scales,
        activation=kind.activation,
    )


def add_kind(index: PreparedKernels, kind: WeightKind, shapes: Sequence[Shape]) -> LinearSpec:
    """Puts the kind and its weights into the index, and its sample into the folder; returns the sample's spec.

    shapes  that there will be kernels for
    """
    index.kinds[kind.name] = kind
    packed: list[Shape] = []
    spread: list[Shape] = []
    for shape in shapes:
        (packed if kind.codec_in(shape.n, shape.k) == kind.codec else spread).append(shape)
    if spread:
        _add_weights(index, kind, name_of_spread(kind.name), sample_of(kind).spread(), spread)
    return _add_weights(index, kind, kind.name, sample_of(kind), packed)


def _add_weights(
    index: PreparedKernels, kind: WeightKind, name: str, sample: QuantizedTensor, shapes: Sequence[Shape]
) -> LinearSpec:
    """The same of weights that are packed as the sample is."""
    spec = for_weights(spec_for(sample, kind.activation, kind.activation, aligned=True), sample)
    known = index.weights.get(name)
    index.weights[name] = describe(kind, sample, spec, shapes, {} if known is None else known.placement.shapes)
    arrays: dict[str, Any] = {"codes": sample.codes, "scales": as_known(sample.scales)}
    if sample.zeros is not None:
        arrays["zeros"] = sample.zeros
    if sample.scale2 is not None:
        arrays["scale2"] = sample.scale2
    vectors = sample.codec.vectors
    if vectors is not None:
        if vectors.lattices:
            arrays["codebooks"] = lattice_tables(vectors)
            arrays["vectors"] = np.stack([lattice_vectors(name) for name in vectors.lattices])
        else:
            arrays["codebooks"] = sample.codebooks
        if sample.book_scales is not None:
            arrays["book_scales"] = sample.book_scales
    for operand, array in host_operands(sample, kind.activation, schedule=TAKES_ALL).items():
        arrays[f"operand {operand}"] = as_known(np.asarray(array))
    np.savez_compressed(index.folder / f"{file_stem(name)}.npz", **arrays)
    return spec


def as_known(array: AnyArray) -> AnyArray:
    """An array of a type that numpy lacks as integers of its bits."""
    return array if array.dtype.kind in "iuf" else array.view(f"i{array.itemsize}" if array.itemsize > 1 else "u1")


def describe(
    kind: WeightKind,
    sample: QuantizedTensor,
    spec: LinearSpec,
    shapes: Sequence[Shape],
    known_shapes: dict[str, tuple[int, int, int, int, int]],
) -> SavedWeights:
    """How weights like the sample become operands, as data."""
    return describe_packed(kind, sample, spec.placement, operands_of_weights(spec, TAKES_ALL), shapes, known_shapes)


def describe_packed(
    kind: WeightKind,
    sample: QuantizedTensor,
    placement: Placement,
    operands: tuple[Operand, ...],
    shapes: Sequence[Shape],
    known_shapes: dict[str, tuple[int, int, int, int, int]],
) -> SavedWeights:
    """The same for kernels that take these operands of weights, with words of this placement."""
    for shape in shapes:
        if placement.for_matrix(shape.n, shape.k) != placement:
            raise LowlpValueError(
                f"shapes: the bench packs in units of {placement.unit_k} weights of a row, got {shape}"
            )
    values, codes = _values_of(kind, sample)
    saved = SavedPlacement(
        name=placement.name,
        bits=placement.bits,
        code_bytes=placement.code_bytes,
        unit_rows=placement.unit_rows,
        unit_k=placement.unit_k,
        row_tiles=placement.row_tiles,
        num_words=placement.num_words,
        parts=placement.parts,
        steps=placement.steps,
        slots=placement.slots,
        bit_moves=tuple(placement.moves()),
        shapes=known_shapes | {str(shape): placement.packed_shape(shape.n, shape.k) for shape in (_SAMPLE, *shapes)},
    )
    return SavedWeights(
        kind=kind.name,
        values=values,
        codes=codes,
        flip=stored_form(sample.codec)[1],
        zeros_dtype="" if sample.zeros is None else sample.zeros.dtype.name,
        placement=saved,
        lut=() if sample.lut is None else tuple(float(entry) for entry in sample.lut),
        operands=operands,
        group=kind.group,
        scale=kind.scale,
        activation=kind.activation,
        vectors=kind.vectors,
        skewed=kind.skewed,
        spread=sample.codec.vectors.spread if sample.codec.vectors else "",
        frequent=kind.frequent,
    )


def _values_of(kind: WeightKind, sample: QuantizedTensor) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Of all codes the values, and those codes that are numbers; of vectors none."""
    if kind.vectors:
        return (), ()
    every = np.arange(1 << kind.bits, dtype=np.uint8)
    values = dtype(kind.dtype).decode(every) if sample.lut is None else sample.lut
    finite = np.isfinite(values)
    return tuple(float(value) for value in np.where(finite, values, 0.0)), tuple(int(code) for code in every[finite])


def _jobs(
    index: PreparedKernels,
    kind: WeightKind,
    spec: LinearSpec,
    rows: Sequence[int],
    gpu: str,
    batch_invariant: bool,
) -> Iterator[Job]:
    by_kernel: dict[tuple[LinearSpec, Schedule], Job] = {}
    device = device_ahead(index.arch, index.multiprocessors, gpu)
    for m in rows:
        if kind.version:
            schedule = version_schedule(spec, m, device, kind.version)
        else:
            schedule = schedule_for(spec, m, device, batch_invariant, gpu)
        if kind.version or batch_invariant:
            job = job_by(kind, spec, schedule, m)
        else:
            job = job_of(kind, spec, schedule, m, device)
        known = by_kernel.setdefault((job.spec, job.schedule), job)
        if known is not job:
            entry = replace(known.entry, rows=(*known.entry.rows, m))
            by_kernel[job.spec, job.schedule] = replace(known, entry=entry)
    yield from by_kernel.values()


def _compile(job: AnyJob, arch: str, folder: str, code_alone: bool) -> KernelEntry:
    entry = job.entry
    # The entry says it.
    warnings.simplefilter("ignore", ProductWarning)
    warnings.simplefilter("ignore", SpillWarning)
    try:
        kernel = job.compile(arch)
        if code_alone:
            before = kernel.binary.before
            if before is not None:
                before = KernelBinary(before.description, cubins=before.cubins)
            KernelBinary(kernel.description, cubins={arch: kernel.cubin}, before=before).save(Path(folder, entry.file))
        else:
            kernel.save(Path(folder, entry.file))
    except LowlpError as error:
        return replace(entry, file="", problem=f"{type(error).__name__}: {error}")
    return replace(entry, spilled_bytes=kernel.spilled_bytes, product_remarks=kernel.product_remarks)
