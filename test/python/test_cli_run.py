"""`lowlp run`, and what `lowlp compile` does with Python files and `--time`."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.cli import main
from lowlp.cli import run_kernel as run_module
from lowlp.cli.device import Device
from lowlp.cli.run_arguments import read_arguments
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime import KernelDescription, Parameter
from lowlp_runtime.linkers import NvJitLink

SOURCE = """
import lowlp
from lowlp import language as ll


def make(scale):
    @lowlp.kernel(grid=lambda m: (ll.ceildiv(m, 16),), num_threads=32)
    def scaled(x: ll.pointer("f16", align=16), y: ll.pointer("f16", align=16), m: ll.i32):
        (bi,) = ll.block_indices()
        layout = lowlp.local(2, 1).spatial(8, 4).local(1, 2)
        tile = ll.load_global(ll.view_global(x, shape=[m, 8]), offsets=[bi * 16, 0], layout=layout)
        ll.store_global(tile * scale, ll.view_global(y, shape=[m, 8]), offsets=[bi * 16, 0])

    return scaled


twice = make(2.0)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    return path


def run(*arguments: object) -> int:
    return main(["run", *map(str, arguments), "--device", "cpu"])


ARGUMENTS = ("-a", "x=arange:40x8", "y=undefined:40x8", "m=40")


def test_a_kernel_of_a_python_file(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, *ARGUMENTS, "-o", tmp_path / "out.npz") == 0
    out = re.sub(r" {2,}", "  ", capsys.readouterr().out)
    assert "device  the CPU target\nkernel  scaled\ngrid  3 blocks of 32 threads\nchecks  all: passed\n" in out
    assert "\narguments\n  x  float16 40 x 8, arange\n  y  float16 40 x 8, undefined\n  m  40\n" in out
    assert "y  float16 40 x 8; min 0, max 638, mean 319; sha256 " in out
    assert re.search(r"^  160  640  5  20  0  lowlp.load_global at .*kernels.py:11:", out, re.MULTILINE), out
    with np.load(tmp_path / "out.npz") as saved:
        assert saved.files == ["y"]
        assert (saved["y"] == 2 * np.arange(320).reshape(40, 8)).all()


def test_an_expression_chooses_the_kernel(file: Path, tmp_path: Path) -> None:
    assert run(file, "--kernel", "make(scale=3)", *ARGUMENTS, "-o", tmp_path / "out.npz") == 0
    with np.load(tmp_path / "out.npz") as saved:
        assert saved["y"][0, 1] == 3


def test_text_and_saved_kernels_give_the_same(file: Path, tmp_path: Path) -> None:
    assert main(["compile", str(file), "--emit", "block", "-o", str(tmp_path / "k.mlir")]) == 0
    assert main(["compile", str(file), "--emit", "lowlp", "-o", str(tmp_path / "k.lowlp")]) == 0
    results = []
    for name in ("kernels.py", "k.mlir", "k.lowlp"):
        arguments = ("-a", "x=40x8", "y=40x8", "m=40", "--seed", 5)
        assert run(tmp_path / name, *arguments, "-o", tmp_path / "out.npz") == 0
        with np.load(tmp_path / "out.npz") as saved:
            results.append(saved["y"])
    assert results[0].any()
    assert all((result == results[0]).all() for result in results)


def test_arrays_from_files(file: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float16)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "both.npz", x=x, other=2 * x)
    for source, scale in (("x.npy", 2), ("both.npz", 2), ("both.npz:other", 4)):
        arguments = ("-a", f"x={tmp_path / source}", "y=3x8", "m=3", "-o", tmp_path / "out.npz")
        assert run(file, *arguments) == 0
        with np.load(tmp_path / "out.npz") as saved:
            assert (saved["y"] == scale * x).all()


