"""The examples run, and check their numbers themselves: in this process, and each once as a program of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from example_programs import EXAMPLES, output_of_example

from lowlp.compiler.compilation import open_program


def run_example(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / arguments[0]), *arguments[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("fig2.py", "-m", "32", "-n", "24", "-k", "48"),
        ("fig2.py", "-m", "16", "-n", "8", "-k", "16", "--dtype", "uint2"),
        ("fig2.py", "-m", "48", "-n", "8", "-k", "32", "--dtype", "f4e2m1"),
        ("fig2.py", "-m", "16", "-n", "40", "-k", "16", "--dtype", "f8e4m3"),
        ("fig2.py", "-m", "32", "-n", "16", "-k", "80", "--dtype", "f6e3m2"),
        ("transform_b.py", "-k", "48", "-n", "24"),
        ("transform_b.py", "-k", "16", "-n", "40", "--dtype", "int2"),
        ("transform_b.py", "-k", "80", "-n", "8", "--dtype", "f4e2m1"),
        ("transform_b.py", "-k", "32", "-n", "16", "--dtype", "int8"),
        ("softmax.py", "-m", "3", "-n", "300"),
        ("softmax.py", "-m", "5", "-n", "7", "--rows", "4"),
        ("rmsnorm.py", "-m", "3", "-n", "300"),
        ("rmsnorm.py", "-m", "33", "-n", "64", "--rows", "32"),
        ("matmul.py", "-m", "130", "-n", "136", "-k", "72"),
        ("matmul.py", "-m", "5", "-n", "7", "-k", "3"),
        ("plain_matmul.py", "-m", "130", "-n", "136", "-k", "72"),
        ("plain_matmul.py", "--packed", "-m", "19", "-n", "64"),
        ("plain_matmul.py", "--packed", "-m", "16", "-n", "64", "-k", "640"),
        ("plain_matmul.py", "--packed", "-m", "5", "-n", "448", "-k", "128"),
        ("fig14.py", "--dtype", "uint6", "-m", "32", "-n", "64", "-k", "1024"),
        ("fig14.py", "--dtype", "int6", "-m", "16", "-n", "32", "-k", "256"),
        ("split_k.py", "-m", "20", "-n", "32", "-k", "512", "--splits", "4"),
        ("split_k.py", "-m", "1", "-n", "64", "-k", "512", "--splits", "16", "--seed", "5"),
        ("split_k.py", "-m", "17", "-n", "8", "-k", "64", "--splits", "1"),
        ("fig14.py", "--dtype", "uint2", "-m", "16", "-n", "64", "-k", "512"),
        ("fig14.py", "--dtype", "f4e2m1", "-m", "48", "-n", "32", "-k", "256"),
        ("fig14.py", "--dtype", "f8e4m3", "-m", "16", "-n", "32", "-k", "512"),
        ("flash_decoding.py", "--length", "70", "-d", "32"),
        ("vq_gemv.py", "-m", "5", "-n", "70", "-k", "256"),
        ("vq_attention.py", "--heads", "1", "--tokens", "80"),
        ("bit_serial.py", "--weight", "int2", "-m", "9", "-n", "50", "-k", "300"),
    ],
)
def test_example_gives_right_numbers(arguments: tuple[str, ...]) -> None:
    assert "counted" in output_of_example(*arguments)


def test_example_of_quantised_activations() -> None:
    """It compares sums and products with numpy itself."""
    assert "the sums are numpy's" in output_of_example("w4a8.py", "-m", "3", "-n", "48", "-k", "128")


def test_a_file_is_what_its_program_prints() -> None:
    lines = (EXAMPLES / "vq_attention.mlir").read_text().splitlines()
    program = [line for line in lines if line and not line.startswith("//")]
    assert program == output_of_example("vq_attention.py", "--mlir").strip().splitlines()


def test_a_saved_product_is_loaded_without_the_compiler(tmp_path: Path) -> None:
    saved = run_example("saved_linear.py", "--save", str(tmp_path))
    assert saved.returncode == 0, saved.stderr
    done = run_example("saved_linear.py", "--load", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "loaded     <lowlp kernel linear_int4_f16 for sm_90a>, which takes" in done.stdout
    assert re.search(r"^  scales +scales +f16 +\[4, 256\]$", done.stdout, re.MULTILINE)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("fig2.py", "matmul"),
        ("fig14.py", "matmul"),
        ("matmul.py", "matmul"),
        ("plain_matmul.py", "matmul"),
        ("transform_b.py", "transform_b"),
        ("softmax.py", "softmax"),
        ("rmsnorm.py", "rmsnorm"),
        ("split_k.py", "split_matmul"),
        ("bit_serial.py", "bit_serial"),
        ("flash_decoding.py", "attention"),
        ("flash_decoding.py", "combine"),
    ],
)
def test_example_prints_its_program(file: str, name: str) -> None:
    text = run_example(file, "--mlir").stdout
    assert f"lowlp.kernel @{name}(" in text
    assert len(list(open_program(text).body.operations)) == text.count("lowlp.kernel @")  # the file can be read back


def test_example_refuses_sizes_that_blocks_do_not_cover() -> None:
    done = run_example("fig2.py", "-m", "20")
    assert done.returncode == 2
    assert "-m must be a multiple of 16" in done.stderr


def test_split_k_refuses_parts_of_unequal_length() -> None:
    done = run_example("split_k.py", "-k", "48", "--splits", "2")
    assert done.returncode == 2
    assert "-k must be a multiple of 16 for each of 2 parts, got 48" in done.stderr


@pytest.mark.parametrize("file", ["softmax.py", "rmsnorm.py", "matmul.py"])
def test_example_refuses_empty_rows(file: str) -> None:
    done = run_example(file, "-n", "0")
    assert done.returncode == 2
    assert "-n must be at least 1" in done.stderr
