"""What a kernel of `linear` multiplies, as its description carries it: enough to launch it by `kernel(x, qw)`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.operands import Operand
from lowlp_runtime.tiles import Tiles

T = TypeVar("T")

_ONCE = ("x", "packed", "scales", "y", "m", "x_stride")


@dataclass(frozen=True)
class Product:
    """y = epilogue(x @ w^T + bias) + residual, with w quantised weights [N, K].

    n, k        the shape of the weights
    code        type of the codes, 'int6' for example; 'lut4' for indices of tables
    group_size  weights of a row that share a scale
    family      the compute type that the packed words are placed for: 'f16', 'bf16'
    operands    in the order of the kernel's parameters
    rows        the least and the largest number of rows of x that the kernel is meant for; None: any
    epilogue    what is done with accumulators and bias; '' without
    tiles       how blocks share the work; None: the grid says it
    super_group_size  weights of a row that share a super-scale; None for scales of one level
    vector_order  the kernel before it, which makes its x, puts that in an order of vectors of so many weights
                  (`lowlp_runtime.vector_order`), which where blocks come at once that kernel alone knows; None: it
                  takes x as it is, or in the order of the weights

    Raises `LowlpTypeError` and `LowlpValueError` for anything else.
    """

    n: int
    k: int
    code: str
    group_size: int
    family: str
    operands: tuple[Operand, ...]
    rows: tuple[int, int] | None = None
    epilogue: str = ""
    tiles: Tiles | None = None
    super_group_size: int | None = None
    vector_order: int | None = None

    def __post_init__(self) -> None:
        optional = [name for name in ("super_group_size", "vector_order") if getattr(self, name) is not None]
        sizes = ("n", "k", "group_size", *optional)
        for name in sizes:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise LowlpValueError(f"product: {name} must be a positive int, got {value!r:.40}")
        for name in ("code", "family", "epilogue"):
            if not isinstance(getattr(self, name), str):
                raise LowlpTypeError(f"product: {name} must be text, got {getattr(self, name)!r:.40}")
        operands = tuple(self.operands)
        if not all(isinstance(operand, Operand) for operand in operands):
            raise LowlpTypeError("product: operands must be a sequence of Operand")
        roles = [operand.role for operand in operands]
        for role in roles:
            if roles.count(role) > 1:
                raise LowlpValueError(f"product: {roles.count(role)} operands have the role {role!r}")
        for role, is_wanted in (*((role, True) for role in _ONCE), ("blocks", self.tiles is not None)):
            if is_wanted and role not in roles:
                raise LowlpValueError(f"product: no operand has the role {role!r}")
        if self.rows is not None:
            object.__setattr__(self, "rows", _range(self.rows))
        object.__setattr__(self, "operands", operands)

    def operand(self, role: str) -> Operand | None:
        """The operand of this role, or None."""
        return next((operand for operand in self.operands if operand.role == role), None)

    @property
    def rows_in_words(self) -> str:
        """Of x: '1 to 16', or 'any'."""
        return "any" if self.rows is None else f"{self.rows[0]} to {self.rows[1]}"

    def required(self, role: str) -> Operand:
        """The operand of a role that the kernel is known to have. Raises `LowlpValueError` where it has none."""
        found = self.operand(role)
        if found is None:
            raise LowlpValueError(f"product: no operand has the role {role!r}")
        return found

    def of_source(self, source: str) -> tuple[Operand, ...]:
        """The operands that a launch takes from there, in order."""
        return tuple(operand for operand in self.operands if operand.source == source)

    def by_name(self, values: Mapping[str, T]) -> dict[str, T]:
        """Values by role as arguments by name. Raises `LowlpValueError` for a role that the kernel has not."""
        names = {operand.role: operand.name for operand in self.operands}
        unknown = [role for role in values if role not in names]
        if unknown:
            raise LowlpValueError(f"operands: the kernel has no {unknown[0]!r}; it has {', '.join(names)}")
        return {names[role]: value for role, value in values.items()}

    def launch_numbers(
        self, m: int, x_stride: int, residual_stride: int | None, multiprocessors: int
    ) -> dict[str, int]:
        """The numbers of a launch by role, those that the kernel takes.

        m                          rows of x
        x_stride, residual_stride  from row to row, in elements; None without a residual
        multiprocessors            of the GPU, among which blocks share the work
        """
        numbers = {"m": m, "x_stride": x_stride}
        if residual_stride is not None:
            numbers["residual_stride"] = residual_stride
        if self.tiles is not None:
            numbers["blocks"] = self.tiles.blocks(m, multiprocessors)
        return numbers

    def to_json(self) -> dict[str, object]:
        """As JSON; `from_json` is its inverse."""
        return {
            **vars(self),
            "operands": [operand.to_json() for operand in self.operands],
            "rows": list(self.rows) if self.rows else None,
            "tiles": self.tiles.to_json() if self.tiles else None,
        }

    @staticmethod
    def from_json(data: object) -> "Product":
        """The product that `to_json` wrote. Raises `LowlpTypeError` and `LowlpValueError` for anything else."""
        if isinstance(data, dict):
            # Kernels that were saved before there were super-scales, and orders, do not say that they have none.
            data = {"super_group_size": None, "vector_order": None, **data}
        fields = _fields(data, Product, "product")
        listed = fields.pop("operands")
        if not isinstance(listed, list):
            raise LowlpTypeError(f"product: operands must be a list, got {listed!r:.40}")
        operands = tuple(Operand(**_fields(entry, Operand, "operand")) for entry in listed)
        tiles = fields.pop("tiles")
        if tiles is not None:
            # Left out where no block copies for another.
            tiles = {"multicast": 1, **tiles} if isinstance(tiles, dict) else tiles
            tiles = Tiles(**_fields(tiles, Tiles, "tiles"))
        return Product(operands=operands, tiles=tiles, **fields)


def _range(rows: object) -> tuple[int, int]:
    if isinstance(rows, list | tuple) and len(rows) == 2:
        least, largest = rows
        if type(least) is type(largest) is int and 0 <= least <= largest:
            return least, largest
    raise LowlpValueError(f"product: rows must be two ints, 0 <= least <= largest, got {rows!r:.40}")


def _fields(data: object, kind: Any, what: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise LowlpTypeError(f"{what}: expected an object, got {type(data).__name__}")
    wrong = sorted(map(str, set(data) ^ set(kind.__dataclass_fields__)))
    if wrong:
        raise LowlpValueError(f"{what}: missing or unknown fields: {', '.join(wrong)}")
    return dict(data)
