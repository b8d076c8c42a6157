"""Every example, for every architecture: it becomes machine code, or is refused for what the architecture lacks."""

from __future__ import annotations

import functools
import re

import pytest
from example_programs import EXAMPLES, output_of_example

from lowlp.compiler.compilation import open_program, read_ptx, run_pipeline
from lowlp.compiler.targets import target
from lowlp.errors import CompileError
from lowlp_runtime.assemble import assemble_ptx

# An example without kernels of its own prints no program.
FILES = sorted(
    path.name
    for path in EXAMPLES.iterdir()
    if path.suffix == ".mlir" or (path.suffix == ".py" and "--mlir" in path.read_text(encoding="utf-8"))
)
CHIPS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"]

LACKS_INSTRUCTION = re.compile(r"'lowlp\.\w+' op needs (.+), which (\w+) does not have; it is on sm_")
LACKS_MEMORY = re.compile(r"takes (\d+) bytes of shared memory, but a block of (\w+) may have at most (\d+)")


@functools.cache
def programs(file: str) -> list[str]:
    """The example's programs in the block dialect; those in Python print them."""
    path = EXAMPLES / file
    if path.suffix == ".mlir":
        return [path.read_text(encoding="utf-8")]
    return output_of_example(file, "--mlir").split("// -----\n")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("file", FILES)
def test_example_assembles_or_is_refused_for_a_reason(file: str, chip: str) -> None:
    for program in programs(file):
        module = open_program(program)
        try:
            run_pipeline(module, f"lowlp-to-ptx{{arch={chip}}}")
        except CompileError as error:
            check_reason(str(error), chip)
            continue
        ptx = read_ptx(module)
        assert f".target {chip}\n" in ptx
        assert assemble_ptx(ptx, chip).cubin


def check_reason(message: str, chip: str) -> None:
    """The message names this architecture and something that, by the table, it lacks."""
    instruction = LACKS_INSTRUCTION.search(message)
    if instruction:
        assert instruction[2] == chip
        assert target(chip).instructions[instruction[1]] == 0
        return
    memory = LACKS_MEMORY.search(message)
    assert memory, message
    assert memory[2] == chip
    assert int(memory[1]) > int(memory[3]) == target(chip).max_shared_bytes_per_block


@pytest.mark.parametrize(
    "file", ["fig2.mlir", "fig2.py", "fig14.py", "softmax.py", "rmsnorm.py", "transform_b.py", "matmul.py"]
)
def test_these_are_for_every_architecture(file: str) -> None:
    """They use nothing that came after sm_80, so that no architecture may refuse them."""
    assert file in FILES
    for chip in CHIPS:
        for program in programs(file):
            run_pipeline(open_program(program), f"lowlp-to-nvvm{{arch={chip}}}")


@pytest.mark.parametrize("chip", CHIPS)
def test_a_kernel_with_more_shared_memory_than_a_block_may_have_is_refused(chip: str) -> None:
    kilobytes = 160
    text = f"""
    lowlp.kernel @much(%p: !lowlp.ptr<f32>) attributes {{grid = affine_map<() -> (1)>, num_threads = 32 : i64}} {{
      %tile = lowlp.alloc_shared : !lowlp.shared<{kilobytes}x256xf32>
      lowlp.return
    }}"""
    limit = target(chip).max_shared_bytes_per_block
    module = open_program(text)
    if kilobytes * 1024 <= limit:
        run_pipeline(module, f"lowlp-to-nvvm{{arch={chip}}}")
    else:
        with pytest.raises(CompileError, match=rf"a block of {chip} may have at most {limit}"):
            run_pipeline(module, f"lowlp-to-nvvm{{arch={chip}}}")
