"""How many blocks of a kernel with stages share the tiles of its result (Stream-K)."""

from dataclasses import asdict, dataclass
from typing import Final

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

FEW_IDLE: Final = 16
"""One in so many blocks may be idle on average, rather than that tiles are shared, or that a block has parts of two."""
_MOST_STAGES: Final = (1 << 31) - 1


class TooManyRowsError(LowlpValueError):
    """More rows of x than a kernel can count the stages of; `reason` says it without the name of an argument."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"x: {reason}; multiply them in parts")
        self.reason: Final = reason


@dataclass(frozen=True)
class Tiles:
    """The tiles of a result, and how blocks take them.

    columns         rows of x of a tile
    rows_of_tiles   tiles that lie one above the other along N
    stages          of a tile, along K
    blocks_per_sm   as which the work is divided
    cluster         of so many blocks that have a tile together
    has_tile_each   each tile is one block's, or one cluster's
    multicast       so many blocks with tiles one above the other copy for each other: they count as one block, and
                    their tiles as one

    Raises `LowlpTypeError` and `LowlpValueError` for what are no such numbers.
    """

    columns: int
    rows_of_tiles: int
    stages: int
    blocks_per_sm: int = 1
    cluster: int = 1
    has_tile_each: bool = False
    multicast: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            wanted = bool if name == "has_tile_each" else int
            if type(value) is not wanted:
                raise LowlpTypeError(f"tiles: {name} must be a {wanted.__name__}, got {value!r:.40}")
            if value < 1 and wanted is int:
                raise LowlpValueError(f"tiles: {name} must be positive, got {value}")

    def count(self, m: int) -> int:
        """How many tiles there are for m rows of x."""
        return -(-m // self.columns) * self.rows_of_tiles

    def blocks(self, m: int, multiprocessors: int) -> int:
        """How many blocks share the work, see `blocks_that_share`."""
        tiles = self.count(m)
        resident = multiprocessors * self.blocks_per_sm // self.multicast
        return blocks_that_share(m, tiles, tiles * self.stages, resident, self.cluster, self.has_tile_each)

    def to_json(self) -> dict[str, object]:
        """As JSON, the inverse of `Tiles(**data)`; without `multicast` where it is 1, as saved kernels have it that are
        older than it."""
        data = asdict(self)
        if self.multicast == 1:
            del data["multicast"]
        return data


def blocks_that_share(m: int, tiles: int, stages: int, resident: int, cluster: int, has_tile_each: bool) -> int:
    """How many blocks share all stages of all tiles, for m rows of x.

    As many as are resident; or one for each tile, where these come close, so that none is shared; or a few less, by
    which tiles are cut into equal parts, so that no block has parts of two. Where tiles are not shared, or there are
    clusters: exactly one block, or cluster, for each tile. Raises `TooManyRowsError` where kernels, which count stages
    in 31 bits, cannot count them all."""
    if max(stages, tiles * cluster) > _MOST_STAGES:
        raise TooManyRowsError(f"{m} rows are too many, {stages} stages of at most {_MOST_STAGES}")
    if has_tile_each:
        return tiles
    # Where shares begin is a product of both.
    most = max(1, _MOST_STAGES // max(1, stages))
    if 3 * resident <= 4 * tiles <= 4 * min(resident, most):
        return tiles
    even = resident // max(1, tiles) * tiles
    if FEW_IDLE * (resident - even) <= resident:
        resident = even
    return min(stages, resident, most)
