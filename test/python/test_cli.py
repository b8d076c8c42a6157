"""The command `lowlp`, through its `main`."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lowlp._layout import Placement

import lowlp
from lowlp.cli import main
from lowlp.cli.layout import runs_of_bits
from lowlp_runtime import KernelBinary, KernelDescription, Parameter

FIG2 = Path(__file__).resolve().parents[2] / "examples" / "fig2.mlir"
COMMANDS = ("bench", "cache", "compile", "convert", "demo", "doctor", "inspect", "layout", "run", "targets")


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def wrong_usage(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert isinstance(stop.value.code, int)
    return stop.value.code


# --- the program itself -----------------------------------------------------------------------------------------------


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert wrong_usage("--help") == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"^    {command} ", out, re.MULTILINE) for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_commands_describes_every_argument(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert wrong_usage(command, "--help") == 0
    out = capsys.readouterr().out
    assert "example" in out
    options = out[out.index("options:") :]
    # An argument without a description ends its line at its name.
    assert not re.search(r"^  -\S+( \S+)?$(?!\n {10,})", options, re.MULTILINE), options


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert wrong_usage("--version") == 0
    assert capsys.readouterr().out == f"lowlp {lowlp.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [(), ("fly",), ("compile",), ("compile", "x", "-O", "4"), ("demo", "--rows", "0"), ("demo", "--seed=-1")],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert wrong_usage(*arguments) == 2
    assert capsys.readouterr().err.startswith("usage: lowlp")


def test_help_loads_neither_mlir_nor_numpy() -> None:
    code = (
        "import sys\nfrom lowlp.cli import build_parser\nbuild_parser().format_help()\n"
        "print([name for name in sys.modules if name.startswith(('lowlp._mlir', 'numpy', 'torch'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m lowlp layout 'spatial(64, 512)' | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0", "")


# --- layout -----------------------------------------------------------------------------------------------------------


def test_layout_draws_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("layout", "local(2, 1).column_spatial(4, 8).local(2, 1)", "--dtype", "int6") == 0
    out = capsys.readouterr().out
    assert lowlp.layout("local(2, 1).column_spatial(4, 8).local(2, 1)").draw() in out
    assert re.search(r"^threads +32$", out, re.MULTILINE)
    assert re.search(r"^bits per thread +24 bits = 3 bytes$", out, re.MULTILINE)
    assert re.search(r"^as bytes +local\(3\)\.spatial\(32\) over 96 bytes$", out, re.MULTILINE)


def test_layout_says_where_bytes_do_not_suffice(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("layout", "spatial(8, 4)", "--dtype", "int3") == 0
    assert "not a whole number of bytes" in capsys.readouterr().out


def test_layout_of_three_dimensions_lists_threads(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("layout", "spatial(1, 2, 2).local(1, 1, 2)") == 0
    assert re.search(r"^thread 3 +\(0, 1, 2\) \(0, 1, 3\)$", capsys.readouterr().out, re.MULTILINE)


def test_layout_of_a_placement_tells_where_bits_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    placement = Placement.find("int6.f16")
    picture = tmp_path / "int6.svg"
    assert run("layout", "int6.f16", "--svg", str(picture)) == 0
    out = capsys.readouterr().out
    assert re.search(rf"^unit +{placement.unit_rows} x 64 weights of 6 bits$", out, re.MULTILINE)
    listing = " ".join(out.partition("of its words")[2].split())
    names = re.findall(r"slot \d+: w\[[^]]+\]", listing)
    assert len(names) == placement.slots and names[7] == "slot 7: w[8, 24..25]"
    for slot, text in enumerate(re.split(r"slot \d+: w\[[^]]+\] ", listing)[1:]):
        for part, runs in enumerate(text.split("|")):
            places = []
            for word, first, last in re.findall(r"(\d+)\.(\d+)-?(\d*)", runs):
                step = -1 if int(last or first) < int(first) else 1
                places += [(int(word), bit) for bit in range(int(first), int(last or first) + step, step)]
            assert places == [placement.place(slot, part, bit) for bit in range(6)]
    assert "placement int6.f16" in picture.read_text(encoding="utf-8")


def test_runs_of_bits() -> None:
    assert runs_of_bits([(0, 2), (0, 3), (0, 4), (1, 4), (1, 3), (2, 7)]) == "0.2-4 1.4-3 2.7"
    assert runs_of_bits([(0, 5), (0, 4), (0, 3), (0, 7)]) == "0.5-3 0.7"
    assert runs_of_bits([(0, 1), (0, 2), (0, 1)]) == "0.1-2 0.1"


def test_layout_too_large_to_draw_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("layout", "spatial(100000, 100000)") == 0
    assert "not drawn: 10,000,000,000 elements" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [("lokal(2)",), ("local(2)", "--dtype", "int9"), ("int9.f16",), ("int6.f16", "--dtype", "int6")]
)
def test_layout_errors_are_one_line(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("layout", *arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lowlp: error: ")
    assert captured.err.count("\n") == 1


# --- compile ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        ("block", "lowlp.dot"),
        ("thread", "simt."),
        ("nvvm", "nvvm.mma.sync"),
        ("ptx", "mma.sync.aligned.m16n8k16"),
        ("cpu", "llvm.func"),
    ],
)
def test_compile_writes_text(emit: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", FIG2, "--emit", emit) == 0
    text = capsys.readouterr().out
    assert expected in text
    out = tmp_path / "out"
    assert run("compile", FIG2, "--emit", emit, "-o", out) == 0
    assert out.read_text().rstrip("\n") == text.rstrip("\n")


def test_compile_takes_architecture_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", FIG2, "--arch", "sm_80", "-O1", "--emit", "ptx") == 0
    assert ".target sm_80\n" in capsys.readouterr().out


def test_compile_reads_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(FIG2.read_text()))
    assert run("compile", "-", "--emit", "block") == 0
    assert "@matmul" in capsys.readouterr().out


def test_compile_to_machine_code_and_inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cubin, saved = tmp_path / "k.cubin", tmp_path / "k.lowlp"
    assert run("compile", FIG2, "--emit", "cubin", "-o", cubin) == 0
    assert cubin.read_bytes().startswith(b"\x7fELF")
    assert run("compile", FIG2, "--emit", "lowlp", "-o", saved) == 0
    assert run("inspect", saved) == 0
    out = capsys.readouterr().out
    assert "kernel matmul" in out
    assert re.search(r"^  transformed_b +pointer to u8, read, aligned to 16 bytes$", out, re.MULTILINE)
    assert re.search(r"^  blocks of grid +x: 64, y: 128$", out, re.MULTILINE)
    assert KernelBinary.load(saved).content_hash in out
    assert re.search(r"^  ptxas sm_90a: registers per thread +\d+$", out, re.MULTILINE)
    assert run("inspect", saved, "--ir", "block") == 0
    assert "lowlp.kernel @matmul" in capsys.readouterr().out


def test_compile_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text("lowlp.kernel @k() attributes {num_threads = 32 : i64} {\n  lowlp.retur\n}\n")
    assert run("compile", wrong) == 1
    assert f"{wrong}:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"), [(("no-such.mlir",), "no-such.mlir"), ((FIG2, "--arch", "gfx90"), "gfx90")]
)
def test_compile_errors_are_one_line(
    arguments: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compile", *arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("lowlp: error: ")
    assert said in err
    assert err.count("\n") == 1


# --- inspect ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    description = KernelDescription(
        name="scale",
        parameters=(
            Parameter("x", "pointer", "f16", alignment_bytes=16, writable=True),
            Parameter("m", "i32"),
            Parameter("stride", "i64", divisible_by=8),
        ),
        grid=(["*", ["ceildiv", ["param", "m"], 16], ["+", ["param", "stride"], 1]], ["mod", ["param", "m"], 7], 1),
        block=(64, 2, 1),
        notes={"plan": {"decode": "by code"}, "m": [1, 16]},
    )
    path = tmp_path / "scale.lowlp"
    KernelBinary(description, ptx={"sm_80": "// eighty\n", "sm_90a": "// ninety\n"}).save(path)
    return path


def test_inspect_says_what_is_held(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", saved) == 0
    out = re.sub(r" {2,}", "  ", capsys.readouterr().out)
    assert "\n  blocks of grid  x: ceil(m / 16) * (stride + 1), y: m mod 7\n" in out
    assert "\n  block  64 x 2 x 1 threads\n" in out
    assert "\n  x  pointer to f16, written, aligned to 16 bytes\n  m  i32\n  stride  i64, a multiple of 8\n" in out
    assert "\ndecided\n  plan: decode  by code\n  m  1, 16\n" in out
    assert "\n  PTX sm_80  10 bytes\n  PTX sm_90a  10 bytes\n" in out


def test_inspect_shows_control_characters_as_escapes(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = KernelBinary.load(saved)
    notes = {"plan\x1b[2J": {"a": "\x1b]0;title\x07 \x9b31m"}}
    KernelBinary(dataclasses.replace(found.description, notes=notes), found.ptx).save(saved)
    assert run("inspect", saved) == 0
    out = capsys.readouterr().out
    assert r"plan\x1b[2J: a  \x1b]0;title\x07 \x9b31m" in out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)


def test_inspect_prints_ptx(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", saved, "--ptx", "--arch", "sm_90a") == 0
    assert capsys.readouterr().out == "// ninety\n"
    assert run("inspect", saved, "--ptx", "--arch", "sm_75") == 1
    assert "held: sm_80, sm_90a" in capsys.readouterr().err
    assert run("inspect", saved, "--arch", "sm_80") == 1
    assert "--arch: allowed with --ptx and --cubin only" in capsys.readouterr().err
    assert run("inspect", saved, "--ptx", "--arch", "sm_75") == 1
    assert "held: sm_80, sm_90a" in capsys.readouterr().err


def test_inspect_prints_parts(saved: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("inspect", saved, "--json") == 0
    assert KernelDescription.from_json(json.loads(capsys.readouterr().out)) == KernelBinary.load(saved).description
    assert run("inspect", saved, "--cubin", "-o", tmp_path / "k.cubin") == 1
    assert "machine code '' is not held; held: none" in capsys.readouterr().err
    assert run("inspect", saved, "-o", tmp_path / "summary") == 0
    assert (tmp_path / "summary").read_text().startswith("kernel scale\n")


def test_inspect_refuses_what_is_no_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (FIG2, tmp_path / "missing.lowlp"):
        assert run("inspect", path) == 1
        err = capsys.readouterr().err
        assert path.name in err
        assert err.count("\n") == 1


# --- demo -------------------------------------------------------------------------------------------------------------


def demo(folder: Path, *more: object) -> int:
    return run("demo", "--device", "cpu", "--outputs", 16, "--rows", 3, "--out-dir", folder, *more)


@pytest.mark.parametrize("dtype", ["int6", "uint3", "f6e3m2", "f8e6m1"])
def test_demo_is_within_its_limit(dtype: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(tmp_path, "--dtype", dtype) == 0
    captured = capsys.readouterr()
    assert "[5/5] comparing with float64" in captured.err
    error = re.search(r"^kernel error +(\S+) against float64", captured.out, re.MULTILINE)
    assert error
    assert float(error[1]) <= (1.1e-2 if dtype == "f8e6m1" else 2e-3)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".cubin", ".lowlp", ".ptx"]


def test_demo_fails_above_its_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lowlp.cli import demo_run

    monkeypatch.setitem(demo_run.ERROR_LIMITS, "f16", 1e-9)
    assert demo(tmp_path) == 1
    assert "lowlp: error: the result differs from float64 by" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--group-size", 100), ("--dtype", "int9"), ("--arch", "sm90")])
def test_demo_refuses_arguments(option: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(tmp_path, option, value) == 1
    assert str(value) in capsys.readouterr().err


def test_the_command_in_an_error_names_the_users_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compile", FIG2, "--arch", "sm_12") == 1
    assert f"reproduce: lowlp-opt {FIG2} '--lowlp-to-ptx=arch=sm_12 opt-level=3'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("layout", "local(2)", "--dtype", "int9"), ("demo", "--dtype", "int9")])
def test_a_wrong_type_is_named_as_the_option(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 1
    assert capsys.readouterr().err.startswith("lowlp: error: --dtype: there is no type 'int9'; allowed are ")
