"""Random programs in which some tiles have named layouts and most have none: optimised and not, they compute the same.

Numbers are integers from -4 to 4 throughout, so that every sum and product is exact whatever its order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lowlp import language as ll
from lowlp.compiler.compilation import compile_cpu

Random = np.random.Generator
Step = Callable[[Any, list[Any]], Any]

EXTENT = 32
WARPS = 2
NAMED = [
    "local(4, 1).spatial(8, 8).local(1, 4)",
    "local(1, 4).column_spatial(8, 8).local(4, 1)",
    "spatial(2, 1).local(1, 4).local(2, 1).spatial(8, 4).local(1, 2)",
    "reduce(spatial(1, 1, 2), dims=[2]).local(4, 4).spatial(8, 4).local(1, 2)",
]
INPUTS = 3


@ll.inline
def carried_through(tile: Any, carried: Any) -> Any:
    """`tile` by way of a variable that a loop carries, with the layout of that."""
    for _ in ll.range(1):
        carried = tile
    return carried


@ll.inline
def repeated(count: int, body: Callable[[list[Any]], list[Any]], carried: list[Any], stages: int) -> list[Any]:
    for _ in ll.range(count, stages=stages):
        carried = body(carried)
    return carried


@ll.inline
def branched(condition: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    result = other()
    if condition:
        result = one()
    return result


class Tiles:
    """The steps of programs on tiles of the DSL."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x_view = ll.view_global(x, shape=[INPUTS, EXTENT, EXTENT])
        self.y_view = ll.view_global(y, shape=[EXTENT, EXTENT])

    def load(self, number: int, layout: str | None) -> Any:
        shape = {"shape": [EXTENT, EXTENT]} if layout is None else {"layout": layout}
        return ll.cast(ll.load_global(self.x_view, offsets=[number, 0, 0], **shape), "f32")  # type: ignore[arg-type]

    def full(self, value: float) -> Any:
        return ll.full(value, "f32", shape=[EXTENT, EXTENT])

    def clamp(self, tile: Any) -> Any:
        return ll.clamp(tile, -4.0, 4.0)

    def convert(self, tile: Any, layout: str) -> Any:
        return ll.convert_layout(tile, layout)

    def transpose(self, tile: Any) -> Any:
        return ll.transpose(tile)

    def dot(self, a: Any, b: Any, c: Any) -> Any:
        return ll.dot(ll.cast(a, "f16"), ll.cast(b, "f16"), c)

    def total(self, tile: Any, dim: int) -> Any:
        return ll.sum(tile, dim, keep_dims=True)

    def index(self, dim: int) -> Any:
        return ll.iota(dim, shape=[EXTENT, EXTENT])

    def choose(self, a: Any, b: Any, c: Any) -> Any:
        return ll.where(a < b, c, a)

    def loop(self, count: int, body: Callable[[list[Any]], list[Any]], carried: list[Any], stages: int) -> list[Any]:
        return repeated(count, body, carried, stages)

    def branch(self, yes: bool, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        # The first element is at most 4, which the compiler does not know.
        value = ll.load_scalar(self.x_view, offsets=[0, 0, 0])
        return branched(value < (5.0 if yes else -5.0), one, other)

    def free(self, tile: Any) -> Any:
        """The tile with a layout that nobody named."""
        return tile if tile.choice != 2 else carried_through(tile, self.full(0.0))

    def both(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Tiles that may meet: of two layouts that are named and differ, the second is converted."""
        if min(a.choice, b.choice) == 2 and a.layout != b.layout and b.shape == a.shape:
            b = ll.convert_layout(b, a.layout)
        return a, b


class Arrays:
    """The same steps on arrays."""

    def __init__(self, x: Any) -> None:
        self.x = x.astype(np.float64)

    def load(self, number: int, layout: str | None) -> Any:
        return self.x[number]

    def full(self, value: float) -> Any:
        return np.full((EXTENT, EXTENT), value)

    def clamp(self, tile: Any) -> Any:
        return np.clip(tile, -4, 4)

    def convert(self, tile: Any, layout: str) -> Any:
        return tile

    def transpose(self, tile: Any) -> Any:
        return tile.T

    def dot(self, a: Any, b: Any, c: Any) -> Any:
        return a @ b + c

    def total(self, tile: Any, dim: int) -> Any:
        return tile.sum(axis=dim, keepdims=True)

    def index(self, dim: int) -> Any:
        return np.indices((EXTENT, EXTENT))[dim].astype(np.float64)

    def choose(self, a: Any, b: Any, c: Any) -> Any:
        return np.where(a < b, c, a)

    def loop(self, count: int, body: Callable[[list[Any]], list[Any]], carried: list[Any], stages: int) -> list[Any]:
        for _ in range(count):
            carried = body(carried)
        return carried

    def branch(self, yes: bool, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        return one() if yes else other()

    def free(self, tile: Any) -> Any:
        return tile

    def both(self, a: Any, b: Any) -> tuple[Any, Any]:
        return a, b


def run_steps(random: Random, on: Any, known: list[Any], count: int) -> Any:
    """Random steps on the tiles that are known; all results are kept within -4 to 4. Returns the last."""
    known = list(known)

    def pick() -> Any:
        return known[random.integers(len(known))]

    for _ in range(count):
        kind = random.choice(["load", "add", "mul", "convert", "transpose", "dot", "dot", "total", "choose", "index"])
        if kind == "load":
            layout = NAMED[random.integers(len(NAMED))] if random.random() < 0.3 else None
            value = on.load(int(random.integers(INPUTS)), layout)
        elif kind == "convert":
            value = on.convert(pick(), NAMED[random.integers(len(NAMED))])
        elif kind == "transpose":
            value = on.transpose(pick())
        elif kind == "dot":
            value = dot(random, on, pick(), pick(), pick())
        elif kind == "index":
            value = on.index(int(random.integers(2)))
        else:
            a, b = on.both(pick(), pick())
            if kind == "total":
                value = a + on.clamp(on.total(a, int(random.integers(2))))
            elif kind == "choose":
                value = on.choose(a, b, on.full(2.0))
            else:
                value = a + b if kind == "add" else a * b
        known.append(on.clamp(value))
    return known[-1]


def dot(random: Random, on: Any, a: Any, b: Any, c: Any) -> Any:
    """A product of tiles whose layouts nobody named, as most named ones are no fragments."""
    zero = on.full(0.0)
    return on.dot(on.free(a), on.free(b), zero if random.random() < 0.5 else on.free(c))


def run_program(seed: int, on: Any) -> Any:
    """Straight-line steps, a loop that carries two tiles, and a branch."""
    random = np.random.default_rng([11, seed])
    first = [on.load(0, None), on.load(1, NAMED[random.integers(len(NAMED))] if random.random() < 0.3 else None)]
    first.append(run_steps(random, on, first, int(random.integers(1, 4))))
    inner = random.integers(1 << 30)
    stages = int(random.choice([0, 2, 3]))

    def body(carried: list[Any]) -> list[Any]:
        steps = np.random.default_rng(inner)
        fresh = on.load(2, None)
        one = run_steps(steps, on, [*carried, fresh, first[-1]], int(steps.integers(1, 4)))
        other = run_steps(steps, on, [*carried, fresh, one], int(steps.integers(1, 3)))
        return [on.free(one), on.free(other)]

    one, other = on.loop(3, body, [on.free(first[-1]), on.full(1.0)], stages)
    choice = bool(random.integers(2))
    last = run_steps(random, on, [one, other], 2)
    merged = on.branch(choice, lambda: on.free(one), lambda: on.free(last))
    return run_steps(random, on, [merged, other], 2)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    def body(x: Any, y: Any) -> None:
        on = Tiles(x, y)
        result = run_program(seed, on)
        ll.store_global(ll.cast(result, "f16"), on.y_view, offsets=[0, 0])

    halves = ll.pointer("f16", align=16)
    kernel = ll.make_kernel(
        body, name="random", parameters={"x": halves, "y": halves}, grid=(1,), num_threads=32 * WARPS
    )
    x = np.random.default_rng([12, seed]).integers(-4, 5, (INPUTS, EXTENT, EXTENT)).astype(np.float16)
    wanted = run_program(seed, Arrays(x))
    for opt_level in (0, 3):
        y = np.full((EXTENT, EXTENT), np.nan, np.float16)
        compile_cpu(kernel, "sm_90a", opt_level=opt_level)(x, y, seed=seed)
        np.testing.assert_array_equal(y.astype(np.float64), wanted, err_msg=f"-O{opt_level}\n{kernel.mlir}")
