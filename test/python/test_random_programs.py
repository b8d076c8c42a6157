"""Random block programs on the CPU target, compared with a model in numpy.

A program loads a tile, views its bits as another type, casts and stores: random layouts, types, views, offsets and
promises. The model knows no threads' registers and no addresses in bytes; it moves elements as layouts and views say.
Outputs are poisoned, so that an element written in excess is seen as well as one left out.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import lowlp
from lowlp import errors
from lowlp.compiler import compilation
from lowlp.layouts import register_layout
from lowlp.numeric import dtypes

Array = npt.NDArray[Any]
Random = np.random.Generator

TYPES = [t for t in dtypes.all_dtypes() if not t.name.startswith("bipolar")]
BF16 = np.dtype(ml_dtypes.bfloat16)
WIDE = {"f16": np.dtype(np.float16), "bf16": BF16, "f32": np.dtype(np.float32)} | {
    name: np.dtype(name) for name in ("int16", "uint16", "int32", "uint32")
}
MAX_ELEMENTS = 1 << 16


# --- numbers ---------------------------------------------------------------------------------------------------------


def to_values(dtype: lowlp.DType, codes: Array) -> Array:
    """Codes, or the bits of a wide type, as float64."""
    if dtype.name not in WIDE:
        return dtype.decode(codes).astype(np.float64)
    unsigned = codes.astype(f"u{dtype.bits // 8}")
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs
        return unsigned.view(WIDE[dtype.name]).astype(np.float64)


def nearest_bf16(values: Array) -> Array:
    """Numbers of float64 rounded once; NumPy's conversion goes by way of float32."""
    near = values.astype(np.float32).view(np.uint32) >> 16
    candidates = (near[..., None] + np.array([0, 1], np.uint32)).astype(np.uint16)
    with np.errstate(all="ignore"):
        distances = np.abs(candidates.view(BF16).astype(np.float64) - values[..., None])
        # Two equally near ones are neighbours, one of which is even.
        is_odd_tie = (distances[..., 0] == distances[..., 1]) & (candidates[..., 0] % 2 == 1)
        second = (distances[..., 1] < distances[..., 0]) | is_odd_tie
    chosen = np.where(second, candidates[..., 1], candidates[..., 0])
    fits = np.isfinite(values) & (np.abs(values) < 2.0**127)
    return np.where(fits, chosen, values.astype(BF16).view(np.uint16))


def to_codes(dtype: lowlp.DType, values: Array) -> Array:
    """The inverse of `to_values`, rounded. NaN is the largest number where a float has no NaN, and 0 as an integer."""
    with np.errstate(all="ignore"):
        if dtype.name in WIDE and dtype.is_integer:
            whole = np.clip(np.rint(np.where(np.isnan(values), 0, values)), dtype.min, dtype.max)
            return whole.astype(np.int64).astype(np.uint64) & np.uint64(2**dtype.bits - 1)
        if dtype.name == "bf16":
            return nearest_bf16(values).astype(np.uint64)
        if dtype.name in WIDE:
            return values.astype(WIDE[dtype.name]).view(f"u{dtype.bits // 8}").astype(np.uint64)
        nan = np.isnan(values)
        codes = dtype.encode(np.where(nan, 0.0, values)).astype(np.uint64)
    if not dtype.is_float:
        return codes
    all_values = dtype.decode(np.arange(2**dtype.bits))
    positive = np.arange(2 ** (dtype.bits - 1))
    nan_codes = positive[np.isnan(all_values[positive])]
    return np.where(nan, np.uint64(nan_codes[0] if len(nan_codes) else positive[-1]), codes)


def to_bits(codes: Array, width: int) -> Array:
    """The last axis of codes as bits, low bits first."""
    bits = codes[..., None].astype(np.uint64) >> np.arange(width, dtype=np.uint64) & np.uint64(1)
    return bits.reshape(*codes.shape[:-1], -1).astype(np.uint8)


def from_bits(bits: Array, width: int) -> Array:
    """The inverse of `to_bits`."""
    grouped = bits.reshape(*bits.shape[:-1], -1, width).astype(np.uint64)
    return (grouped << np.arange(width, dtype=np.uint64)).sum(axis=-1, dtype=np.uint64)


# --- programs --------------------------------------------------------------------------------------------------------


