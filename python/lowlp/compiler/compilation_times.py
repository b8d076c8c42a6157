"""Where the time of a compilation goes: `lowlp.compile_times`, and `lowlp compile --time`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lowlp.errors import LowlpValueError
from lowlp_runtime.assemble import assemble_ptx, choose_assembler

from .architectures import DEFAULT_ARCH, check_arch
from .compilation import check_opt_level, open_program, read_ptx, run_pipeline
from .forks import compiles
from .pipelines import seconds_of_passes

if TYPE_CHECKING:
    from .compilation import BlockProgram

ENDS = ("block", "thread", "nvvm", "cpu", "ptx", "cubin")


class StageTime(NamedTuple):
    """A stage of a compilation, and the seconds it took."""

    name: str
    seconds: float


@dataclass(frozen=True)
class CompileTimes:
    """The stages of one compilation, in order: what reads the program, each pass of the pipeline, the assembler.

    As text it is a table.
    """

    stages: tuple[StageTime, ...]

    @property
    def total_seconds(self) -> float:
        """The sum of all stages."""
        return sum(stage.seconds for stage in self.stages)

    def __str__(self) -> str:
        total = self.total_seconds
        rows = [*self.stages, StageTime("total", total)]
        width = max(len(row.name) for row in rows)
        return "\n".join(
            f"{row.name:<{width}}  {1e3 * row.seconds:9.2f} ms {100 * row.seconds / total:5.1f} %" for row in rows
        )


@compiles
def compile_times(
    program: BlockProgram | str,
    target: str = DEFAULT_ARCH,
    *,
    opt_level: int = 3,
    end: str = "cubin",
    assembler: str | None = None,
) -> CompileTimes:
    """Compiles a program pass by pass, and tells what each takes.

    program, target, opt_level, assembler  as for `lowlp.compile`
    end                                    the last level to compile to: 'block', 'thread', 'nvvm', 'cpu', 'ptx' or
                                           'cubin'

    The program is compiled twice, anew: first to load what is loaded once in a process, then to be timed.
    Raises what `lowlp.compile` raises, and `LowlpValueError` for `end`.
    """
    arch = check_arch(target)
    check_opt_level(opt_level)
    if end not in ENDS:
        raise LowlpValueError(f"end: expected one of {', '.join(ENDS)}, got {end!r:.40}")
    name = "ptx" if end == "cubin" else end
    pipeline = "" if end == "block" else f"lowlp-to-{name}{{arch={arch} opt-level={opt_level}}}"
    chosen = choose_assembler(assembler) if end == "cubin" else ""
    warm_up = open_program(program)
    if pipeline:
        run_pipeline(warm_up, pipeline)
    start = time.perf_counter()
    module = open_program(program)
    stages = [StageTime("trace or parse", time.perf_counter() - start)]
    if pipeline:
        stages += [StageTime(*taken) for taken in seconds_of_passes(module, pipeline)]
    if chosen:
        ptx, start = read_ptx(module), time.perf_counter()
        assemble_ptx(ptx, arch, assembler=chosen)
        stages.append(StageTime(chosen, time.perf_counter() - start))
    return CompileTimes(tuple(stages))
