"""`lowlp.compile_times`, and that a kernel is compiled in one run through the passes."""

from __future__ import annotations

import os

import pytest

import lowlp
from lowlp.compiler import compilation
from lowlp.compiler.pipelines import passes_of, stages_of
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec

SPEC = LinearSpec(n=128, k=256, codec="int6 g128 f16", aligned=True)


def test_times_of_a_kernel() -> None:
    times = lowlp.compile_times(linear_kernel(SPEC, Schedule(32, 4)))
    names = [stage.name for stage in times.stages]
    assert names[0] == "trace or parse"
    assert names[-4:] == ["translation to LLVM IR", "LLVM's optimiser", "LLVM's PTX backend", "ptxas"]
    assert "lowlp-plan-decode" in names
    assert all(stage.seconds > 0 for stage in times.stages)
    assert times.total_seconds == sum(stage.seconds for stage in times.stages)
    # Far above what it takes; what is loaded once in a process is not part of it.
    assert times.total_seconds < 2.5
    assert len(str(times).splitlines()) == len(names) + 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("weight", "m"), [("int4", 1), ("int2", 64), ("int4", 256)])
def test_times_of_large_products(weight: str, m: int) -> None:
    """Of the kernels that `linear` chooses, with stages and by warpgroups."""
    spec = LinearSpec(n=57344, k=8192, codec=f"{weight} g128 f16", aligned=True)
    kernel = linear_kernel(spec, schedule_for(spec, m))

    def processor_seconds() -> float:
        # Others may use the processor: user and system time of this process and its children.
        begin = sum(os.times()[:4])
        lowlp.compile_times(kernel)
        return sum(os.times()[:4]) - begin

    assert any(processor_seconds() < 3.5 for _ in range(2))


@pytest.mark.parametrize(
    ("end", "last"),
    [("block", "trace or parse"), ("thread", "cse"), ("ptx", "LLVM's PTX backend")],
)
def test_it_ends_where_it_is_told_to(end: str, last: str) -> None:
    assert lowlp.compile_times(linear_kernel(SPEC, Schedule()), end=end).stages[-1].name == last


def test_wrong_arguments() -> None:
    kernel = linear_kernel(SPEC, Schedule())
    with pytest.raises(LowlpValueError, match="end: expected one of block, thread, nvvm, cpu, ptx, cubin, got 'sass'"):
        lowlp.compile_times(kernel, end="sass")
    with pytest.raises(LowlpValueError, match="opt_level: expected 0, 1, 2 or 3, got 4"):
        lowlp.compile_times(kernel, opt_level=4)


@pytest.mark.parametrize("opt_level", [0, 3])
def test_stages_make_what_whole_pipelines_make(opt_level: int) -> None:
    kernel = linear_kernel(SPEC, Schedule())
    compiled = lowlp.compile(kernel, opt_level=opt_level, assemble=False, cache=False)
    for level in ("thread", "nvvm", "ptx"):
        module = kernel.module()
        compilation.run_pipeline(module, f"lowlp-to-{level}{{arch=sm_90a opt-level={opt_level}}}")
        made = compiled.ptx if level == "ptx" else compiled.ir(level)
        assert made == (compilation.read_ptx(module) if level == "ptx" else str(module))


def test_a_pipeline_that_does_not_continue_another() -> None:
    context = linear_kernel(SPEC, Schedule()).module().context
    first, second = stages_of(["cse", "cse,canonicalize"], context)
    assert (first, second.partition("{")[0]) == ("cse", "canonicalize")
    assert passes_of("cse,canonicalize", context) == [first, second]
    with pytest.raises(AssertionError, match="canonicalize does not continue the pipeline before it"):
        stages_of(["cse", "canonicalize"], context)
