"""What a kernel of attention is specialised for, and how its work is divided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from lowlp.errors import LowlpValueError
from lowlp.language.kernel_schedule import CODEBOOKS

HEAD_DIMS: Final = (64, 96, 128, 192, 256)
ACTIVATIONS: Final = ("f16", "bf16")
GROUP: Final = 16
"""Tokens that lie together in a page whatever its size: the rows of a matrix instruction."""
_MOST_COLUMNS_BY_DIM: Final = 2048
"""Columns times channels of a block: 64 registers of a thread hold its accumulators."""


@dataclass(frozen=True)
class CacheType:
    """How the values of a cache are stored.

    name        as users give it
    bits        of a channel
    compute     type of the operands of products
    exponent    a decoded value times 2**exponent, and times its scale, is the value
    largest     code, to which a row's largest magnitude is scaled; 0: there are no scales
    vector      neighbouring channels that a code of 8 bits stands for, by a codebook of their own; 0: none
    """

    name: str
    bits: int
    compute: str
    exponent: int = 0
    largest: float = 0.0
    vector: int = 0

    @property
    def has_offset(self) -> bool:
        """Whether codes are integers, which products take counted from 0."""
        return self.is_coded and self.exponent == 0

    @property
    def is_coded(self) -> bool:
        """Whether each token of each head has scales."""
        return self.largest != 0.0

    def with_books(self, entries: str) -> CacheType:
        """The type with entries of that type in its codebooks, if it has such."""
        return replace(self, compute=entries) if self.vector else self

    def is_staggered(self, head_dim: int) -> bool:
        """Whether codes of a token's row are exchanged as `stagger` says: where the books of a head fit shared
        memory."""
        return self.vector != 0 and head_dim <= STAGGERED_DIM

    @property
    def operand_bits(self) -> int:
        """Bits of a channel as `codes` decodes it: entries of codebooks are operands as they are."""
        return 16 if self.vector else self.bits

    @property
    def alternates(self) -> bool:
        """Whether every other code is decoded to 16 times its value."""
        return self.has_offset and self.bits == 4


ENTRIES: Final = 256
"""Of a codebook."""
STAGGERED_DIM: Final = 128
"""Up to which channels of a head its books take lines of 256 bytes."""
CLASSES: Final = 4
"""Orders of channels of such rows."""
VERSIONS: Final = tuple(name for name in CODEBOOKS if name != "auto")
"""Of VQ-LLM's table IV."""

CACHE_TYPES: Final = {
    kind.name: kind
    for kind in (
        CacheType("f16", 16, "f16"),
        CacheType("bf16", 16, "bf16"),
        CacheType("f8e4m3", 8, "f16", exponent=8, largest=448.0),
        CacheType("int8", 8, "f16", largest=127.0),
        CacheType("int4", 4, "f16", largest=7.0),
        CacheType("cq-4", 4, "f16", vector=2),
        CacheType("cq-2", 2, "f16", vector=4),
    )
}


class OfCache:
    """What a kernel on a cache is specialised for: the name of a cache type, and the type of its codebooks' entries."""

    cache: str
    books: str

    @property
    def kind(self) -> CacheType:
        """How the cache is stored."""
        return CACHE_TYPES[self.cache].with_books(self.books)


