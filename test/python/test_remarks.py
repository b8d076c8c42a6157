"""What passes say of what they did not do: collected with the kernel, and printed by `lowlp compile --remarks`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from packed_products import packed_product

import lowlp
from lowlp import language as ll
from lowlp.cli import main
from lowlp.compiler.compilation import compile_cpu, open_program, run_pipeline
from lowlp.compiler.remarks import collected, summary

ROW = lowlp.spatial(32).local(2)

LOOP = """
lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.name = "NAME"}) attributes {grid = affine_map<() -> (1)>, num_threads = 32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %v = lowlp.view_global %p shape [4, 64] : !lowlp.ptr<f16> -> !lowlp.global<4x64xf16>
  scf.for %i = %c0 to %c4 step %c1 {
    %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<4x64xf16> -> !lowlp.tile<64xf16, spatial(32).local(2)>
    lowlp.store_global %t, %v[%i, %c0] : !lowlp.tile<64xf16, spatial(32).local(2)>, !lowlp.global<4x64xf16>
  } {lowlp.stages = #lowlp.stages<3>}
  lowlp.return
}
"""


def in_place() -> ll.Kernel:
    def body(x: Any, m: Any) -> None:
        view = ll.view_global(x, shape=[m, 64])
        for row in ll.range(m, stages=3):
            tile = ll.load_global(view, offsets=[row, 0], layout=ROW)  # the load
            ll.store_global(tile + tile, view, offsets=[row, 0])

    parameters = {"x": ll.pointer("f16", align=16), "m": ll.i32}
    return ll.make_kernel(body, name="in_place", parameters=parameters, grid=(1,), num_threads=32)


def test_a_loop_that_stores_to_what_it_loads_says_that_it_has_no_stages() -> None:
    kernel = lowlp.compile(in_place(), assemble=False, cache=False)
    line = 1 + Path(__file__).read_text(encoding="utf-8").split("  # the load\n")[0].count("\n")
    place = f"test_remarks.py:{line}"
    reason = (
        f"lowlp-choose-rings: lowlp.load_global at {place} without stages: the kernel may write to x, which it reads"
    )
    assert reason in kernel.report()
    assert "lowlp-choose-rings: scf.for" in kernel.report()


def test_kernels_of_which_nothing_was_declined_have_no_remarks() -> None:
    kernel = lowlp.compile(packed_product(64, 64, 8, "int6", "f16"), assemble=False, cache=False)
    assert "remarks" not in kernel.description.notes


def test_remarks_are_of_the_passes_within_the_block() -> None:
    module = open_program(LOOP)
    with collected(module.context) as remarks:
        pass
    run_pipeline(module, "lowlp-to-thread")
    assert remarks == []
    module = open_program(LOOP)
    with collected(module.context) as remarks:
        run_pipeline(module, "lowlp-to-thread")
    assert [(remark.op, remark.declined, remark.kernel) for remark in remarks] == [
        ("lowlp.load_global", True, "k"),
        ("scf.for", True, "k"),
    ]
    assert len(summary(remarks * 2)) == 2
    assert summary(remarks * 2)["1"].endswith("(2 times)")


def test_a_name_that_is_no_utf8() -> None:
    """Such bytes come from an escape in text; in what passes say they are U+FFFD."""
    module = open_program(LOOP.replace("NAME", r"a\C3b"))
    with collected(module.context) as remarks:
        run_pipeline(module, "lowlp-to-thread")
    assert "write to a\ufffdb," in remarks[0].text


def test_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "k.mlir"
    path.write_text(LOOP, encoding="utf-8")
    for arguments in (["--emit", "thread"], ["--emit", "ptx"], ["--emit", "cpu"]):
        assert main(["compile", str(path), "--remarks", *arguments]) == 0
        assert re.search("lowlp-choose-rings: lowlp.load_global at k.mlir:8 without stages: ", capsys.readouterr().err)
    assert main(["compile", str(path), "--remarks", "-O0"]) == 0
    assert capsys.readouterr().err == "no remarks\n"


def test_the_cpu_target_says_it_too() -> None:
    assert "without stages" in str(compile_cpu(LOOP).description.notes["remarks"])
