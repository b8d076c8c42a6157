"""What the assembler makes of kernels that quantise activations: nothing spilled, wide loads, few instructions."""

from __future__ import annotations

import re

import pytest

import lowlp
from lowlp.activations.kinds import activation_kind
from lowlp.activations.quantize import Rule
from lowlp.kernels.activations.kernel import rows_kernel
from lowlp.kernels.activations.spec import Norm, RowsSpec, division_of

# Instructions of PTX for a number that a thread holds; about 21 of the machine's take as long as the bytes.
FORMS: dict[str, tuple[RowsSpec, int]] = {}


def form(dtype: str, most: int, **fields: object) -> tuple[RowsSpec, int]:
    return RowsSpec("f16", 8192, Rule(activation_kind(dtype), "token", True, 1.0, 0, None), **fields), most  # type: ignore[arg-type]


FORMS = {
    "int8-planes": form("int8", 22, planes=True),
    "f8e4m3": form("f8e4m3", 24),
    "norm": form("int8", 31, norm=Norm("f16", 1e-6, residual=True)),
    "hadamard": form("int4", 46, hadamard=8192),
}


@pytest.mark.parametrize("name", FORMS)
def test_rows_are_held_in_registers(name: str) -> None:
    spec, most = FORMS[name]
    division = division_of(spec)
    assert division is not None and division.num_threads == 256
    kernel = lowlp.compile(rows_kernel(spec), "sm_90a")
    assert kernel.spilled_bytes == 0 and kernel.resources.registers <= 80
    numbers = division.chunks * division.vector
    # Loads of x are 16 bytes each, and all begin before the first is used.
    assert len(re.findall(r"ld\.global[.\w]*\.v4\.b32", kernel.ptx)) == numbers // 8 * (3 if spec.norm else 1)
    body = [line for line in kernel.ptx.splitlines() if re.match(r"\s+(@%p\d+ )?[a-z][\w.]+\s", line)]
    assert len(body) / numbers < most
    # One scale, its inverse, and with a norm three more quotients and roots.
    assert len(re.findall(r"\b(div|rcp|sqrt)\.", kernel.ptx)) <= (5 if spec.norm else 2)