@dataclass
class View:
    """A view and the offset of a tile in it: one term for each of (1, first block index, second, loop index)."""

    dtype: lowlp.DType
    shape: list[int]
    strides: list[int]
    row_major: bool
    offsets: list[list[int]]
    align: int
    dynamic: list[bool] = field(default_factory=list)  # of the extents, then of the strides
    in_bounds: bool = False

    @property
    def num_elements(self) -> int:
        return 1 + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))

    def places(self, layout: lowlp.Layout, block: tuple[int, int], k: int) -> tuple[Array, Array]:
        """For each thread and local: the element of the buffer, and whether it lies inside of the view."""
        table = layout.table()
        offset = np.array([np.dot(terms, (1, *block, k)) for terms in self.offsets])
        index = offset + np.zeros((*table.shape[:2], 1), int)
        index[..., len(self.shape) - layout.rank :] += table
        return index @ np.array(self.strides), ((index >= 0) & (index < self.shape)).all(axis=-1)


@dataclass
class Program:
    """load source -> view -> cast -> store target, for each of `steps` in a loop."""

    threads: int
    grid: tuple[int, int]
    steps: range
    loaded: lowlp.Layout
    stored: lowlp.Layout
    source: View
    viewed: lowlp.DType
    target: View
    divisors: dict[str, int] = field(default_factory=dict)


def pick(random: Random, *choices: Any) -> Any:
    return choices[random.integers(len(choices))]


def random_layout(random: Random, threads: int, num_local: int, rank: int) -> lowlp.Layout:
    """Any factors of the two numbers in any order, in any dimension; some of the threads' are replicas."""
    extents: list[list[int]] = [[] for _ in range(rank)]
    factors = [[p for p in (2, 3, 5, 7, 11, 13, 17, 19, 23) for _ in range(_power(n, p))] for n in (threads, num_local)]
    placed: list[tuple[int, int, int, float]] = []  # index list, extent, dimension, position in the dimension
    for which in (0, 1):
        random.shuffle(factors[which])
        for factor in factors[which]:
            dim = -1 if which == 0 and random.random() < 0.08 else int(random.integers(rank))
            near = 2 if which == 1 and random.random() < 0.4 else 0  # often innermost: runs of neighbours
            placed.append((which, factor, dim if near == 0 else rank - 1, near + random.random()))
    numbers: dict[int, int] = {}
    for dim in range(rank):
        inside = sorted((p[3], number) for number, p in enumerate(placed) if p[2] == dim)
        for _, number in inside:
            numbers[number] = len(numbers)
            extents[dim].append(placed[number][1])
    lists: list[list[tuple[int | None, int]]] = [
        [(numbers.get(number), p[1]) for number, p in enumerate(placed) if p[0] == which] for which in (0, 1)
    ]
    if random.random() < 0.5:
        lists[1].sort(key=lambda digit: digit[0] or 0)
    return register_layout.from_modes(extents, *lists)


