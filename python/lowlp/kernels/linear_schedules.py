"""Which schedule a kernel for `linear` takes.

`candidates` are the schedules that fit a GPU, `estimated_us` says what each would take, and `schedule_for` chooses:
what was measured for the nearest shape (`tuned/*.json`, which `lowlp tune` writes), else the best by estimate.

All M of 1 to 16 take one division of the work, of which only the columns of a tile and the depth of the pipeline
differ: so a row's sums are added in one order, whatever the other rows are.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..dtypes import dtype
from ..errors import LowlpValueError
from ..language.control_flow import MAX_STAGES
from ..targets import target
from .linear_operands import NUMPY_TYPES
from .linear_shares import FEW_IDLE, shared_tiles
from .linear_spec import ROW_TILES, WARPS, LinearSpec, Schedule
from .linear_streaming import can_stream
from .linear_wide import can_go_wide, tiles_of_warp

CLASSES: Final = (16, 32, 64, 128, 256, 1024)
"""The largest M of each class of M that has a division of the work of its own; more rows take several tiles."""

_FEW: Final = 16
"""Up to so many rows, columns follow M and nothing else does."""
_COLUMNS: Final = (8, 16, 32, 64, 128)
"""Of a product; blocks of many rows take several side by side, or several one after the other."""
_STREAMED_COLUMNS: Final = 32
"""The most columns of a tile without warpgroups."""
_LEAST_FILLED: Final = 0.45
"""Of the blocks that could be resident, where each has a tile of its own."""
_SLICES: Final = (1, 2, 4, 8, 16)
_MOST_PAIRED_BITS: Final = 6
_MOST_STAGES: Final = (1 << 31) - 1
_STREAMED_STAGES: Final = 3
"""Without warpgroups: memory answers no sooner where more is asked for at once (docs/adr/0021)."""
_LARGE_RING_BYTES: Final = 160 * 1024
_LONG_STREAM_BYTES: Final = 100e6

_TUNED = Path(__file__).parent / "tuned"
# How far, in factors of two of N and K together, a measured shape may be away.
_FAR: Final = 2.5


@dataclass(frozen=True)
class Device:
    """What estimates know of a GPU: an H200 (its ceilings as measured by `lowlp bench`)."""

    multiprocessors: int = 132
    bytes_per_us: float = 4.2e6
    cycles_per_us: float = 1750.0
    tensor_tflops: float = 700.0
    shared_bytes: int = 227 * 1024
    launch_us: float = 5.7


H200: Final = Device()


def device_like(arch: str) -> Device:
    """An H200 with as much shared memory as the architecture has."""
    return dataclasses.replace(H200, shared_bytes=target(arch).max_shared_bytes_per_block)


def class_of(m: int) -> int:
    """The class that m rows fall into."""
    return next((rows for rows in CLASSES if m <= rows), CLASSES[-1])


def schedule_for(spec: LinearSpec, m: int, arch: str = "sm_90a", batch_invariant: bool = False) -> Schedule:
    """The schedule for m rows of x on an architecture.

    batch_invariant  one division of the work for all m, in which no tile is shared: a row's sums are always added in
                     the order that they have alone
    """
    rows = _FEW if batch_invariant else class_of(m)
    found = _measured(spec, rows, arch) or _best(spec, rows, arch)
    if not found:
        return _plain(spec, m)
    if batch_invariant:
        found = dataclasses.replace(found, share_tiles=False)
    return for_rows(spec, found, min(m, _FEW) if batch_invariant else m, arch)


def for_rows(spec: LinearSpec, division: Schedule, m: int, arch: str = "sm_90a") -> Schedule:
    """A division of the work with the columns that m rows need, and as many stages as fit."""
    widest = division.columns if division.warpgroups else _STREAMED_COLUMNS
    columns = next((columns for columns in _COLUMNS if m <= columns), widest)
    device = device_like(arch)
    if columns < _FEW:
        # As many blocks share the work as for more rows, so that sums are the same.
        blocks = fitted(spec, dataclasses.replace(division, columns=_FEW), device).blocks_per_sm
        division = dataclasses.replace(division, blocks_per_sm=blocks)
    return fitted(spec, dataclasses.replace(division, columns=min(columns, widest)), device)


def _plain(spec: LinearSpec, m: int) -> Schedule:
    """Of a kernel without stages: as few columns as hold m rows, and as many warps as have units."""
    units = -(-spec.columns_of_y // spec.rows_of_unit)
    columns = next((columns for columns in (8, 16) if m <= columns), 32)
    return Schedule(columns, max(warps for warps in (1, 2, 4) if warps <= units))


# --- what fits --------------------------------------------------------------------------------------------------------


def stage_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Bytes of shared memory that a stage takes: weights, x, scales, zero points."""
    groups = -(-schedule.stage_k // spec.group_size)
    if not schedule.warpgroups:
        groups = max(1, schedule.step_k // spec.group_size) * schedule.steps
    weights = schedule.rows * schedule.stage_k * spec.bits // 8
    x = schedule.columns_of_block * schedule.stage_k * 2
    scales = groups * max(128 * schedule.row_tiles, schedule.rows * NUMPY_TYPES[spec.scale].itemsize)
    return weights + x + scales * (2 if spec.corrector else 1)


def other_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Bytes of shared memory beside the stages: of exchanges at the end of a tile, of tables and barriers."""
    exchange = schedule.rows * schedule.columns * 4 * schedule.slices if schedule.slices > 1 else 0
    if schedule.warpgroups:
        element = max(NUMPY_TYPES[kind].itemsize for kind in (spec.out, spec.residual) if kind)
        rows_of_part = 64 * schedule.warpgroups * tiles_of_warp(spec, schedule)
        exchange = rows_of_part * (schedule.columns * element + 8)
    table = table_bytes(spec, schedule)
    if table and not schedule.warpgroups:
        # A stage more took up to 1 us longer with 8 columns, and saved 0.6 us at most with 16 (H200).
        table = max(table, 48 * 1024)
    return exchange + table + 2048


def table_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """The most bytes of shared memory that `lowlp-vectorize-lookups` takes for the table of a tensor, in copies: of
    pairs, 4 bytes for each two codes; or of entries; or the plain table."""
    if spec.table != "tensor":
        return 0
    plain, copies = 2 << spec.bits, schedule.table_copies
    pairs = 4 << 2 * spec.bits if spec.bits <= _MOST_PAIRED_BITS and schedule.table_form in ("auto", "pair") else 0
    if copies:
        return plain + max(pairs, plain) * copies
    # Where it chooses, it takes no more than a power of two that 48 KiB hold.
    return plain + min(32 * max(pairs, plain), 32 * 1024)


def _stages_that_fit(spec: LinearSpec, schedule: Schedule, device: Device) -> int:
    """How many stages fit beside the other blocks of an SM."""
    room = device.shared_bytes // schedule.blocks_per_sm - 1024 - other_bytes(spec, schedule)
    return min(MAX_STAGES - 1, room // stage_bytes(spec, schedule))


def _useful_stages(spec: LinearSpec, schedule: Schedule) -> int:
    """The most stages that are of use: with few rows of x, a ring of 160 KB keeps memory busy."""
    if schedule.warpgroups:
        return MAX_STAGES - 1
    ring_bytes = _STREAMED_STAGES * stage_bytes(spec, schedule) * schedule.blocks_per_sm
    is_large = ring_bytes > _LARGE_RING_BYTES and _weight_bytes(spec) > _LONG_STREAM_BYTES
    return _STREAMED_STAGES - is_large


def fitted(spec: LinearSpec, schedule: Schedule, device: Device = H200) -> Schedule:
    """The schedule with as many stages as fit and are of use, with fewer blocks on an SM where not even two do."""
    for blocks in range(schedule.blocks_per_sm, 0, -1):
        fewer = dataclasses.replace(schedule, blocks_per_sm=blocks)
        stages = _stages_that_fit(spec, fewer, device)
        if stages >= 2 or blocks == 1:
            return dataclasses.replace(fewer, stages=max(2, min(stages, _useful_stages(spec, fewer))))
    raise AssertionError("unreachable")


def _registers(spec: LinearSpec, schedule: Schedule) -> int:
    """An estimate of what a thread needs: sums of a tile and of a group, fragments, words."""
    if schedule.warpgroups:
        on_sums = schedule.scales_on == "sums"
        sums = schedule.row_tiles * schedule.columns_of_block // 2 * (2 if on_sums else 1)
        if spec.table:
            # Entries under way beside products: of large units and short products, or where both tiles of sums live.
            large = spec.rows_of_unit > 16 and schedule.columns <= 64
            sums += 60 if large else 26 if on_sums else 0
        return 28 + sums + 8 * schedule.under_way + spec.bits + schedule.columns // 2 * _ending(spec)
    sums = schedule.row_tiles * schedule.columns // 2
    return 24 + 2 * sums + schedule.columns + schedule.row_tiles * (4 + spec.bits // 2)


def _ending(spec: LinearSpec) -> int:
    """How many numbers beside each of its sums a thread needs to finish a tile, where it has them all at once."""
    return (spec.products - 1) + bool(spec.residual) + {"gelu": 4, "gelu_tanh": 1}.get(spec.epilogue, 0)


def _copies_rows(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether tensor copies can bring a stage's scales and zero points: 256 at once, or pieces of 128 bytes."""
    sizes = [NUMPY_TYPES[kind].itemsize for kind in (spec.scale, spec.corrector) if kind]
    rows = schedule.rows // spec.products
    return schedule.warpgroups > 0 or rows <= 256 or all(rows * size % 128 == 0 for size in sizes)


def _fits(spec: LinearSpec, schedule: Schedule, device: Device) -> bool:
    if not _copies_rows(spec, schedule):
        return False
    if schedule.exchanges_registers:
        most = {1: 240, 2: 232, 3: 152, 4: 104}[schedule.warpgroups]
    else:
        # Registers are given to four warps at a time.
        threads = -(-(schedule.threads + (32 if schedule.producer else 0)) // 128) * 128 * schedule.blocks_per_sm
        most = min(232, 64 * 1024 // threads)
    least = 2 if schedule.stage_k >= (128 if schedule.columns_of_block >= 128 else 256) else 3
    return _registers(spec, schedule) <= most and _stages_that_fit(spec, schedule, device) >= least


def candidates(spec: LinearSpec, rows: int, arch: str = "sm_90a") -> Iterator[Schedule]:
    """The schedules for up to `rows` rows of x, a number of `CLASSES`, that fit the architecture."""
    device = device_like(arch)
    drafts = _streamed(spec, rows, device)
    if rows > _FEW and target(arch).instructions["wgmma.mma_async"]:
        drafts = itertools.chain(drafts, _wide(spec, rows), _wide_by_units(spec, rows))
    for draft in drafts:
        is_small = draft.rows <= max(64, spec.n) and draft.stage_k <= spec.k
        if is_small and (can_go_wide if draft.warpgroups else can_stream)(spec, draft) and _fits(spec, draft, device):
            yield fitted(spec, draft, device)


def _streamed(spec: LinearSpec, rows: int, device: Device) -> Iterator[Schedule]:
    """Divisions into tiles that are each one block's, all resident at once; and into tiles that blocks share."""
    columns = min(rows, _STREAMED_COLUMNS)
    unit_rows = spec.products * max(16, spec.rows_of_unit)
    for blocks_per_sm in (1, 2, 3):
        # As few rows as leave no tile for a second wave.
        resident = device.multiprocessors * blocks_per_sm
        tile_rows = -(-spec.n // (resident * unit_rows)) * unit_rows
        if -(-spec.n // tile_rows) < _LEAST_FILLED * resident and (tile_rows > unit_rows or blocks_per_sm > 1):
            continue
        for warps, slices, units, steps in itertools.product(WARPS, _SLICES, (1, 2), (1, 2)):
            row_tiles = tile_rows // (16 * warps)
            fits = row_tiles in ROW_TILES and row_tiles * 16 * warps == tile_rows
            if fits and warps * slices >= 4 and 6 <= warps * slices * blocks_per_sm <= 16:
                whole = Schedule(
                    columns=columns,
                    warps=warps,
                    stages=2,
                    row_tiles=row_tiles,
                    slices=slices,
                    units=units,
                    steps=steps,
                    blocks_per_sm=blocks_per_sm,
                    share_tiles=False,
                )
                if columns > _FEW and not _fits(spec, whole, device):
                    # Two warps for each scheduler have the registers of three.
                    whole = dataclasses.replace(whole, producer=False)
                yield whole
    divisions = itertools.product((1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 8), (1, 2), (1, 2, 3))
    for warps, row_tiles, slices, units, blocks_per_sm in divisions:
        if warps * slices >= 4 and 8 <= warps * slices * blocks_per_sm <= 16:
            yield Schedule(
                columns=columns,
                warps=warps,
                stages=2,
                row_tiles=row_tiles * spec.products,
                slices=slices,
                units=units,
                blocks_per_sm=blocks_per_sm,
            )


def _wide(spec: LinearSpec, rows: int) -> Iterator[Schedule]:
    """Few rows of x are one tile of columns; many take several, whose blocks have an SM and a producer each."""
    if rows < 128:
        columns_of_block, forms = [(rows, 1)], itertools.product((2, 4), (True, False), (1, 2))
    else:
        columns_of_block = [(64, 1), (128, 1), (128, 2)]
        if _ending(spec):
            columns_of_block += [(64, 2), (64, 4)]
        forms = itertools.product((1, 2, 4, 8), (True,), (1,))
    divisions = itertools.product((2, 3, 4), (1, 2, 4), ("sums", "weights"), forms, columns_of_block)
    for warpgroups, row_tiles, scales_on, (steps, producer, blocks), (columns, column_tiles) in divisions:
        yield Schedule(
            columns=columns,
            stages=2,
            warpgroups=warpgroups,
            row_tiles=row_tiles * spec.products,
            steps=steps,
            scales_on=scales_on,
            producer=producer,
            blocks_per_sm=blocks,
            column_tiles=column_tiles,
        )


def _wide_by_units(spec: LinearSpec, rows: int) -> Iterator[Schedule]:
    """Where a unit has 64 rows: each warp has all of them, so that two warpgroups fill the registers."""
    if spec.rows_of_unit < 64 or rows > 64:
        return
    # The sums of 64 columns leave no room for a second tile of them, nor for what copies need.
    forms = (("sums", True), ("sums", False), ("weights", True)) if rows == 32 else (("weights", True),)
    for steps, (scales_on, producer) in itertools.product((2, 4), forms):
        yield Schedule(
            columns=rows,
            stages=2,
            warpgroups=2,
            row_tiles=4 * spec.products,
            steps=steps,
            scales_on=scales_on,
            producer=producer,
            under_way=1 if scales_on == "sums" else 2,
        )


# --- what it takes ----------------------------------------------------------------------------------------------------

# Instructions of the ALU for two weights (docs/decode-plans.md), by bits; tables take a lookup.
_DECODE: Final = {1: 1.1, 2: 1.15, 3: 1.35, 4: 1.3, 5: 1.9, 6: 1.9, 7: 2.2, 8: 1.1}


def _tiles(spec: LinearSpec, schedule: Schedule, m: int) -> int:
    """How many tiles y has for m rows of x."""
    return -(-m // schedule.columns_of_block) * -(-spec.n // schedule.rows)


def _weight_bytes(spec: LinearSpec) -> float:
    """Of the codes, and of scales and zero points as numbers of 16 bits."""
    return spec.n * spec.k * spec.bits / 8 + spec.n * spec.groups * 2 * (2 if spec.corrector else 1)


def blocks_for(spec: LinearSpec, schedule: Schedule, m: int, multiprocessors: int) -> int:
    """How many blocks share the work: as many as are resident; or one for each tile, where these come close, so that
    none is shared; or a few less, by which tiles are cut into equal parts, so that no block has parts of two. Raises
    `LowlpValueError` where kernels, which count stages in 31 bits, cannot count them all."""
    tiles = _tiles(spec, schedule, m)
    stages = tiles * -(-spec.k // schedule.stage_k)
    if stages > _MOST_STAGES:
        raise LowlpValueError(
            f"x: {m} rows are too many for weights of {spec.n} x {spec.k}, {stages} stages of at most {_MOST_STAGES}; "
            "multiply them in parts"
        )
    if not schedule.share_tiles:
        return tiles
    resident = multiprocessors * schedule.blocks_per_sm
    # Where shares begin is a product of both.
    most = max(1, _MOST_STAGES // max(1, stages))
    if 3 * resident <= 4 * tiles <= 4 * min(resident, most):
        return tiles
    even = resident // max(1, tiles) * tiles
    if FEW_IDLE * (resident - even) <= resident:
        resident = even
    return min(stages, resident, most)


def estimated_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device = H200) -> float:
    """What the kernel would take, in microseconds, from cold caches."""
    if schedule.warpgroups:
        return (_estimated_wide_us if m <= 64 else _estimated_us_of_many)(spec, schedule, m, device)
    tiles, stages_of_tile = _tiles(spec, schedule, m), -(-spec.k // schedule.stage_k)
    blocks = blocks_for(spec, schedule, m, device.multiprocessors)
    blocks_of_sm = math.ceil(blocks / device.multiprocessors)
    at_once = min(schedule.blocks_per_sm, blocks_of_sm)
    stages = math.ceil(tiles * stages_of_tile / blocks) * math.ceil(blocks_of_sm / at_once)

    memory = _weight_bytes(spec) / device.bytes_per_us

    # Cycles that a warp keeps its quarter of an SM busy in a stage: with fragments of 16 x 16 weights, and with sums.
    sums_of_x = 1 / schedule.row_tiles if _has_offset(spec) else 0
    decode = 4 * _DECODE[spec.bits] + (8 if spec.table else 0)
    product = 7.7 if schedule.columns <= 16 else 5.8
    fragment = product * schedule.columns / 8 * (1 + sums_of_x) + 1.5 * decode
    scaled = schedule.row_tiles * schedule.columns / 2 * max(1, schedule.units * schedule.steps // 2)
    cycles = schedule.row_tiles * 4 * schedule.units * schedule.steps * fragment + 0.7 * scaled
    warps_of_quarter = math.ceil(schedule.warps * schedule.slices * at_once / 4)
    compute = stages * max(warps_of_quarter * cycles, 200 + 1.6 * cycles) / device.cycles_per_us

    are_shared = schedule.share_tiles and (tiles * stages_of_tile % blocks != 0 or tiles % blocks != 0)
    # They overlap the better, the more one of them outweighs the other.
    both = float((memory**4.6 + compute**4.6) ** (1 / 4.6))
    return device.launch_us + both + (3.2 if are_shared else 0.0)


def _has_offset(spec: LinearSpec) -> bool:
    """Whether products with ones put sums right: what is stored of signed integers has an offset, but for one bit."""
    if spec.corrector or spec.is_bipolar:
        return True
    is_signed = not spec.table and dtype(spec.weight).is_integer and not spec.weight.startswith("uint")
    return is_signed and spec.bits > 1


def _estimated_wide_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Of a kernel by warpgroups: the tensor cores of an SM make products one after the other, and wait while weights
    are decoded; coefficients fit what an H200 took."""
    tiles_of_rows, tiles_of_columns = -(-spec.n // schedule.rows), -(-m // schedule.columns)
    weight_bytes = _weight_bytes(spec) * tiles_of_columns
    x_bytes = tiles_of_rows * tiles_of_columns * schedule.columns * spec.k * 2 * 0.3
    memory = (weight_bytes + x_bytes + 4 * m * spec.n) / device.bytes_per_us

    decode = _DECODE[spec.bits] + (3 if spec.table else 0)
    on_weights = schedule.scales_on == "weights"
    if 16 * tiles_of_warp(spec, schedule) < spec.rows_of_unit:
        # A word that warps share is rotated, for four registers of one tile.
        decode += 0.25
    cycles = schedule.columns / 2 + 11 * decode + (7 if on_weights else 3) + (0 if schedule.producer else 4)
    blocks = blocks_for(spec, schedule, m, device.multiprocessors)
    stages = tiles_of_rows * tiles_of_columns * -(-spec.k // schedule.stage_k)
    stages_of_sm = math.ceil(stages / blocks) * math.ceil(blocks / device.multiprocessors)
    products = stages_of_sm * 4 * schedule.steps * schedule.row_tiles * schedule.warpgroups
    compute = (products * cycles + 100 * stages_of_sm) / device.cycles_per_us
    ending = 4.8 if stages % blocks or tiles_of_rows * tiles_of_columns % blocks else 2.3
    return device.launch_us + max(memory, compute) + 0.15 * min(memory, compute) + ending


def _estimated_us_of_many(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Of a kernel by warpgroups for many rows of x, as an H200 took it (ADR 0020): stage by stage, products, and most
    of the decoding, which is waited for at the end of each; then what shared tiles cost."""
    rows, columns, stage_k = schedule.rows, schedule.columns_of_block, schedule.stage_k
    tiles, stages_of_tile = _tiles(spec, schedule, m), -(-spec.k // stage_k)
    blocks = blocks_for(spec, schedule, m, device.multiprocessors)
    shared = shared_tiles(tiles, blocks) if schedule.share_tiles else 0
    stages = math.ceil(shared * stages_of_tile / blocks) + math.ceil((tiles - shared) / blocks) * stages_of_tile

    products = rows * columns * stage_k / 2048
    decode = _DECODE[spec.bits] + (3 if spec.table else 0) + (1.5 if schedule.scales_on == "weights" else 0.5)
    decoding = rows * stage_k / 2 * (decode + 1.2) / 100
    if schedule.scales_on == "sums":
        decoding += rows * columns / 100 * -(-stage_k // spec.group_size)
    cycles = max(products + 350 + 1.1 * decoding, 1.3 * decoding, stage_bytes(spec, schedule) / 40)
    compute = stages * cycles / device.cycles_per_us

    memory = (_weight_bytes(spec) + 2 * m * spec.k + 2 * m * spec.n) / device.bytes_per_us
    ending = (
        2.0 + rows * columns / 30000 + (2.0 + 3 * rows * columns / 32768 * max(1, blocks / shared) if shared else 0)
    )
    return device.launch_us + max(compute, memory) + ending


@functools.lru_cache(maxsize=4096)
def _best(spec: LinearSpec, rows: int, arch: str) -> Schedule | None:
    """The candidate that is best by estimate; None where there is none. Small and full numbers of rows count alike."""
    shapes = (1, rows) if rows == _FEW else (rows,)

    def cost(schedule: Schedule) -> float:
        return sum(estimated_us(spec, schedule, m) for m in shapes)

    return min(candidates(spec, rows, arch), key=cost, default=None)


# --- what was measured ------------------------------------------------------------------------------------------------


@functools.cache
def _tables() -> list[dict[str, Any]]:
    return [entry for path in sorted(_TUNED.glob("*.json")) for entry in json.loads(path.read_text())["entries"]]


def kind_of(spec: LinearSpec) -> str:
    """What a measurement is valid for beside the shape: the type of weights, or its bits of a table, and the group."""
    correction = "z" if spec.corrector else ""
    return f"{spec.weight}{correction} g{spec.group_size if spec.groups > 1 else 0} {spec.activation}"


def fills(spec: LinearSpec, schedule: Schedule, rows: int) -> bool:
    """Whether the tiles that are each one block's come to about one for each block that could be resident."""
    resident = H200.multiprocessors * schedule.blocks_per_sm
    return schedule.share_tiles or _LEAST_FILLED * resident <= _tiles(spec, schedule, rows) <= resident


def _of_entry(spec: LinearSpec, entry: dict[str, Any], arch: str) -> Schedule | None:
    """The schedule of an entry of a table, if it is of this architecture and of use for such weights."""
    if entry["arch"] != arch:
        return None
    measured = Schedule(**{"columns": min(entry["m"], _COLUMNS[-1]), **entry["schedule"]})
    schedule = _for_products(spec, measured, entry["m"], arch)
    return schedule if schedule and schedule.stage_k <= spec.k and fills(spec, schedule, entry["m"]) else None


@functools.lru_cache(maxsize=4096)
def _measured(spec: LinearSpec, rows: int, arch: str) -> Schedule | None:
    """The schedule of the nearest shape that was measured for such weights; None where none is near."""
    best, distance = None, _FAR
    for entry in _tables():
        if entry["kind"] != kind_of(spec) or entry["m"] != rows:
            continue
        far = abs(math.log2(entry["n"] / spec.n)) + abs(math.log2(entry["k"] / spec.k))
        if far < distance and (schedule := _of_entry(spec, entry, arch)):
            best, distance = schedule, far
    return best


def measured_for_shape(spec: LinearSpec, rows: int, arch: str = "sm_90a") -> Iterator[Schedule]:
    """What was measured for this shape and up to `rows` rows of x, a number of `CLASSES`: for such weights, and for
    others where it fits these."""
    for entry in _tables():
        if (entry["n"], entry["k"], entry["m"]) != (spec.n, spec.k, rows):
            continue
        if schedule := _of_entry(spec, entry, arch):
            division = for_rows(spec, schedule, rows, arch)
            if entry["kind"] == kind_of(spec) or _fits(spec, division, device_like(arch)):
                yield division


def _for_products(spec: LinearSpec, measured: Schedule, rows: int, arch: str) -> Schedule | None:
    """What was measured for one product without an epilogue and up to `rows` rows of x, if there is a program. Gate and
    up may need as many rows each as one product had; then, and where finishing a tile takes registers, tiles are
    narrower, stages as long, or half as long, with a producer or without, as it fits."""

    def has_program(schedule: Schedule) -> bool:
        return (can_go_wide if schedule.warpgroups else can_stream)(spec, schedule)

    def fits(schedule: Schedule) -> bool:
        return has_program(schedule) and _fits(spec, for_rows(spec, schedule, rows, arch), device_like(arch))

    ends_at_once = measured.warpgroups and _ending(spec) > spec.products - 1
    if has_program(measured) and (not ends_at_once or fits(measured)):
        return measured
    if spec.products == 1 and not ends_at_once:
        return None
    columns, tiles = measured.columns, measured.column_tiles
    widths = [(columns, tiles), (columns, 1), *([(64, 2 * tiles), (64, tiles)] if columns == 128 else [])]
    choices = itertools.product(
        sorted({measured.row_tiles, spec.products * measured.row_tiles}),
        widths,
        (measured.producer, False),
        (measured.steps, measured.steps // 2),
    )
    for row_tiles, (columns, tiles), producer, steps in choices:
        if steps and row_tiles in ROW_TILES:
            other = dataclasses.replace(
                measured, row_tiles=row_tiles, columns=columns, column_tiles=tiles, steps=steps, producer=producer
            )
            if fits(other):
                return other
    return None
