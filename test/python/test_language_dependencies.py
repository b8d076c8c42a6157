"""`ll.wait_for_dependencies`, `ll.launch_dependents` and constant pointers: what they become, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.errors import CompileError, LowlpTypeError
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec

ROW = lowlp.spatial(32).local(2)


def scaled(w: ll.Pointer, x: ll.Pointer, y: ll.Pointer) -> None:
    """y = w * x, with w fetched before the wait."""
    ll.launch_dependents()
    weights = ll.load_global(ll.view_global(w, shape=[64]), offsets=[0], layout=ROW)
    ll.wait_for_dependencies()
    values = ll.load_global(ll.view_global(x, shape=[64]), offsets=[0], layout=ROW)
    ll.store_global(weights * values, ll.view_global(y, shape=[64]), offsets=[0])


def kernel(body: Any = scaled, constant: bool = True) -> ll.Kernel:
    parameters = {"w": ll.pointer("f16", constant=constant), "x": ll.pointer("f16"), "y": ll.pointer("f16")}
    return ll.make_kernel(body, name="scaled", parameters=parameters, grid=(1,), num_threads=32)


def test_the_kernel_waits_between_constants_and_the_rest() -> None:
    compiled = lowlp.compile(kernel(), "sm_90a", assemble=False)
    ptx = compiled.ptx
    order = [ptx.index(text) for text in ("griddepcontrol.launch_dependents", "ld.global", "griddepcontrol.wait")]
    assert order == sorted(order)
    assert ptx.index("ld.global", order[-1]) < ptx.index("st.global")
    assert compiled.description.dependent_launch
    assert "lowlp.constant" in compiled.ir("block")


def test_the_cpu_target_has_nothing_to_wait_for() -> None:
    w, x = np.arange(64, dtype=np.float16), np.full(64, 2, np.float16)
    y = np.empty(64, np.float16)
    kernel()(w, x, y)
    np.testing.assert_array_equal(y, 2 * w)


def test_older_architectures_do_not_wait() -> None:
    ptx = lowlp.compile(kernel(), "sm_80", assemble=False).ptx
    assert "griddepcontrol" not in ptx
    assert ptx.count("ld.global") == lowlp.compile(kernel(), "sm_90a", assemble=False).ptx.count("ld.global")


def test_what_is_refused() -> None:
    with pytest.raises(
        CompileError, match=r"stands before lowlp.wait_for_dependencies, and touches memory that carries"
    ):
        lowlp.compile(kernel(constant=False))

    def writes(w: ll.Pointer, x: ll.Pointer, y: ll.Pointer) -> None:
        tile = ll.load_global(ll.view_global(x, shape=[64]), offsets=[0], layout=ROW)
        ll.store_global(tile, ll.view_global(w, shape=[64]), offsets=[0])

    with pytest.raises(CompileError, match=r"may write to parameter 0, which carries lowlp.constant"):
        lowlp.compile(kernel(writes))

    def in_a_loop(w: ll.Pointer, x: ll.Pointer, y: ll.Pointer) -> None:
        for _ in ll.range(3):
            ll.wait_for_dependencies()

    with pytest.raises(CompileError, match=r"must not hold lowlp.wait_for_dependencies"):
        lowlp.compile(kernel(in_a_loop))
    with pytest.raises(LowlpTypeError, match="constant: must be a bool, found 1"):
        ll.pointer("f16", constant=1)  # type: ignore[arg-type]
    for outside in (ll.wait_for_dependencies, ll.launch_dependents):
        with pytest.raises(lowlp.LowlpError, match="allowed in a kernel only"):
            outside()


SCHEDULES = {
    "streamed": Schedule(8, 2, stages=3, row_tiles=2, producer=False),
    "producer": Schedule(8, 2, stages=3, row_tiles=2),
    "whole tiles": Schedule(8, 2, stages=3, row_tiles=2, share_tiles=False),
    "wide": Schedule(32, stages=3, warpgroups=1, row_tiles=2, steps=2),
    "cluster": Schedule(32, stages=3, warpgroups=1, row_tiles=2, steps=2, cluster=2),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("weight", ["int4", "lut4"])
def test_linear_fetches_weights_before_it_waits(weight: str, name: str) -> None:
    """Of the weights and scales of the first stages; x, y and what blocks share come after, in all warps."""
    codec = "lut4:f32:tensor g128 f16" if weight == "lut4" else f"{weight} g128 f16"
    spec = LinearSpec(1024, 1024, codec, aligned=True, dependent_launch=True)
    compiled = lowlp.compile(linear_kernel(spec, SCHEDULES[name]), "sm_90a", assemble=False)
    assert compiled.description.dependent_launch
    thread = compiled.ir("thread")
    first, *_, last = thread.split("simt.wait_for_dependencies")
    # The producer, if there is one, stands in front of the others, and has a wait of its own.
    assert thread.count("simt.wait_for_dependencies") == 1 + SCHEDULES[name].producer
    assert first.count("simt.copy_tensor") >= 2
    assert thread.index("simt.launch_dependents") < thread.rindex("simt.wait_for_dependencies")
    assert "simt.release" not in thread[: -len(last)]
    assert thread[: -len(last)].count("simt.store") == (weight == "lut4")
    plain = lowlp.compile(
        linear_kernel(LinearSpec(1024, 1024, codec, aligned=True), SCHEDULES[name]),
        "sm_90a",
        assemble=False,
    )
    assert "griddepcontrol" not in plain.ptx
    assert not plain.description.dependent_launch


@pytest.mark.parametrize(
    ("codec", "activation", "more", "division"),
    [
        ("int4 channel f16", "f16", {}, {"share_tiles": False, "scales_on": "rows"}),
        ("int4 g128 f16", "f16", {"bias": "f16"}, {"cluster": 2}),
        ("int8 channel f16", "int8", {"x_scale": "token"}, {"share_tiles": False}),
        ("f8e4m3 channel f16", "f8e4m3", {"x_scale": "token"}, {"cluster": 2}),
        ("int2 g128 f16", "int8", {"x_scale": "token", "epilogue": "gelu"}, {}),
    ],
)
def test_a_producer_copies_though_the_others_read_before_the_loop(
    codec: str, activation: str, more: dict[str, Any], division: dict[str, Any]
) -> None:
    """They ask for what the end of a tile takes, after their own wait."""
    spec = LinearSpec(1024, 1024, codec, activation=activation, aligned=True, dependent_launch=True, **more)
    schedule = Schedule(**{"columns": 32, "stages": 3, "warpgroups": 2, "row_tiles": 1, "steps": 2, **division})
    compiled = lowlp.compile(linear_kernel(spec, schedule), "sm_90a", assemble=False)
    assert compiled.ir("thread").count("simt.wait_for_dependencies") == 2
    assert compiled.description.block[0] > schedule.threads


@pytest.mark.sampled(5)
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_linear_gives_the_same(name: str, target: str) -> None:
    """On the CPU target with its checks on."""
    if target == "sm_80" and SCHEDULES[name].warpgroups:
        pytest.skip("has no wgmma")
    rng = np.random.default_rng(2)
    qw = lowlp.quantize(rng.normal(size=(200, 512)).astype(np.float32), "int4", group_size=128)
    x = rng.normal(size=(7, 512)).astype(np.float16)
    results = []
    for dependent in (False, True):
        spec = replace(spec_for(qw, "f16", "f32", aligned=True), dependent_launch=dependent)
        y = np.full((7, 200), np.nan, np.float32)
        blocks = -(-200 // SCHEDULES[name].rows) if SCHEDULES[name].has_tile_each else 3
        compilation.compile_cpu(linear_kernel(spec, SCHEDULES[name]), target)(
            x=x, **host_operands(qw, "f16", schedule=SCHEDULES[name]), y=y, m=7, x_stride=512, blocks=blocks
        )
        results.append(y)
    np.testing.assert_array_equal(*results)
    assert not np.isnan(results[0]).any()