def _power(n: int, p: int) -> int:
    return 0 if n % p else 1 + _power(n // p, p)


def random_view(random: Random, dtype: lowlp.DType, layout: lowlp.Layout, grid: tuple[int, int], steps: range) -> View:
    """Numbers are often multiples of a unit, for wide accesses; tiles lie inside, or hang over the edges."""
    unit = pick(random, 1, 1, 4, 8, 16)
    rank = layout.rank + int(random.integers(0, 3 if layout.rank < 3 else 1))
    tile = (1,) * (rank - layout.rank) + layout.shape
    is_roomy = random.random() < 0.5
    offsets = np.zeros((rank, 4), int)  # of 1, the first block index, the second, the loop index
    if not is_roomy or random.random() < 0.5:
        offsets[:, 0] = unit * random.integers(0 if is_roomy else -1, 3, rank) * (random.random(rank) < 0.3)
    offsets[random.integers(rank), 3] = pick(random, 0, unit)
    for axis, count in enumerate(grid):
        dim = random.integers(rank)
        offsets[dim, 1 + axis] = tile[dim] * (grid[0] if offsets[dim, 1] else 1)
        if count > 1 and random.random() < 0.2:
            offsets[dim, 1 + axis] += int(random.integers(-1 if not is_roomy else 0, 2))
    last = (1, grid[0] - 1, grid[1] - 1, steps[-1])
    need = [max(1, int(np.dot(terms, last)) + n) for terms, n in zip(offsets, tile, strict=True)]
    if is_roomy:
        shape = [n + pick(random, 0, 0, unit) for n in need]
    else:
        shape = [max(1, n - int(random.integers(0, 1 + min(n, max(unit, n // 2))))) for n in need]
    if random.random() < 0.6:
        shape = [-(-extent // unit) * unit for extent in shape]
    row_major = random.random() < 0.5
    strides, running = [0] * rank, 1
    order = list(range(rank))[::-1] if row_major or random.random() < 0.6 else list(random.permutation(rank))
    for dim in order:
        strides[dim] = running
        running *= shape[dim]
        if not row_major:
            running += pick(random, 0, 0, unit, int(random.integers(0, 4)))
            if random.random() < 0.08:
                strides[dim] = 0
    align = pick(random, 1, 2, 4, 8, 16, 16)
    dynamic = [random.random() < 0.4 for _ in range(2 * rank)]
    return View(dtype, shape, strides, row_major, offsets.tolist(), align, dynamic)


def is_inside(view: View, layout: lowlp.Layout, program: Program) -> bool:
    """True when every element of every tile lies inside of the view."""
    return all(view.places(layout, block, k)[1].all() for block, k in moments(program))


def moments(program: Program) -> list[tuple[tuple[int, int], int]]:
    return [((x, y), k) for x in range(program.grid[0]) for y in range(program.grid[1]) for k in program.steps]


def random_program(random: Random) -> Program:
    threads = 32 * int(random.integers(1, 5))
    loaded_type, viewed, stored_type = (TYPES[i] for i in random.integers(len(TYPES), size=3))
    if random.random() < 0.2:
        viewed = loaded_type
    if random.random() < 0.2:
        stored_type = viewed
    bits = math.lcm(loaded_type.bits, viewed.bits)
    bits *= int(random.integers(1, 1 + max(1, 96 // bits)))
    loaded = random_layout(random, threads, bits // loaded_type.bits, int(random.integers(1, 4)))
    stored = random_layout(random, threads, bits // viewed.bits, int(random.integers(1, 4)))
    grid = pick(random, (1, 1), (2, 1), (1, 3), (2, 2))
    start = int(random.integers(0, 3))
    step = int(random.integers(1, 3))
    steps = pick(random, range(1), range(1), range(start, start + 2 * step, step))
    source = random_view(random, loaded_type, loaded, grid, steps)
    target = random_view(random, stored_type, stored, grid, steps)
    program = Program(threads, grid, steps, loaded, stored, source, viewed, target)
    if max(source.num_elements, target.num_elements) > MAX_ELEMENTS:
        return random_program(random)
    for view, layout in ((source, loaded), (target, stored)):
        view.in_bounds = is_inside(view, layout, program) and random.random() < 0.7
    return program


# --- as text ---------------------------------------------------------------------------------------------------------


class Text:
    """The lines of a kernel's body, and the integer parameters that they need."""

    def __init__(self) -> None:
        self.body: list[str] = ["%x, %y = lowlp.block_indices : index, index"]
        self.parameters: list[str] = []
        self.integers: list[int] = []

    def number(self, name: str, value: int, is_dynamic: bool) -> str:
        """A number, or an index made of a parameter that promises something true."""
        if not is_dynamic:
            return str(value)
        divisor = (1, 2, 4, 8, 16, value)[(value + len(self.integers)) % 6] or 1
        promise = f" {{lowlp.divisible_by = {divisor} : i64}}" if value % divisor == 0 else ""
        self.parameters.append(f"%{name}: i32{promise}")
        self.integers.append(value)
        self.body.append(f"%{name}_index = arith.index_cast %{name} : i32 to index")
        return f"%{name}_index"

    def view(self, name: str, view: View) -> str:
        """Makes `%name_view`; returns its type."""
        rank = len(view.shape)
        shape = [self.number(f"{name}{d}", n, view.dynamic[d]) for d, n in enumerate(view.shape)]
        strides = ""
        if not view.row_major:
            numbers = [self.number(f"{name}s{d}", n, view.dynamic[rank + d]) for d, n in enumerate(view.strides)]
            strides = f"strides [{', '.join(numbers)}] "
        extents = "x".join("?" if text.startswith("%") else text for text in shape)
        pointer, result = f"!lowlp.ptr<{view.dtype.mlir}>", f"!lowlp.global<{extents}x{view.dtype.mlir}>"
        operands = f"%{name} shape [{', '.join(shape)}] {strides}"
        self.body.append(f"%{name}_view = lowlp.view_global {operands}: {pointer} -> {result}")
        return result

    def offsets(self, name: str, view: View) -> str:
        """Computes one offset for each dimension; returns their names."""
        for d, terms in enumerate(view.offsets):
            self.body.append(f"%{name}o{d}_0 = arith.constant {terms[0]} : index")
            for i, factor in enumerate(("%x", "%y", "%k")):
                self.body += [
                    f"%{name}c{d}_{i} = arith.constant {terms[1 + i]} : index",
                    f"%{name}m{d}_{i} = arith.muli {factor}, %{name}c{d}_{i} : index",
                    f"%{name}o{d}_{i + 1} = arith.addi %{name}o{d}_{i}, %{name}m{d}_{i} : index",
                ]
        return ", ".join(f"%{name}o{d}_3" for d in range(len(view.shape)))


def tile_type(layout: lowlp.Layout, dtype: lowlp.DType) -> str:
    return f"!lowlp.tile<{'x'.join(map(str, layout.shape))}x{dtype.mlir}, {layout}>"


def to_mlir(program: Program) -> tuple[str, list[int]]:
    """The program as text, and the arguments that its pointers name."""
    text, source, target, steps = Text(), program.source, program.target, program.steps
    loaded = tile_type(program.loaded, source.dtype)
    viewed, stored = (tile_type(program.stored, dtype) for dtype in (program.viewed, target.dtype))
    source_type, target_type = text.view("a", source), text.view("b", target)
    bounds = (("lo", steps.start), ("hi", steps.stop), ("st", steps.step))
    text.body += [f"%{name} = arith.constant {value} : index" for name, value in bounds]
    text.body.append("scf.for %k = %lo to %hi step %st {")
    a, b = text.offsets("a", source), text.offsets("b", target)
    a_promise, b_promise = (" in_bounds" if view.in_bounds else "" for view in (source, target))
    text.body += [
        f"%l = lowlp.load_global %a_view[{a}]{a_promise} : {source_type} -> {loaded}",
        f"%v = lowlp.view %l : {loaded} -> {viewed}",
        f"%c = lowlp.cast %v : {viewed} -> {stored}",
        f"lowlp.store_global %c, %b_view[{b}]{b_promise} : {stored}, {target_type}",
        "}",
        "lowlp.return",
    ]
    pointers = [
        f"%{name}: !lowlp.ptr<{view.dtype.mlir}> {{lowlp.align = {view.align} : i64}}"
        for name, view in (("a", source), ("b", target))
    ]
    dims = ", ".join(f"d{i}" for i in range(len(text.integers)))
    grid = f"affine_map<({dims}) -> ({program.grid[0]}, {program.grid[1]})>"
    attributes = f"grid = {grid}, num_threads = {program.threads} : i64"
    head = f"lowlp.kernel @f({', '.join(pointers + text.parameters)}) attributes {{{attributes}}} {{"
    return "\n  ".join([head, *text.body]) + "\n}", text.integers


# --- running ---------------------------------------------------------------------------------------------------------


def make_buffer(random: Random, view: View) -> Array:
    """Random bytes for a view at an address that keeps its promise and no more."""
    size = -(-view.num_elements * view.dtype.bits // 32) * 4
    align = max(view.align, 4)
    memory = random.integers(0, 256, size + 3 * align, dtype=np.uint8)
    skip = -memory.ctypes.data % (2 * align) + align
    return memory[skip : skip + size]


def as_argument(view: View, buffer: Array) -> Array:
    name = view.dtype.name
    return buffer.view(WIDE[name]) if name in WIDE else buffer


def run_model(program: Program, source: Array, target: Array) -> tuple[Array, Array]:
    """The bits of the target after the program, and which of them are known: those not written twice over."""
    a, b = program.source, program.target
    codes = from_bits(to_bits(source, 8)[: a.num_elements * a.dtype.bits], a.dtype.bits)
    result_bits = to_bits(target, 8)
    result = from_bits(result_bits[: b.num_elements * b.dtype.bits], b.dtype.bits)
    writers: dict[int, set[int]] = {}
    firsts = first_owners(program.stored)
    for block, k in moments(program):
        place, inside = a.places(program.loaded, block, k)
        loaded = np.where(inside, codes[np.where(inside, place, 0)], 0)
        viewed = from_bits(to_bits(loaded, a.dtype.bits), program.viewed.bits)
        if program.viewed != b.dtype:
            viewed = to_codes(b.dtype, to_values(program.viewed, viewed))
        place, inside = b.places(program.stored, block, k)
        inside &= firsts
        for at, code in zip(place[inside].tolist(), viewed[inside].tolist(), strict=True):
            writers.setdefault(at, set()).add(code)
    known = np.ones(len(result), bool)
    for at, values in writers.items():
        known[at] = len(values) == 1
        result[at] = next(iter(values))
    count = len(result) * b.dtype.bits
    known_bits = np.ones(len(result_bits), bool)
    known_bits[:count] = np.repeat(known, b.dtype.bits)
    result_bits[:count] = to_bits(result, b.dtype.bits)
    return result_bits, known_bits


def first_owners(layout: lowlp.Layout) -> Array:
    """For each thread and local whether no smaller thread holds the same element."""
    flat = layout.table() @ np.cumprod((1, *layout.shape[:0:-1]))[::-1]
    first = np.zeros(flat.size, bool)
    first[np.unique(flat.reshape(-1), return_index=True)[1]] = True
    return first.reshape(flat.shape)


def canonical(dtype: lowlp.DType, bits: Array) -> Array:
    """The codes, all NaN being one: their payload is left open."""
    codes = from_bits(bits[: len(bits) // dtype.bits * dtype.bits], dtype.bits)
    if dtype.is_float:
        with np.errstate(all="ignore"):
            codes[np.isnan(to_values(dtype, codes))] = 2**dtype.bits
    return codes


def check(program: Program, random: Random, seed: int) -> None:
    text, integers = to_mlir(program)
    source, target = make_buffer(random, program.source), make_buffer(random, program.target)
    expected, known = run_model(program, source, target)
    kernel = compilation.compile_cpu(text, opt_level=int(random.integers(0, 3)))
    # Tiles of different blocks and steps may overlap, which is a race that the model allows for.
    arrays = as_argument(program.source, source), as_argument(program.target, target)
    kernel(*arrays, *integers, seed=seed, checks="bounds")
    found = to_bits(target, 8)
    dtype = program.target.dtype
    expected, found = np.where(known, expected, 0), np.where(known, found, 0)
    if program.viewed == dtype:  # nothing but bits was moved
        np.testing.assert_array_equal(found, expected, err_msg=text)
    np.testing.assert_array_equal(canonical(dtype, found), canonical(dtype, expected), err_msg=text)
    tail = program.target.num_elements * dtype.bits
    np.testing.assert_array_equal(found[tail:], expected[tail:], err_msg=text)


@pytest.mark.parametrize("number", range(40))
def test_load_view_cast_store(number: int) -> None:
    random = np.random.default_rng([2, number])
    check(random_program(random), random, seed=number)


def broken_program(random: Random) -> tuple[Program, set[int]]:
    """A program whose load promises in_bounds although some threads, which are returned, leave the view."""
    while True:
        program = random_program(random)
        outside = np.zeros(program.threads, bool)
        for block, k in moments(program):
            outside |= ~program.source.places(program.loaded, block, k)[1].all(axis=1)
        if outside.any():
            program.source.in_bounds = True
            return program, set(np.flatnonzero(outside).tolist())


@pytest.mark.parametrize("number", range(8))
def test_broken_promise_names_op_line_and_thread(number: int) -> None:
    random = np.random.default_rng([4, number])
    program, threads = broken_program(random)
    text, integers = to_mlir(program)
    line = 1 + next(i for i, line in enumerate(text.splitlines()) if "lowlp.load_global" in line)
    buffers = [as_argument(view, make_buffer(random, view)) for view in (program.source, program.target)]
    pattern = rf"^lowlp\.load_global at -:{line}:\d+: the access promises in_bounds.*thread \((\d+), 0, 0\)"
    with pytest.raises(errors.CpuTargetError, match=pattern) as raised:
        compilation.compile_cpu(text)(*buffers, *integers, seed=number)
    found = re.search(pattern, str(raised.value))
    assert found and int(found[1]) in threads
