"""The list of architectures: against ptxas, instruction by instruction, and on its page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lowlp.cli import main
from lowlp.compiler.targets import target, targets
from lowlp.errors import LowlpValueError
from lowlp_runtime.assemble import assemble_ptx
from lowlp_runtime.errors import AssembleError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "targets.md"

# An instruction of each row, with the operands that PREAMBLE declares.
PROBES = {
    "mma.sync.m16n8k16 f16, bf16": """
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {a0,a1,a2,a3}, {b0,b1}, {f0,f1,f2,f3};
        mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {f0,f1,f2,f3}, {a0,a1,a2,a3}, {b0,b1}, {f0,f1,f2,f3};""",
    "mma.sync.m16n8k32 s8, u8": """
        mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, {c0,c1,c2,c3};
        mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, {c0,c1,c2,c3};""",
    "mma.sync.m16n8k64 s4, u4": """
        mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, {c0,c1,c2,c3};""",
    "mma.sync.m16n8k256 b1 and.popc": """
        mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, {c0,c1,c2,c3};
        """,
    "mma.sync.m16n8k128 b1 and.popc": """
        mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {c0,c1,c2,c3}, {a0,a1}, {b0}, {c0,c1,c2,c3};
        """,
    "mma.sync.m16n8k256 b1 xor.popc": """
        mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {c0,c1,c2,c3}, {a0,a1,a2,a3}, {b0,b1}, {c0,c1,c2,c3};
        """,
    "mma.sync.m16n8k32 e4m3, e5m2": """
        mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {f0,f1,f2,f3}, {a0,a1,a2,a3}, {b0,b1}, {f0,f1,f2,f3};""",
    "mma.sync.m16n8k32 kind::f8f6f4": """
        mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e3m2.e2m1.f32
            {f0,f1,f2,f3}, {a0,a1,a2,a3}, {b0,b1}, {f0,f1,f2,f3};""",
    "wgmma.mma_async": """
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0,f1,f2,f3}, wide, wide, 1, 1, 1, 0, 0;""",
    "wgmma.mma_async.m64nNk256 b1 and.popc": """
        wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {c0,c1,c2,c3}, {a0,a1,a2,a3}, wide, 1;""",
    "tcgen05.mma": "tcgen05.mma.cta_group::1.kind::f16 [a0], wide, wide, a1, flag;",
    "ldmatrix.m8n8 b16": "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a0,a1,a2,a3}, [shared];",
    "stmatrix.m8n8 b16": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [shared], {a0,a1,a2,a3};",
    "cp.async": "cp.async.cg.shared.global [shared], [global], 16; cp.async.commit_group; cp.async.wait_group 0;",
    "cp.async.bulk into shared::cta": """
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [shared], [global], 128, [shared];""",
    "cp.async.bulk into shared::cluster": """
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [shared], [global], 128, [shared];""",
    "cp.async.bulk into global": """
        cp.async.bulk.global.shared::cta.bulk_group [global], [shared], 128;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;""",
    "cp.reduce.async.bulk into global": """
        cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [global], [shared], 128;""",
    "cp.async.bulk.tensor": """
        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
            [shared], [global, {a0, a1}], [shared];""",
    "st.async": "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [shared], a0, [shared];",
    "fence.proxy.async": "fence.proxy.async.shared::cta;",
    "mbarrier.init, arrive, test_wait": """
        mbarrier.init.shared.b64 [shared], 32;
        mbarrier.arrive.shared.b64 wide, [shared];
        mbarrier.test_wait.shared.b64 flag, [shared], wide;""",
    "mbarrier.try_wait": "mbarrier.try_wait.parity.shared::cta.b64 flag, [shared], a0;",
    "mbarrier.arrive.expect_tx": "mbarrier.arrive.expect_tx.shared::cta.b64 wide, [shared], a0;",
    "barrier.cluster": "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    "elect.sync": "elect.sync a0|flag, 0xffffffff;",
    "griddepcontrol": "griddepcontrol.wait; griddepcontrol.launch_dependents;",
    "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32 128;",
    "redux.sync s32, u32, b32": """
        redux.sync.add.s32 a0, a0, 0xffffffff;
        redux.sync.max.u32 a0, a0, 0xffffffff;
        redux.sync.or.b32 a0, a0, 0xffffffff;""",
    "redux.sync f32": "redux.sync.max.f32 f0, f0, 0xffffffff;",
    "atom.add f16x2": "atom.global.add.noftz.f16x2 a0, [global], a1;",
    "atom.add bf16x2": "atom.global.add.noftz.bf16x2 a0, [global], a1;",
    "red.add v4.f32, v4.f16x2": """
        red.global.v4.f32.add [global], {f0, f1, f2, f3};
        red.global.v4.f16x2.add.noftz [global], {a0, a1, a2, a3};""",
    "cvt e4m3x2, e5m2x2 to f16x2": "cvt.rn.f16x2.e4m3x2 a0, half; cvt.rn.f16x2.e5m2x2 a1, half;",
    "cvt e3m2x2, e2m3x2, e2m1x2 to f16x2": """
        cvt.rn.f16x2.e3m2x2 a0, half;
        cvt.rn.f16x2.e2m3x2 a1, half;
        { .reg .b8 byte; cvt.u8.u32 byte, a2; cvt.rn.f16x2.e2m1x2 a3, byte; }""",
    "fma.rn.f32x2": "fma.rn.f32x2 wide, wide, wide, wide;",
}
PREAMBLE = """
    .reg .b32 a<4>, b<2>, c<4>, shared;
    .reg .f32 f<4>;
    .reg .b64 wide, global;
    .reg .b16 half;
    .reg .pred flag;
    ld.param.u64 global, [pointer];
    mov.u32 shared, bytes;
    ld.global.v4.u32 {a0, a1, a2, a3}, [global];
    ld.global.v2.u32 {b0, b1}, [global + 16];
    ld.global.v4.u32 {c0, c1, c2, c3}, [global + 32];
    ld.global.v4.f32 {f0, f1, f2, f3}, [global + 48];
    ld.global.u64 wide, [global + 64];
    ld.global.u16 half, [global + 72];
    setp.eq.u32 flag, a0, a1;
