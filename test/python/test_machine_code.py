"""What decode plans are in the machine code: instructions of the ALU a pair of weights, from `nvdisasm`."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from lowlp._layout import Placement
from packed_products import unrolled_product
from test_decode_plans import MOST_ALU

import lowlp
from lowlp.compiler import compilation
from lowlp.packing import placement_name

ALU = {"LOP3", "PRMT", "SHF", "SEL", "SGXT", "BMSK", "ISETP", "PLOP3"}
OPCODE = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\d+\s+)?([A-Z0-9]+)", re.MULTILINE)


def find_nvdisasm() -> str | None:
    """On PATH, or of the PyPI package nvidia-cuda-nvdisasm."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(root) / "cu13" / "bin" for root in (spec.submodule_search_locations if spec else None) or []]
    return shutil.which("nvdisasm") or next(
        (str(folder / "nvdisasm") for folder in folders if (folder / "nvdisasm").exists()), None
    )


NVDISASM = find_nvdisasm()
needs_nvdisasm = pytest.mark.skipif(NVDISASM is None, reason="nvdisasm is not there: pip install nvidia-cuda-nvdisasm")


def opcodes(units: int, weight: str, path: Path) -> Counter[str]:
    path.write_bytes(compilation.compile(unrolled_product(units, weight, "f16"), "sm_90a").cubin)
    assert NVDISASM
    listing = subprocess.run([NVDISASM, "-c", path], capture_output=True, text=True, check=True).stdout
    return Counter(OPCODE.findall(listing))


@pytest.mark.sampled(6)
@needs_nvdisasm
@pytest.mark.parametrize("weight", MOST_ALU)
def test_instructions_in_machine_code(weight: str, tmp_path: Path) -> None:
    """What two more units add to a straight line, with 1 instruction of addresses a unit allowed."""
    few, many = (opcodes(units, weight, tmp_path / "kernel.cubin") for units in (1, 3))
    pairs = 2 * Placement.find(placement_name(lowlp.dtype(weight), "f16")).slots
    assert many["HMMA"] - few["HMMA"] == pairs // 4
    found = sum(many[name] - few[name] for name in ALU)
    print(f"{weight}: {found / pairs:.3f} instructions of the ALU a pair of weights")
    assert found - 2 <= MOST_ALU[weight] * pairs