def test_a_failed_check_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "-a", "x=20x8", "y=40x8", "m=40") == 1
    err = capsys.readouterr().err
    assert "kernels.py:11" in err
    assert "is outside the allocation" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "arguments of scaled are missing: x (an array of f16, as x=16x64); y (an array of f16, as y=16x64); m (a"),
        (("x=1",), "missing: y"),
        (("z=1",), "z=1: expected NAME=VALUE with a NAME among x, y, m"),
        (("m=1", "m=2"), "m: given twice"),
        (("x=axb", "y=8", "m=1"), "x: expected a shape as 16x64, after one of random, zeros, ones, arange, undefined"),
        (("x=0", "y=8", "m=1"), "x: expected a shape"),
        (("x=int4:8", "y=8", "m=1"), "x: expected elements of type f16, got int4"),
        (("x=8", "y=8", "m=many"), "m: expected a number (i32), got 'many'"),
        (("x=missing.npy", "y=8", "m=1"), "missing.npy: No such file"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], said: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, *(("-a", *arguments) if arguments else ())) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("x = 1\ny = nothing\n", (), "kernels.py:2: NameError: name 'nothing' is not defined"),
        ("x = (\n", (), "kernels.py: SyntaxError: "),
        ("x = 1\n", (), "expected one kernel, found none; say which with --kernel\n"),
        (
            "from lowlp.language import Kernel\ndef make(n) -> Kernel: ...\ndef other(n) -> int: ...\n",
            (),
            "found none; say which with --kernel, as in --kernel 'make(...)'\n",
        ),
        (SOURCE + "more = make(3.0)\n", (), "expected one kernel, found twice, more; say which"),
        (SOURCE, ("--kernel", "make"), "--kernel 'make': expected a kernel, got function"),
        (SOURCE, ("--kernel", "thrice"), "--kernel 'thrice': NameError: name 'thrice' is not defined"),
    ],
)
def test_wrong_files(
    text: str, options: tuple[str, ...], said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    for command in ("run", "compile"):
        assert main([command, str(file), *options]) == 1
        assert said in capsys.readouterr().err


KERNEL = """
import lowlp
from lowlp import language as ll


@lowlp.kernel(grid=(1,), num_threads=32)
def wrong(x: ll.pointer("f16")):
    {line}
"""


def test_errors_name_the_line_of_a_relative_path_and_the_public_name(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(KERNEL.format(line="ll.max(x, axis=0)"))
    monkeypatch.chdir(file.parent)
    assert main(["compile", file.name]) == 1
    said = "TypeError: max() got an unexpected keyword argument 'axis'"
    assert capsys.readouterr().err == f"lowlp: error: {file.name}:8: {said}\n"


def test_errors_in_kernels_name_the_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(KERNEL.format(line="undefined_name + 1"))
    for command in (["run", str(file), "-a", "x=8"], ["compile", str(file)]):
        assert main(command) == 1
        assert capsys.readouterr().err == (f"lowlp: error: {file}:8: NameError: name 'undefined_name' is not defined\n")
    file.write_text(KERNEL.format(line='ll.alloc_shared("f32", shape=[300, 300])'))
    emit = f"reproduce: lowlp compile {file} --kernel wrong --emit block -o kernels.mlir && lowlp-opt kernels.mlir "
    for command, pipeline in (
        ("run", "'--lowlp-to-cpu=arch=sm_90a opt-level=2'"),
        ("compile", "'--lowlp-to-ptx=arch=sm_90a opt-level=3'"),
    ):
        more = ["-a", "x=8", "--device", "cpu"] if command == "run" else []
        assert main([command, str(file), "--kernel", "wrong", *more]) == 1
        said = capsys.readouterr().err
        assert f"{file}:8: 'lowlp.alloc_shared' op does not fit" in said
        assert said.endswith(f"refused by: lowlp-plan-memory\n{emit}{pipeline}\n")


def test_a_gpu_that_is_not_there(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lowlp_runtime.why_no_device", lambda: "the driver sees no CUDA device")
    assert main(["run", str(file), "--device", "cuda", *ARGUMENTS]) == 1
    assert capsys.readouterr().err == "lowlp: error: --device cuda: the driver sees no CUDA device\n"
    assert main(["run", str(file), *ARGUMENTS]) == 0
    assert "no GPU is used: the driver sees no CUDA device" in " ".join(capsys.readouterr().out.split())


def test_on_a_gpu_the_time_is_told(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_module.Run(KernelDescription("scaled", (), (1, 1, 1), (32, 1, 1)), [], (1, 1, 1), median_us=12.34)
    monkeypatch.setattr("lowlp.cli.run.choose_device", lambda wanted: Device(True, "a GPU"))
    monkeypatch.setattr(run_module, "run_on_gpu", lambda program, given, seed: done)
    assert main(["run", str(file)]) == 0
    out = re.sub(r" {2,}", "  ", capsys.readouterr().out)
    assert out.startswith(
        "device  a GPU\nkernel  scaled\ngrid  1 blocks of 32 threads\ntime  12.3 us median, cold L2\n"
    )


def test_types_of_arrays() -> None:
    description = KernelDescription(
        name="k",
        parameters=(
            Parameter("b", "pointer", "u8"),
            Parameter("x", "pointer", "bf16", alignment_bytes=128),
            Parameter("f", "f32"),
            Parameter("n", "i64"),
        ),
        grid=(1, 1, 1),
        block=(32, 1, 1),
    )
    b, x, f, n = read_arguments(description, ["b=int6:10x7", "x=ones:bf16:4", "f=1.5", "n=0x10"], seed=1)
    assert isinstance(b.value, np.ndarray)
    assert isinstance(x.value, np.ndarray)
    assert (b.value.dtype, b.value.shape) == (np.uint8, (53,))
    assert x.value.dtype == ml_dtypes.bfloat16
    assert x.value.astype(np.float32).tolist() == [1.0] * 4
    assert x.value.__array_interface__["data"][0] % 128 == 0
    assert (f.value, n.value) == (1.5, 16)
    again = read_arguments(description, ["b=int6:10x7", "x=4", "f=1", "n=1"], seed=1)[0].value
    assert isinstance(again, np.ndarray)
    assert (again == b.value).all()
    with pytest.raises(LowlpTypeError, match="x: expected elements of type bf16, got f16"):
        read_arguments(description, ["b=4", "x=f16:4", "f=1", "n=1"], seed=0)
    with pytest.raises(LowlpValueError, match="b: there is no type 'int9'"):
        read_arguments(description, ["b=int9:4", "x=4", "f=1", "n=1"], seed=0)


@pytest.mark.parametrize("emit", ["block", "thread", "ptx", "cubin", "lowlp"])
def test_times_of_passes(emit: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(file), "--time", "--emit", emit, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    rows = re.findall(r"^(.+?) +([0-9.]+) ms +([0-9.]+) %$", said, re.MULTILINE)
    names = [name for name, _, _ in rows]
    assert names[0] == "trace or parse"
    assert names[-1] == "total"
    assert ("lowlp-convert-to-thread" in names) == (emit != "block")
    assert ("LLVM's optimiser" in names) == (emit in ("ptx", "cubin", "lowlp"))
    assert ("ptxas" in names) == (emit in ("cubin", "lowlp"))
    assert sum(float(ms) for _, ms, _ in rows[:-1]) == pytest.approx(float(rows[-1][1]), abs=0.1)


def test_a_saved_kernel_is_not_compiled_again(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "k.lowlp"
    assert main(["compile", str(file), "--emit", "lowlp", "-o", str(saved)]) == 0
    assert main(["compile", str(saved)]) == 1
    assert "compiled already" in capsys.readouterr().err


def test_the_assembler_may_be_chosen(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--emit", "lowlp", "-o", str(tmp_path / "k.lowlp")]
    linker = NvJitLink()
    status = main(["compile", str(file), "--assembler", "nvjitlink", *out])
    if linker.why_missing():
        assert status == 1
        assert "nvjitlink was asked for and cannot be used" in capsys.readouterr().err
    else:
        assert status == 0
        assert main(["inspect", str(tmp_path / "k.lowlp")]) == 0
        assert re.search(r"^  nvjitlink sm_90a: registers per thread +\d+$", capsys.readouterr().out, re.MULTILINE)


def test_words_of_a_saved_product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lowlp.compile_linear(n=16, k=64, weight="int4", group_size=64).save(tmp_path / "k.lowlp")
    given = ["x=2x64", "weights=1x1x4x32", "scales=ones:1x16", "y=undefined:2x16", "m=2", "x_stride=64", "blocks=1"]
    assert run(tmp_path / "k.lowlp", "-a", *given) == 0
    assert re.search(r"^  weights +uint32 1 x 1 x 4 x 32, random$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("element", ["u32", "i32", "i16", "u8"])
def test_integers_are_filled_and_read(element: str, tmp_path: Path) -> None:
    description = KernelDescription("k", (Parameter("x", "pointer", element),), (1, 1, 1), (32, 1, 1))
    dtype = np.dtype({"u": "uint", "i": "int"}[element[0]] + element[1:])
    for text in ("x=random:3x5", "x=arange:3x5", "x=zeros:3x5"):
        (argument,) = read_arguments(description, [text], 0)
        assert (argument.value.dtype, argument.value.shape) == (dtype, (3, 5))  # type: ignore[union-attr]
    other = np.arange(6).astype(np.dtype(f"{'i' if dtype.kind == 'u' else 'u'}{dtype.itemsize}"))
    np.save(tmp_path / "x.npy", other)
    (argument,) = read_arguments(description, [f"x={tmp_path / 'x.npy'}"], 0)
    np.testing.assert_array_equal(argument.value, other)
    with pytest.raises(LowlpValueError, match=r"x: must have at most 1099511627776 bytes, got \d+ for '9{11}x9{9}'"):
        read_arguments(description, ["x=99999999999x999999999"], 0)


def test_a_seed_is_bounded(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(file, *ARGUMENTS, "--seed", 2**64)
    assert "--seed: must be at most 18446744073709551615, got 18446744073709551616" in capsys.readouterr().err
