"""The mistakes that docs/errors.md lists: for each a function that makes it. Those with weights, kernels and compiling;
`memory_mistakes` and `running_mistakes` have the others.

`MISTAKES` has them by the first column of the page's tables. A function gets an empty folder for its files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lowlp
from lowlp import language as ll
from lowlp.packing import pack
from lowlp_runtime import assemble_ptx

Mistake = Callable[[Path], object]

MISTAKES: dict[str, Mistake] = {}
ROWS = lowlp.local(2, 1).spatial(8, 4).local(1, 2)
FLAT = lowlp.local(3).spatial(32)
UNIT = lowlp.local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)
FIG2 = (Path(__file__).resolve().parents[2] / "examples" / "fig2.mlir").read_text(encoding="utf-8")
WEIGHT = np.linspace(-1, 1, 16 * 128, dtype=np.float32).reshape(16, 128)
X = np.ones((2, 128), np.float16)


def mistake(what: str) -> Callable[[Mistake], Mistake]:
    def add(function: Mistake) -> Mistake:
        assert what not in MISTAKES, what
        MISTAKES[what] = function
        return function

    return add


def kernel(body: Callable[..., Any], grid: object = (1,), num_threads: int = 32) -> ll.Kernel:
    parameters = {"x": ll.pointer("f16"), "b": ll.pointer("uint8"), "m": ll.i32}
    return ll.make_kernel(body, name="kernel", parameters=parameters, grid=grid, num_threads=num_threads)


def ran(body: Callable[..., Any], grid: object = (1,), num_threads: int = 32) -> object:
    """Runs the kernel on the CPU target."""
    return kernel(body, grid, num_threads)(np.zeros(128, np.float16), np.zeros(96, np.uint8), 16)


def traced(body: Callable[..., Any]) -> object:
    return kernel(body).module()


def copy(x: Any, b: Any, m: Any) -> None:
    view = ll.view_global(x, shape=[16, 8])
    ll.store_global(ll.load_global(view, offsets=[0, 0], layout=ROWS) * 2.0, view, offsets=[0, 0])


def packed(dtype: str = "int6") -> lowlp.QuantizedTensor:
    return lowlp.quantize(WEIGHT, dtype, group_size=128)


# --- types and weights ------------------------------------------------------------------------------------------------


@mistake("a type that does not exist: `int9`, or a float whose bits do not add up")
def _(folder: Path) -> object:
    return lowlp.dtype("f4e2m3")


@mistake("weights that are no array")
def _(folder: Path) -> object:
    return lowlp.quantize([[1.0, 2.0]], "int6")  # type: ignore[arg-type]


@mistake("weights with a NaN")
def _(folder: Path) -> object:
    return lowlp.quantize(np.full((4, 128), np.nan, np.float32), "int6")


@mistake("a group that does not divide K")
def _(folder: Path) -> object:
    return lowlp.quantize(WEIGHT, "int6", group_size=100)


@mistake("codes with more bits than their type")
def _(folder: Path) -> object:
    codes, scales = np.full((4, 128), 77, np.uint8), np.ones((4, 1), np.float16)
    return lowlp.QuantizedTensor(codes, dtype="int6", scales=scales, group_size=128)


@mistake("scales of another shape")
def _(folder: Path) -> object:
    codes, scales = np.full((4, 128), 7, np.uint8), np.ones((4, 2), np.float16)
    return lowlp.QuantizedTensor(codes, dtype="int6", scales=scales, group_size=128)


@mistake("packing codes of a type that is not there")
def _(folder: Path) -> object:
    return pack(packed().codes, 128, "lut17", "f16")


@mistake("packing for activations that no placement is for")
def _(folder: Path) -> object:
    return pack(packed().codes, 128, "int6", "f32")


# --- lowlp.linear -----------------------------------------------------------------------------------------------------


@mistake("activations of the wrong type")
def _(folder: Path) -> object:
    return lowlp.linear(X.astype(np.float32), packed())


@mistake("activations whose K is not that of the weights")
def _(folder: Path) -> object:
    return lowlp.linear(X[:, :64], packed())


@mistake("f16 activations with weights whose exponent is wider")
def _(folder: Path) -> object:
    return lowlp.linear(X, packed("f8e6m1"))


@mistake("plain weights, not quantised")
def _(folder: Path) -> object:
    return lowlp.linear(X, WEIGHT)  # type: ignore[arg-type]


@mistake("a bias of another length")
def _(folder: Path) -> object:
    return lowlp.linear(X, packed(), bias=np.ones(3, np.float16))


@mistake("an epilogue that is not offered")
def _(folder: Path) -> object:
    return lowlp.linear(X, packed(), epilogue="swiglu")


@mistake("gate and up in an odd number of rows")
def _(folder: Path) -> object:
    odd = lowlp.quantize(WEIGHT[:15], "int6", group_size=128)
    return lowlp.linear(X, odd, epilogue="silu_mul")


@mistake("a residual of another shape than the result")
def _(folder: Path) -> object:
    return lowlp.linear(X, packed(), residual=np.ones((2, 8), np.float16))


@mistake("an output type that is not offered")
def _(folder: Path) -> object:
    return lowlp.linear(X, packed(), out_dtype="f64")


@mistake("measured schedules with a value that is not offered")
def _(folder: Path) -> object:
    entry = {"kind": "int4 g128 f16", "n": 16, "k": 128, "m": 16, "arch": "sm_90a", "schedule": {"steps": 10}}
    path = folder / "mine.json"
    path.write_text(json.dumps({"format": 1, "gpu": "NVIDIA H200", "entries": [entry]}))
    return lowlp.use_tuned(path)  # type: ignore[func-returns-value]


# --- layouts ----------------------------------------------------------------------------------------------------------


@mistake("a factor that does not exist")
def _(folder: Path) -> object:
    return lowlp.layout("lokal(2).spatial(32)")


@mistake("a division that has no result")
def _(folder: Path) -> object:
    return lowlp.local(3) / lowlp.local(2)


@mistake("a thread's bits are no whole bytes")
def _(folder: Path) -> object:
    return lowlp.spatial(8, 4).reinterpret(from_bits=3, to_bits=8)


@mistake("modes that do not cover the tile")
def _(folder: Path) -> object:
    from lowlp.layouts.register_layout import from_modes

    return from_modes([[8], [4]], thread_digits=[(0, 8)], local_digits=[])


# --- kernels in the DSL -----------------------------------------------------------------------------------------------


@mistake("a parameter without its type")
def _(folder: Path) -> object:
    def body(x):  # type: ignore[no-untyped-def]
        pass

    return lowlp.kernel(grid=(1,), num_threads=32)(body)


@mistake("threads that are no whole warps")
def _(folder: Path) -> object:
    return kernel(copy, num_threads=50)


@mistake("a grid of a parameter that is not there")
def _(folder: Path) -> object:
    return kernel(copy, grid=lambda rows: (rows,))


@mistake("a layout for another number of threads")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.load_global(ll.view_global(x, shape=[m, 8]), offsets=[0, 0], layout=lowlp.spatial(4, 4))

    return traced(body)


@mistake("a view with other bits per thread")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        data = ll.load_global(ll.view_global(b, shape=[96]), offsets=[0], layout=FLAT)
        ll.view(data, dtype="int5", layout=ROWS)

    return traced(body)


@mistake("a tile with more dimensions than its view")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.load_global(ll.view_global(x, shape=[128]), offsets=[0], layout=ROWS)

    return traced(body)


@mistake("a product too small for the warps that share it, with no layouts named")
def _(_: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        a, w = ll.full(0.0, "f16", shape=[16, 16]), ll.full(0.0, "f16", shape=[16, 8])
        ll.dot(a, w, ll.full(0.0, "f32", shape=[16, 8]))

    return kernel(body, num_threads=64).module()


@mistake("registers seen as another type, with no layout named")
def _(_: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.view(ll.full(0.0, "f32", shape=[16, 8]), dtype="int32", layout=ROWS)

    return traced(body)


@mistake("tiles of two layouts in a sum")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.full(0.0, "f16", layout=ROWS) + ll.full(0.0, "f16", layout=lowlp.spatial(8, 4).local(2, 2))

    return traced(body)


@mistake("a tile less its maxima, which have lost a dimension")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        tile = ll.load_global(ll.view_global(x, shape=[16, 8]), offsets=[0, 0], shape=[16, 8])
        tile - ll.max(tile, 1)

    return traced(body)


@mistake("the same of a square tile")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        tile = ll.load_global(ll.view_global(x, shape=[16, 16]), offsets=[0, 0], layout=ROWS.local(1, 2))
        tile - ll.max(tile, 1)

    return traced(body)


@mistake("tiles of two shapes in a sum")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.full(0.0, "f16", shape=[16, 8]) + ll.full(0.0, "f16", shape=[8, 16])

    return traced(body)


@mistake("storing f32 where the memory holds f16")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.store_global(ll.full(0.0, "f32", layout=ROWS), ll.view_global(x, shape=[m, 8]), offsets=[0, 0])

    return traced(body)


def load_packed(dtype: str = "int6", layout: object = UNIT, k: int = 0) -> object:
    def body(weights: Any) -> None:
        view = ll.view_packed(weights, shape=[16, 128], dtype=dtype, placement="int6.f16")
        ll.load_packed(view, offsets=[0, k], layout=layout)  # type: ignore[arg-type]

    parameters = {"weights": ll.pointer("uint32")}
    return ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=32).module()


@mistake("packed weights of a type that the placement does not hold")
def _(folder: Path) -> object:
    return load_packed(dtype="int4")


@mistake("a tile of packed weights whose layout takes no units")
def _(folder: Path) -> object:
    return load_packed(layout="spatial(8, 4).local(2, 16)")


@mistake("a tile of packed weights between two units")
def _(folder: Path) -> object:
    return load_packed(k=10)


@mistake("arithmetic on packed codes")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.full(0.0, "int4", layout=ROWS) * 2.0

    return traced(body)


@mistake("a product whose K differs")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        a = ll.full(0.0, "f16", layout=ROWS)
        ll.dot(a, a, ll.full(0.0, "f32", layout=ROWS))

    return traced(body)


@mistake("indexing a pointer as in C")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        x[0] = 1.0

    return traced(body)


@mistake("indexing a tile")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.full(0.0, "f16", layout=ROWS)[0]

    return traced(body)


@mistake("`range` with a number that only the launch knows")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        for _ in range(m):
            pass

    return traced(body)


@mistake("a tile that changes its type in a loop")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        a = ll.full(0.0, "f32", layout=ROWS)
        for _ in ll.range(m):
            a = ll.cast(a, "f16")

    return traced(body)


@mistake("a tile that is assigned in one branch and used after")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        if m > 3:
            tile = ll.full(0.0, "f16", layout=ROWS)
        ll.store_global(tile, ll.view_global(x, shape=[m, 8]), offsets=[0, 0])

    return traced(body)


@mistake("`return` under a condition of the launch")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> Any:
        if m > 3:
            return
        ll.full(0.0, "f16", layout=ROWS)

    return traced(body)


@mistake("an instruction outside of a kernel")
def _(folder: Path) -> object:
    return ll.block_indices()


@mistake("a tile outside of a kernel")
def _(folder: Path) -> object:
    return ll.full(0.0, "f32", layout=ROWS)


# --- compiling --------------------------------------------------------------------------------------------------------


@mistake("text that is no program")
def _(folder: Path) -> object:
    return lowlp.compile("garbage")


@mistake("the name of a file instead of its text")
def _(folder: Path) -> object:
    return lowlp.compile("examples/fig2.mlir")


@mistake("a program without a kernel")
def _(folder: Path) -> object:
    return lowlp.compile("module {}")


@mistake("an op of the text dialect that the verifier refuses")
def _(folder: Path) -> object:
    return lowlp.compile(FIG2.replace("!lowlp.tile<96xui8, local(3)", "!lowlp.tile<64xui8, local(2)"))


@mistake("an attribute that is misspelt")
def _(folder: Path) -> object:
    return lowlp.compile(FIG2.replace("lowlp.align", "lowlp.algn"))


@mistake("a field of a schedule that is out of range")
def _(folder: Path) -> object:
    return ll.KernelSchedule(cluster=16)


@mistake("a GPU that lowlp does not know")
def _(folder: Path) -> object:
    return lowlp.compile(FIG2, "sm_12")


@mistake("an architecture by its marketing name")
def _(folder: Path) -> object:
    return lowlp.compile(FIG2, "hopper")


@mistake("more shared memory than a block may have")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.alloc_shared("f32", shape=[300, 300])

    return lowlp.compile(kernel(body))


@mistake("a product whose layouts no matrix instruction has")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        a = ll.full(0.0, "f16", layout=lowlp.spatial(8, 4).local(2, 4))
        ll.dot(a, ll.full(0.0, "f16", layout=lowlp.spatial(8, 4).local(2, 2)), ll.full(0.0, "f32", layout=ROWS))

    return lowlp.compile(kernel(body))


@mistake("PTX that the assembler refuses")
def _(folder: Path) -> object:
    return assemble_ptx(".version 8.0\n.target sm_80\n.address_size 64\nbogus;\n", "sm_80")
