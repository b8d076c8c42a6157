"""What is wrong with a kernel before it is traced: its parameters, grid, threads and source."""

from __future__ import annotations

import pkgutil
import re
from typing import Any

import pytest

import lowlp
from lowlp import language as ll
from lowlp.errors import LowlpTypeError, LowlpValueError


def nothing(x: Any) -> None:
    """A kernel's body."""


@pytest.mark.parametrize(
    ("parameters", "grid", "num_threads", "text"),
    [
        ({"x": ll.i32}, (1,), 48, "num_threads: must be a multiple of 32 up to 1024, found 48"),
        ({"x": ll.i32}, (1, 1, 1, 1), 32, "grid: must have 1 to 3 extents, found 4"),
        ({"x": ll.i32}, (0,), 32, "grid: extents must be at least 1, found 0"),
        ({"x": ll.i32}, lambda y: y, 32, "grid: names 'y', but the integer parameters of the kernel are x"),
        ({"x": ll.f32}, lambda x: x, 32, "grid: names 'x', but the integer parameters of the kernel are none"),
        ({"x": ll.i32}, lambda x: x * x, 32, "grid: a product of two parameters is not affine"),
        ({"x": ll.i32}, lambda x: 7 // x, 32, "found an int // a parameter"),
        ({"x": ll.i32}, lambda x: x % x, 32, "grid: the divisor of % must be an int, found a parameter"),
        ({"x": ll.i32}, lambda x: x // -2, 32, "grid: the divisor of // must be positive, found -2"),
        ({"x": ll.i32}, lambda x: x / 2, 32, "grid: extents allow +, -, *, //, % and ll.ceildiv; found /"),
        ({"x": ll.i32}, lambda x: max(x, 1), 32, "found a comparison"),
        ({"x": ll.i32}, lambda x: 1.5, 32, "grid: extents are made of integer parameters and ints; found 1.5"),
        ({"x": "i32"}, (1,), 32, "parameter 'x': must be ll.pointer(...)"),
        ({"y": ll.i32}, (1,), 32, "parameters: 'y' is no parameter of the function, which has x"),
    ],
)
def test_kernel_is_declared_well(parameters: Any, grid: object, num_threads: int, text: str) -> None:
    with pytest.raises(lowlp.LowlpError) as caught:
        ll.make_kernel(nothing, name="kernel", parameters=parameters, grid=grid, num_threads=num_threads)
    assert text in str(caught.value)


def test_parameters_are_declared_well() -> None:
    with pytest.raises(ValueError, match="align: must be a power of two, found 12"):
        ll.pointer("f16", align=12)
    with pytest.raises(ValueError, match="bits: must be 32 or 64, found 16"):
        ll.integer(16)
    with pytest.raises(ValueError, match="divisible_by: must be at least 1, found 0"):
        ll.integer(32, divisible_by=0)
    with pytest.raises(TypeError, match="bipolar2 is no element type of MLIR"):
        ll.pointer("bipolar2")


def test_annotations_are_needed_and_evaluated() -> None:
    def missing(x) -> None:  # type: ignore[no-untyped-def]
        pass

    def unknown(x: ll.pionter("f16")) -> None:  # type: ignore[name-defined]
        pass

    decorate = lowlp.kernel(grid=(1,), num_threads=32)
    with pytest.raises(TypeError, match="parameter 'x': must be annotated"):
        decorate(missing)
    with pytest.raises(TypeError, match=r"parameter 'x': the annotation .* cannot be evaluated: .*pionter"):
        decorate(unknown)
    with pytest.raises(TypeError, match="function: must be a plain function, found int"):
        decorate(3)  # type: ignore[arg-type]


def test_defaults_and_stars_are_refused() -> None:
    def default(x: ll.i32 = 3) -> None:  # type: ignore[valid-type]
        pass

    def star(*x: ll.i32) -> None:  # type: ignore[valid-type]
        pass

    decorate = lowlp.kernel(grid=(1,), num_threads=32)
    with pytest.raises(TypeError, match="a kernel's parameters have no defaults"):
        decorate(default)
    with pytest.raises(TypeError, match=r"must be an ordinary one"):
        decorate(star)


def test_source_must_be_known() -> None:
    scope: dict[str, Any] = {"ll": ll}
    exec("def body():\n    pass", scope)
    with pytest.raises(ll.KernelValueError, match="the source of `body` cannot be read"):
        ll.make_kernel(scope["body"], name="kernel", parameters={}, grid=(1,), num_threads=32)


def test_kernel_returns_nothing() -> None:
    def body(x):
        return x

    kernel = ll.make_kernel(body, name="kernel", parameters={"x": ll.i32}, grid=(1,), num_threads=32)
    with pytest.raises(ll.KernelTypeError, match="kernel `kernel` must not return a value"):
        kernel.module()


def test_instructions_need_a_kernel() -> None:
    with pytest.raises(RuntimeError, match=r"ll\.block_indices: allowed in a kernel only, while it is traced"):
        ll.block_indices()


DECLARED: dict[str, Any] = {"name": "nothing", "parameters": {"x": ll.i32}, "grid": (1,), "num_threads": 96}


def test_blocks_for_which_an_sm_has_registers() -> None:
    scheduled = ll.make_kernel(nothing, **DECLARED, schedule=ll.KernelSchedule(blocks_per_sm=3))
    assert ".minnctapersm 3" in lowlp.compile(scheduled, "sm_90a").ptx
    assert ".minnctapersm" not in lowlp.compile(ll.make_kernel(nothing, **DECLARED), "sm_90a").ptx


def test_schedule_of_a_decorated_kernel() -> None:
    schedule = ll.KernelSchedule(table_form="pair", cluster=2, ping_pong=True, matrix_unit="warpgroup")

    @lowlp.kernel(grid=(2,), num_threads=32, schedule=schedule)
    def scheduled(x: ll.pointer("f32")) -> None:
        pass

    assert scheduled.schedule == schedule
    text = "schedule = #lowlp.schedule<matrix_unit = warpgroup, ping_pong = true, cluster = 2, table_form = pair>"
    assert text in scheduled.mlir
    assert "#lowlp.schedule" not in ll.make_kernel(nothing, **DECLARED, schedule=ll.KernelSchedule()).mlir


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"blocks_per_sm": 33}, "schedule: blocks_per_sm must be 0 to 32, but is 33"),
        ({"cluster": 9}, "schedule: cluster must be 1 to 8 blocks, but is 9"),
        ({"table_copies": 3}, "schedule: table_copies must be 0 or a power of two up to 32, but is 3"),
        ({"products_in_flight": 0}, "schedule: products_in_flight must be 1 to 8, but is 0"),
        ({"ping_pong": True}, "schedule: ping_pong must be false where matrix_unit is warp: it is what warpgroups do"),
        ({"matrix_unit": "block"}, "matrix_unit: must be one of warp, warpgroup, got 'block'"),
        ({"decode_offsets": "x"}, "decode_offsets: must be one of auto, weights, accumulators, got 'x'"),
        ({"table_form": 1}, "table_form: must be a str, got 1"),
        ({"cluster": True}, "cluster: must be an int, got True"),
        ({"ping_pong": "no"}, "ping_pong: must be a bool, got 'no'"),
    ],
)
def test_wrong_schedules(fields: dict[str, Any], message: str) -> None:
    with pytest.raises((LowlpValueError, LowlpTypeError), match=f"^{re.escape(message)}"):
        ll.KernelSchedule(**fields)


def test_schedules_that_do_not_fit_their_kernel() -> None:
    with pytest.raises(ll.VerificationError, match=r"exchange_registers .* of 128 threads, but num_threads is 96"):
        ll.make_kernel(nothing, **DECLARED, schedule=ll.KernelSchedule(exchange_registers=True)).module()
    with pytest.raises(LowlpTypeError, match=r"schedule: must be an ll\.KernelSchedule or None, found {}"):
        ll.make_kernel(nothing, **DECLARED, schedule={})  # type: ignore[arg-type]


def test_all_names_of_the_language_are_exported() -> None:
    """Whatever the package imports for its users, and only that, is in `__all__`."""
    submodules = {module.name for module in pkgutil.iter_modules(ll.__path__)}
    public = {name for name, value in vars(ll).items() if not name.startswith("_") and name not in submodules}
    assert set(ll.__all__) == public | (set(ll.__all__) & submodules)
    assert {"load_packed", "view_packed", "fma", "wait_for_dependencies", "launch_dependents"} <= set(ll.__all__)
