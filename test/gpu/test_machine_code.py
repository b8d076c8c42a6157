"""What decode plans are in the machine code: instructions of the ALU a pair of weights, from `nvdisasm`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import lowlp
from lowlp import compiler
from lowlp._layout import Placement
from lowlp.packing import placement_name

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from packed_products import unrolled_product
from test_decode_plans import MOST_ALU

ALU = {"LOP3", "PRMT", "SHF", "SEL", "SGXT", "BMSK", "ISETP", "PLOP3"}
OPCODE = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\d+\s+)?([A-Z0-9]+)", re.MULTILINE)

needs_nvdisasm = pytest.mark.skipif(shutil.which("nvdisasm") is None, reason="nvdisasm is not on PATH")


def opcodes(units: int, weight: str, path: Path) -> Counter[str]:
    path.write_bytes(compiler.compile(unrolled_product(units, weight, "f16"), "sm_90a").cubin)
    listing = subprocess.run(["nvdisasm", "-c", path], capture_output=True, text=True, check=True).stdout
    return Counter(OPCODE.findall(listing))


@needs_nvdisasm
@pytest.mark.parametrize("weight", MOST_ALU)
def test_instructions_in_machine_code(weight: str, tmp_path: Path) -> None:
    """What four more units add to a straight line, with 1 instruction of addresses a unit allowed."""
    few, many = (opcodes(units, weight, tmp_path / "kernel.cubin") for units in (1, 5))
    pairs = 4 * Placement.find(placement_name(lowlp.dtype(weight), "f16")).slots
    assert many["HMMA"] - few["HMMA"] == pairs // 4
    found = sum(many[name] - few[name] for name in ALU)
    print(f"{weight}: {found / pairs:.3f} instructions of the ALU a pair of weights")
    assert found - 4 <= MOST_ALU[weight] * pairs
