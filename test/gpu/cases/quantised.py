"""Products of quantised activations: by planes of bits, by bytes of integers, and by 8-bit floats."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

import lowlp
from cases.case import Case
from cases.linears import MULTIPROCESSORS
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import PlaneSchedule
from lowlp.kernels.linear.planes.streams import StreamSchedule
from lowlp.kernels.linear.planes.warpgroups import WarpgroupSchedule
from lowlp.kernels.linear.schedule import Schedule

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from plane_products import Operands, kernel_of, wrapped
from quantized_products import activations, weights

K = 512
FEW = Schedule(16, stages=3, warps=2, row_tiles=2, slices=4, steps=1)
MANY = Schedule(64, stages=3, warpgroups=2, row_tiles=1, steps=2)
TURNS = Schedule(128, stages=3, warpgroups=2, row_tiles=1, steps=2)
BYTES = (
    ("int4", "int8", -1, FEW, 9),
    ("int4", "int8", 128, FEW, 16),
    ("bipolar1", "int8", -1, Schedule(32, stages=3, warpgroups=1, row_tiles=4, steps=2, share_tiles=False), 40),
    ("int8", "int8", -1, Schedule(64, stages=3, warpgroups=2, row_tiles=1, steps=2, column_tiles=2), 130),
    ("int4", "int8", -1, Schedule(32, stages=3, warpgroups=1, row_tiles=1, steps=2, cluster=2), 33),
    ("int4", "int8", 128, MANY, 70),
    # Words are loaded ahead of two products; warpgroups take turns.
    ("int2", "int8", 128, MANY, 64),
    ("int2", "int8", 128, TURNS, 130),
    ("f8e4m3", "f8e4m3", 128, TURNS, 130),
    ("f8e4m3", "f8e4m3", -1, MANY, 70),
)
"""Weights, type of x, group, schedule, rows."""
PLANES: tuple[tuple[str, str, PlaneSchedule, int], ...] = (
    ("int2", "uint2", StreamSchedule(), 3),
    ("bipolar1", "bipolar1", WarpgroupSchedule(columns=64), 70),
    ("int2", "int2", WarpgroupSchedule(columns=48, column_tiles=2), 100),
    ("int2", "uint3", WarpgroupSchedule(columns=32, blocks=MULTIPROCESSORS), 100),
)
"""Weights, type of x, schedule, rows."""


def bytes_case(weight: str, activation: str, group: int, schedule: Schedule, m: int, arch: str) -> Case:
    n = 200
    if activation == "int8":
        xq = activations(activation, m, K)
        scales = np.random.default_rng(2).uniform(0.5, 2.0, (n, 1 if group < 0 else K // group)).astype(np.float16)
        qw = weights(weight, n, K, group, scales=scales)
    else:
        rng = np.random.default_rng(3)
        xq = lowlp.quantize_activations(rng.standard_normal((m, K), np.float32), activation)
        w = rng.standard_normal((n, K), np.float32)
        qw = lowlp.quantize(w, weight, group, zero_point=False, activation=activation)
    spec = spec_for(qw, activation, "f32", aligned=True, x_scale="token")
    product = product_of(spec, schedule)
    given = {
        "x": np.asarray(xq.codes).view(np.uint8 if activation != "int8" else np.int8),
        "x_scales": np.asarray(xq.scales).reshape(-1),
        "x_sums": np.asarray(xq.sums).reshape(-1),
        "y": np.zeros((m, n), np.float32),
        **product.launch_numbers(m, K, None, MULTIPROCESSORS),
    }
    taken = {
        role: value for role, value in given.items() if role not in ("x_sums", "x_scales") or product.operand(role)
    }
    values = {**host_operands(qw, activation, "", schedule), **product.by_name(taken)}
    wanted = (np.asarray(xq.dequantize(), np.float64) @ qw.dequantize().astype(np.float64).T).astype(np.float32)
    name = f"bytes_{weight}_{activation}_g{max(group, 0)}_{m}_{schedule.columns}"
    tolerance = 1e-6 if activation == "int8" else 5e-3
    return Case(name, lowlp.compile(linear_kernel(spec, schedule), arch), values, "y", wanted, tolerance)


def planes_case(weight: str, activation: str, schedule: PlaneSchedule, m: int, arch: str) -> Case:
    spec = PlanesSpec(200, 1024, weight, activation)
    operands = Operands.make(np.random.default_rng(m), spec, m)
    arguments = {
        name: part.view(np.int32) if part.dtype == np.uint32 else part
        for name, part in ((name, np.array(part)) for name, part in operands.arguments(spec).items())
    }
    kernel = lowlp.compile(kernel_of(spec, schedule), arch)
    values = {**arguments, "y": np.zeros((m, spec.n), np.int32), "m": m}
    facts = {"schedule": asdict(schedule)}
    return Case(f"planes_{weight}_{activation}_{m}", kernel, values, "y", wrapped(operands.acc), 0.0, facts)


def cases(arch: str) -> Iterator[Case]:
    """By every form of schedules."""
    for weight, activation, group, schedule, m in BYTES:
        yield bytes_case(weight, activation, group, schedule, m, arch)
    for weight, activation, plane_schedule, m in PLANES:
        yield planes_case(weight, activation, plane_schedule, m, arch)