@dataclass(frozen=True)
class AttentionSpec(OfCache):
    """What a kernel of `attention_decode` is specialised for; batch, lengths and the width of the table stay open.

    activation  type of the queries and of the result
    cache       name of a cache type
    head_dim, kv_heads, page   of the cache
    group       query heads that share a head of keys and values
    queries     tokens of a sequence that ask, the newest ones
    window, softcap, lse       whether there is one
    sinks       type of the sinks, or ''
    recent      whether the newest tokens of a coded cache are kept in f16
    books       type of the entries of codebooks, in which products are then computed
    ordered     whether groups of channels take these in another order
    """

    activation: str
    cache: str
    head_dim: int
    kv_heads: int
    page: int
    group: int
    queries: int = 1
    window: bool = False
    softcap: bool = False
    sinks: str = ""
    lse: bool = False
    recent: bool = False
    books: str = "f16"
    ordered: bool = False

    @property
    def heads(self) -> int:
        """Heads of queries."""
        return self.kv_heads * self.group

    @property
    def used(self) -> int:
        """Columns of the scores of a head of keys that are there: its query heads of each token."""
        return self.group * self.queries

    @property
    def classes(self) -> int:
        """Columns of each of these, one for each order in which rows of tokens have their channels."""
        return CLASSES if self.kind.is_staggered(self.head_dim) else 1

    @property
    def columns(self) -> int:
        """Columns that a block takes: 8, or a multiple of 16 where registers suffice for that."""
        needed = self.used * self.classes
        unit = 16 if needed > 8 and self.head_dim <= _MOST_COLUMNS_BY_DIM // 16 else 8
        blocks = -(-needed // (_MOST_COLUMNS_BY_DIM // self.head_dim // unit * unit))
        return -(-needed // (unit * blocks)) * unit

    @property
    def column_blocks(self) -> int:
        """Blocks that share a head's columns."""
        return -(-self.used * self.classes // self.columns)

    @property
    def queries_are_rows(self) -> bool:
        """Whether queries are rows of operand A of S = Q K^T, of which they fill 16: weights are then operand A of
        O = P V as they come. Else tokens are, and queries columns; so they are where registers do not suffice."""
        is_crowded = self.recent and self.head_dim == 96 and self.kind.vector == 2
        return self.columns > 8 and not is_crowded


@dataclass(frozen=True)
class AttentionSchedule:
    """How the work of attention is divided.

    warps          of a block, each with tokens of its own
    tokens         that a warp takes at once, a multiple of 16
    keys_ahead     keys are loaded a tile ahead, not with values
    values_ahead   and values too
    blocks_per_sm  for how many blocks at once a multiprocessor has registers, and gets parts
    has_values     False: values are left out, and results are zeros; to find out what limits a kernel
    codebooks      'auto', or a version of VQ-LLM's table IV, for comparisons (`version_schedule`)
    """

    warps: int = 4
    tokens: int = 16
    keys_ahead: bool = False
    values_ahead: bool = False
    blocks_per_sm: int = 2
    has_values: bool = True
    codebooks: str = "auto"

    @property
    def has_version(self) -> bool:
        """Whether books lie in memory one after the other, and where they are kept is up to the version."""
        return self.codebooks != "auto"

    @property
    def keeps_books(self) -> bool:
        """Whether a block takes several sequences of its head."""
        return self.codebooks in ("auto", "o3", "o4")

    @property
    def exchanges(self) -> bool:
        """Whether what is looked up goes through shared memory before products take it."""
        return self.codebooks in ("gc", "sc", "o1", "o2", "o3")

    @property
    def tile(self) -> int:
        """Tokens that a block takes at once."""
        return self.warps * self.tokens


def takers_of(spec: AttentionSpec, schedule: AttentionSchedule, batch: int, blocks: int) -> int:
    """How many blocks take the sequences of a head in turn, where so many blocks run at once: a block keeps the
    codebooks of its head."""
    heads = spec.column_blocks * spec.kv_heads
    return batch if batch * heads <= blocks or not schedule.keeps_books else max(1, blocks // heads)


def default_schedule(spec: AttentionSpec) -> AttentionSchedule:
    """What was fastest on an H200 with heads of 64 to 128 channels; with more, what two blocks have registers for."""
    if spec.kind.vector:
        # One block has the shared memory: books take 128 KiB of a head of 128 channels.
        if spec.classes == 1:
            return AttentionSchedule(warps=8 if spec.head_dim <= 128 else 4, tokens=GROUP, blocks_per_sm=1)
        if spec.queries_are_rows:
            is_pair_of_few = spec.kind.vector == 2 and spec.column_blocks == 1
            if spec.head_dim > 96 and (spec.recent or is_pair_of_few):
                return AttentionSchedule(warps=8, tokens=GROUP, keys_ahead=True, values_ahead=True, blocks_per_sm=1)
            all_ahead = spec.head_dim <= 64 and spec.kind.vector == 4
            return AttentionSchedule(
                warps=8, tokens=2 * GROUP, keys_ahead=True, values_ahead=all_ahead, blocks_per_sm=1
            )
        # Registers, too, for codes of the next tile.
        ahead = spec.columns == 8 or spec.queries == 1
        tokens = 2 * GROUP if spec.columns == 8 and not spec.recent else GROUP
        return AttentionSchedule(warps=8, tokens=tokens, keys_ahead=ahead, values_ahead=ahead, blocks_per_sm=1)
    if spec.queries_are_rows and (spec.kind.is_coded or spec.head_dim <= 64):
        return AttentionSchedule(warps=4, tokens=2 * GROUP, keys_ahead=True, values_ahead=True)
    if spec.head_dim > 128:
        return AttentionSchedule(warps=4, tokens=GROUP)
    if not spec.kind.is_coded:
        return AttentionSchedule(warps=8, tokens=GROUP, keys_ahead=True, blocks_per_sm=1)
    if spec.recent:
        # Values of f16 need more registers, too.
        return AttentionSchedule(warps=8, tokens=GROUP)
    if spec.kind.bits == 8 and spec.kind.has_offset:
        return AttentionSchedule(warps=8, tokens=2 * GROUP, keys_ahead=True, values_ahead=True, blocks_per_sm=1)
    return AttentionSchedule(warps=8, tokens=2 * GROUP)


def version_schedule(spec: AttentionSpec, version: str) -> AttentionSchedule:
    """The schedule of a version of VQ-LLM's table IV, 'gc' to 'o4', of attention over codebooks whose codes are
    staggered, each with one optimisation more than the one before:

        gc  all entries in global memory           o2  + the most frequent entries in registers
        sc  all entries in shared memory           o3  + dataflow by books: a block keeps those of its head
        o1  those that fit, the most frequent      o4  + fusion in registers: entries are operands as they are

    Books lie one after the other, in one copy, and nothing is loaded ahead; ours is what `default_schedule` chooses.
    Frequencies are not known, so o2 has what o1 has. Four warps leave shared memory for both books and for what goes
    through it; two blocks of gc share a multiprocessor. Raises `LowlpValueError` for another name, or another cache.
    """
    if version not in VERSIONS:
        raise LowlpValueError(f"version: must be one of {', '.join(VERSIONS)}, got {version!r}")
    if spec.classes == 1:
        raise LowlpValueError(f"version: takes codebooks of up to {STAGGERED_DIM} channels, got {spec}")
    return AttentionSchedule(warps=4, tokens=GROUP, blocks_per_sm=2 if version == "gc" else 1, codebooks=version)