"""


def assembles(chip: str, *instructions: str) -> bool:
    version = target(chip).ptx_version
    kernels = "".join(
        f".visible .entry probe{number}(.param .u64 pointer) .reqntid 128 {{ {PREAMBLE} {PROBES[name]} ret; }}\n"
        for number, name in enumerate(instructions)
    )
    header = f".version {version // 10}.{version % 10}\n.target {chip}\n.address_size 64\n"
    try:
        assemble_ptx(f"{header}.shared .align 16 .b8 bytes[1024];\n{kernels}", chip, opt_level=0)
    except AssembleError as error:
        # Refused for the instruction, not because the probe is wrong.
        assert re.search(r"not supported|requires|Unknown modifier|Unexpected instruction types", str(error)), error
        return False
    return True


CHIPS = [known.chip for known in targets()]


def test_every_instruction_has_a_probe() -> None:
    assert list(targets()[0].instructions) == list(PROBES)


@pytest.mark.parametrize("chip", CHIPS)
def test_ptxas_takes_what_the_table_has(chip: str) -> None:
    assert assembles(chip, *(name for name, count in target(chip).instructions.items() if count))


@pytest.mark.parametrize("chip", CHIPS)
def test_ptxas_refuses_what_the_table_lacks(chip: str) -> None:
    absent = [name for name, count in target(chip).instructions.items() if not count]
    assert [name for name in absent if assembles(chip, name)] == []


def test_an_unknown_architecture_is_named() -> None:
    with pytest.raises(LowlpValueError, match=r"target: unknown architecture 'sm_75'; known are sm_80, .*sm_121a"):
        target("sm_75")


# --- the command and the page -----------------------------------------------------------------------------------------


def test_the_command_lists_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--arch", "sm_80", "sm_90a"]) == 0
    lines = {re.sub(" {2,}", "|", line) for line in capsys.readouterr().out.splitlines()}
    assert {"sm_|80|90a", "sm_90a|8.6|227|228|64|32|128", "wgmma.mma_async|-|yes", "cp.async|yes|yes"} <= lines
    assert "mma.sync.m16n8k32 e4m3, e5m2|-|18" in lines


def test_the_command_refuses_an_unknown_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--arch", "sm_75"]) == 1
    assert capsys.readouterr().err.startswith("lowlp: error: target: unknown architecture 'sm_75'; known are ")


def test_the_page_holds_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Where this fails after a change of the table, put the output of `lowlp targets --markdown` into the page."""
    assert main(["targets", "--markdown"]) == 0
    assert capsys.readouterr().out in PAGE.read_text(encoding="utf-8")
