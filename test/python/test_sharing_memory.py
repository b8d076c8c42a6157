"""Shared tiles that share bytes: random programs on the CPU target, which reports every race, against numpy.

A program keeps one tile of registers. It stores it, each time in another layout, loads it back and adds, with loops
around; it has the barriers that its own tiles need and no more. Those that sharing needs must come from the compiler.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from lowlp._mlir._mlir_libs._compiler import CpuProgram

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.compiler.compilation import compile_cpu
from lowlp.compiler.description import read_kernels

Random = np.random.Generator
SIZE = 128
HELD = "spatial(64).local(2)"
STORED = [
    "spatial(64).local(2)",
    "local(2).spatial(64)",
    "local(2).spatial(2).local(1).spatial(32)",
    "spatial(2).local(2).spatial(32)",
]
TILE = f"!lowlp.tile<{SIZE}xf32, {{}}>"


@dataclass
class Program:
    """Statements: ('store', tile, layout), ('load', tile), ('loop', trips, statements)."""

    random: Random
    extents: list[int]
    lines: list[str] = field(default_factory=list)
    values: int = 0

    def statements(self, count: int, depth: int, stored: set[int]) -> list[tuple]:
        """Loads are of tiles that are surely stored by then."""
        made: list[tuple] = []
        for _ in range(count):
            kind = self.random.choice(["store", "load", "load", "loop"])
            if kind == "loop" and depth < 2:
                inside = self.statements(int(self.random.integers(2, 5)), depth + 1, stored)
                made.append(("loop", int(self.random.integers(1, 4)), inside))
            elif kind == "load" and stored:
                made.append(("load", int(self.random.choice(sorted(stored)))))
            else:
                tile = int(self.random.integers(len(self.extents)))
                stored.add(tile)
                made.append(("store", tile, str(self.random.choice(STORED))))
        return made

    def emit(self, statements: list[tuple], value: str) -> str:
        """Adds the lines; returns the name of the tile after them."""
        for statement in statements:
            if statement[0] == "store":
                value = self.emit_store(value, *statement[1:])
            elif statement[0] == "load":
                value = self.emit_load(value, statement[1])
            else:
                value = self.emit_loop(value, *statement[1:])
        return value

    def name(self) -> str:
        self.values += 1
        return f"%v{self.values}"

    def emit_store(self, value: str, tile: int, layout: str) -> str:
        moved, held, to = self.name(), TILE.format(HELD), TILE.format(layout)
        self.lines += [
            f"{moved} = lowlp.convert_layout {value} : {held} -> {to}",
            "lowlp.synchronize",  # after the loads of this tile before
            f"lowlp.store_shared {moved}, %s{tile}[%c0] : {to}, !lowlp.shared<{self.extents[tile]}xf32>",
        ]
        return value

    def emit_load(self, value: str, tile: int) -> str:
        loaded, half, total, held = self.name(), self.name(), self.name(), TILE.format(HELD)
        self.lines += [
            "lowlp.synchronize",
            f"{loaded} = lowlp.load_shared %s{tile}[%c0] : !lowlp.shared<{self.extents[tile]}xf32> -> {held}",
            f"{half} = lowlp.mul {value}, %half : {held}",
            f"{total} = lowlp.add {half}, {loaded} : {held}",
        ]
        return total

    def emit_loop(self, value: str, trips: int, statements: list[tuple]) -> str:
        result, step, carried, held = self.name(), self.name(), self.name(), TILE.format(HELD)
        bounds = f"{step} = %c0 to %c{trips} step %c1"
        self.lines.append(f"{result} = scf.for {bounds} iter_args({carried} = {value}) -> ({held}) {{")
        last = self.emit(statements, carried)
        self.lines += [f"scf.yield {last} : {held}", "}"]
        return result

    def text(self, statements: list[tuple]) -> str:
        held = TILE.format(HELD)
        last = self.emit(statements, "%x")
        head = [f"%c{n} = arith.constant {n} : index" for n in range(4)]
        head += [f"%s{n} = lowlp.alloc_shared : !lowlp.shared<{extent}xf32>" for n, extent in enumerate(self.extents)]
        body = "\n  ".join([*head, *self.lines_before(held), *self.lines])
        return f"""lowlp.kernel @f(%a: !lowlp.ptr<f32>, %b: !lowlp.ptr<f32>)
    attributes {{grid = affine_map<() -> (1)>, num_threads = 64 : i64}} {{
  {body}
  lowlp.store_global {last}, %to[%c0] : {held}, !lowlp.global<{SIZE}xf32>
  lowlp.return
}}"""

    @staticmethod
    def lines_before(held: str) -> list[str]:
        view = f"!lowlp.global<{SIZE}xf32>"
        return [
            "%number = arith.constant 0.5 : f32",
            f"%half = lowlp.splat %number : f32 -> {held}",
            f"%from = lowlp.view_global %a shape [{SIZE}] : !lowlp.ptr<f32> -> {view}",
            f"%to = lowlp.view_global %b shape [{SIZE}] : !lowlp.ptr<f32> -> {view}",
            f"%x = lowlp.load_global %from[%c0] : {view} -> {held}",
        ]


def model(statements: list[tuple], value: np.ndarray, tiles: dict[int, np.ndarray]) -> np.ndarray:
    """The value after the statements."""
    for statement in statements:
        if statement[0] == "store":
            tiles[statement[1]] = value
        elif statement[0] == "load":
            value = value * np.float32(0.5) + tiles[statement[1]]
        else:
            for _ in range(statement[1]):
                value = model(statement[2], value, tiles)
    return value


def run(number: int) -> tuple[int, int]:
    """Checks one program; returns its bytes with and without sharing."""
    random = np.random.default_rng([6, number])
    program = Program(random, [SIZE + 32 * int(random.choice([0, 0, 1, 2])) for _ in range(random.integers(2, 7))])
    statements = program.statements(int(random.integers(4, 12)), 0, set())
    text = program.text([("store", 0, HELD), *statements])
    kernel = compile_cpu(text)
    x = random.integers(-8, 8, SIZE).astype(np.float32)
    wanted = model([("store", 0, HELD), *statements], x, {})
    for seed in range(3):
        y = np.full(SIZE, np.nan, np.float32)
        kernel(x, y, seed=seed)
        np.testing.assert_array_equal(y, wanted, err_msg=text)
    memory = kernel.description.notes["shared memory"]
    assert isinstance(memory, dict)
    return memory["bytes"], memory["bytes without sharing"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", range(8))
def test_programs_that_share_bytes_are_right_and_have_no_races(group: int) -> None:
    saved = [without - bytes_ for bytes_, without in map(run, range(6 * group, 6 * group + 6))]
    assert max(saved) > 0


def test_tiles_used_in_turn_take_the_bytes_of_one() -> None:
    lines = []
    for step in range(4):
        lines += [("store", step, STORED[step % 2]), ("load", step)]
    program = Program(np.random.default_rng(0), [SIZE] * 4)
    kernel = compile_cpu(program.text(lines))
    memory = kernel.description.notes["shared memory"]
    assert isinstance(memory, dict)
    # Two conversions go through scratch tiles of their own, which share too.
    assert memory["bytes"] == kernel.description.shared_bytes == SIZE * 4
    assert memory["bytes without sharing"] >= 4 * SIZE * 4
    x = np.arange(SIZE, dtype=np.float32)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, model(lines, x, {}))


def test_without_the_barrier_of_the_compiler_there_is_a_race() -> None:
    """What the check of the programs above rests on."""
    statements = [("store", 0, HELD), ("load", 0), ("store", 1, STORED[3]), ("load", 1)]
    text = Program(np.random.default_rng(0), [SIZE, SIZE]).text(statements)
    before, behind = text.rsplit("lowlp.synchronize\n  lowlp.store_shared", 1)  # the barrier before the store to %s1
    module = compilation.open_program(f"{before}lowlp.store_shared{behind}")
    compilation.run_pipeline(module, "lowlp.kernel(lowlp-expand-exchanges,lowlp-plan-memory)")
    planned = str(module)
    tile = re.findall(r"(%\w+) = lowlp\.alloc_shared at 0 :", planned)[1]
    added = re.search(rf" *lowlp\.synchronize\n( *lowlp\.store_shared %\w+, {tile}\[)", planned)
    assert added, planned
    x, y = np.ones(SIZE, np.float32), np.ones(SIZE, np.float32)
    run_planned(planned)(x, y)
    with pytest.raises(lowlp.errors.CpuTargetError, match=r"race: .* have no barrier between them"):
        run_planned(planned.replace(added[0], added[1]))(x, y)


def run_planned(text: str) -> compilation.CpuKernel:
    """The kernel of a program whose memory is planned already."""
    module = compilation.open_program(text)
    compilation.run_pipeline(module, "lowlp-convert-to-thread,canonicalize,cse,lowlp-convert-thread-to-cpu")
    (description,) = read_kernels(module, compiler_version="", notes={})
    return compilation.CpuKernel(description, CpuProgram(module.operation, 2))


@pytest.mark.parametrize("groups", [0, 1])
def test_a_copy_in_flight_keeps_its_bytes(groups: int) -> None:
    """Where all groups are waited for, the next tile takes the bytes; where one may be on its way, it does not."""
    rows, columns = lowlp.layout(HELD), lowlp.layout(STORED[1])

    @lowlp.kernel(grid=(1,), num_threads=64)
    def reuse(x: ll.pointer("f32", align=16), y: ll.pointer("f32")) -> None:
        view = ll.view_global(x, shape=[SIZE])
        filled, used = ll.alloc_shared("f32", [SIZE]), ll.alloc_shared("f32", [SIZE])
        tile = ll.load_global(view, offsets=[0], layout=rows)
        ll.copy_async(view, filled, view_offsets=[0], offsets=[0], shape=[SIZE])
        ll.copy_async_commit()
        ll.copy_async_wait(groups)
        ll.store_shared(tile * 2.0, used, offsets=[0])
        ll.synchronize()
        twice = ll.load_shared(used, offsets=[0], layout=columns)
        ll.copy_async_wait(0)
        ll.store_global(twice, ll.view_global(y, shape=[SIZE]), offsets=[0])

    kernel = compile_cpu(reuse)
    assert kernel.description.shared_bytes == SIZE * 4 * (1 + groups)
    x = np.arange(SIZE, dtype=np.float32)
    for seed in range(3):
        y = np.zeros_like(x)
        kernel(x, y, seed=seed)
        np.testing.assert_array_equal(y, 2 * x)


def test_the_limit_is_that_of_tiles_live_at_once() -> None:
    """Two tiles of 120 KiB, one after the other: refused when both are live, and not when in turn."""
    large = 30 * 1024
    in_turn = [("store", 0, HELD), ("load", 0), ("store", 1, HELD), ("load", 1)]
    at_once = [("store", 0, HELD), ("store", 1, HELD), ("load", 0), ("load", 1)]
    kernel = compile_cpu(Program(np.random.default_rng(0), [large, large]).text(in_turn))
    assert kernel.description.shared_bytes == 4 * large
    with pytest.raises(
        lowlp.errors.CompileError,
        match="does not fit: a block has at most 232448 bytes of shared memory, but its tiles take 245760",
    ):
        compile_cpu(Program(np.random.default_rng(0), [large, large]).text(at_once))
