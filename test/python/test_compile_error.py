"""`CompileError`: what it says, and that the program behind it can be run again."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.compiler.pipelines import name_of, passes_of, split_passes
from lowlp.errors import CompileError, LowlpValueError

ROOT = Path(__file__).resolve().parents[2]
FIG2 = (ROOT / "examples" / "fig2.mlir").read_text(encoding="utf-8")


@pytest.fixture
def lowlp_opt() -> str:
    found = shutil.which("lowlp-opt", path=f"{ROOT / 'build' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return found or pytest.skip("lowlp-opt is not built")


def refused(monkeypatch: pytest.MonkeyPatch, folder: Path) -> CompileError:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(CompileError) as caught:
        compilation.run_pipeline(compilation.open_program(FIG2), "lowlp-to-nvvm{arch=sm_12}")
    return caught.value


def test_nothing_is_written_unasked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error = refused(monkeypatch, tmp_path)
    assert not list(tmp_path.iterdir())
    assert "save_reproducer" in str(error)


def test_the_command_shows_the_same_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lowlp_opt: str) -> None:
    error = refused(monkeypatch, tmp_path)
    command = error.save_reproducer(tmp_path / "with space.mlir")
    program, *arguments = shlex.split(command)
    assert program == "lowlp-opt"
    done = subprocess.run([lowlp_opt, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "unknown architecture 'sm_12'" in done.stderr


def test_a_program_that_does_not_parse_is_kept_too(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        lowlp.compile("garbage")
    command = caught.value.save_reproducer(tmp_path / "k.mlir")
    assert (tmp_path / "k.mlir").read_text() == "garbage"
    assert shlex.split(command) == ["lowlp-opt", str(tmp_path / "k.mlir")]


def test_without_a_program_nothing_can_be_saved(tmp_path: Path) -> None:
    with pytest.raises(LowlpValueError, match="this error carries no program"):
        CompileError("text").save_reproducer(tmp_path / "k.mlir")


def broadcast(x: ll.Pointer) -> None:
    tile = ll.full(0.0, "f32", layout=lowlp.local(2, 1).spatial(8, 4).local(1, 2))
    ll.broadcast_to(tile, layout=lowlp.spatial(32, 1))


def test_what_the_verifier_refuses_is_shown_again(tmp_path: Path, lowlp_opt: str) -> None:
    kernel = ll.make_kernel(broadcast, name="kernel", parameters={"x": ll.pointer("f16")}, grid=(1,), num_threads=32)
    with pytest.raises(ll.VerificationError) as caught:
        lowlp.compile(kernel)
    error = caught.value
    assert (error.filename, error.line) == (__file__, broadcast.__code__.co_firstlineno + 2)
    assert error.failing_pass == "verifier"
    assert "refused by: verifier\nreproduce: lowlp-opt PROGRAM.mlir" in str(error)
    _, *arguments = shlex.split(error.save_reproducer(tmp_path / "k.mlir"))
    done = subprocess.run([lowlp_opt, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert error.message in done.stderr


@pytest.mark.parametrize("pipeline", ["lowlp-to-nvvm{arch=sm_12}", "lowlp-to-ptx{arch=sm_12 opt-level=3}"])
def test_the_failing_pass_is_named(pipeline: str) -> None:
    module = compilation.open_program(FIG2)
    refused_by = next(name_of(entry) for entry in passes_of(pipeline, module.context) if "arch=sm_12" in entry)
    with pytest.raises(CompileError) as caught:
        compilation.run_pipeline(module, pipeline)
    assert caught.value.failing_pass == refused_by
    assert f"refused by: {refused_by}\n" in str(caught.value)


def test_a_pipeline_is_split_at_its_own_commas() -> None:
    text = "lowlp-a,canonicalize{x=1,y=2 z={a,b}},gpu.module(lowlp-b{n=(1)},any(cse,lowlp-c)),cse"
    passes = split_passes(text)
    assert passes == [
        "lowlp-a",
        "canonicalize{x=1,y=2 z={a,b}}",
        "gpu.module(lowlp-b{n=(1)})",
        "gpu.module(any(cse))",
        "gpu.module(any(lowlp-c))",
        "cse",
    ]
    assert [name_of(entry) for entry in passes] == ["lowlp-a", "canonicalize", "lowlp-b", "cse", "lowlp-c", "cse"]


KERNEL = """
lowlp.kernel @k() attributes {grid = affine_map<() -> (1)>, num_threads = 32} {
  lowlp.return
}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!t = !lowlp.tile<4xf16, local(4)\u00e9>\nfunc.func private @f(!t)", "found '\u00e9'"),
        ('func.func private @"f\\C3"()\n' * 2, "redefinition of symbol named 'f\ufffd'"),
    ],
)
def test_text_that_is_not_ascii_ends_in_an_error(text: str, message: str) -> None:
    """A byte that is not UTF-8, which an escape can make, is U+FFFD in the message."""
    with pytest.raises(CompileError) as caught:
        lowlp.compile(text)
    assert message in str(caught.value)


def test_a_function_beside_a_kernel_is_refused_by_both_targets() -> None:
    program = KERNEL + "func.func @f() {\n  return\n}\n"
    for compile_for in (lowlp.compile, compilation.compile_cpu):
        with pytest.raises(CompileError, match=r"'func\.func' op stands beside kernels; a program"):
            compile_for(program)


def test_help_begins_with_what_lowlp_has(lowlp_opt: str) -> None:
    text = subprocess.run([lowlp_opt, "--help"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in text.splitlines() if line.startswith("  --")][:19]
    assert names[:5] == [
        "--lowlp-to-thread",
        "--lowlp-to-nvvm",
        "--lowlp-to-ptx",
        "--lowlp-to-cpu",
        "--lowlp-expand-clusters",
    ]
    assert all(name.startswith("--lowlp-") for name in names)


def test_long_types_are_printed_once() -> None:
    text = str(compilation.open_program(FIG2))
    assert "!tile_16x8xf32 = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>" in text
    assert text.count("!lowlp.tile<16x8xf32") == 1
    assert str(compilation.open_program(text)) == text
