"""The frozen description of a kernel: all that a launch needs to know besides the machine code."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lowlp_runtime import grid as grids
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.product import Product
from lowlp_runtime.resources import Resources
from lowlp_runtime.tensor_map import TensorMap
from lowlp_runtime.workspace import WorkspaceLayout, WorkspacePart, lay_out

FORMAT_VERSION = 2
PACKED_FORMAT_VERSION = 5  # of the packed weights that kernels read (docs/packed-format.md)

INTEGER_KINDS = {"i32": 32, "i64": 64}
_SLOT_FORMATS = {"pointer": "Q", "i32": "q", "i64": "q", "f32": "f4x", "f64": "d"}
KINDS = tuple(_SLOT_FORMATS)

# PTX ISA, "Identifiers": a letter followed by letters, digits, _ and $; or one of _ $ % and at least one of those.
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$%][A-Za-z0-9_$]+")
_PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ELEMENT = re.compile(r"[a-z][a-z0-9]*")
_MAX_THREADS = (1024, 1024, 64)
# What the JSON of a description leaves out where a kernel has none.
_ABSENT: Mapping[str, object] = {
    "workspace": [],
    "tensor_maps": [],
    "dependent_launch": False,
    "packed_format": None,
    "product": None,
    "resources": [],
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, in the order of its signature.

    name             an identifier; how errors and keyword arguments call it
    kind             'pointer', 'i32', 'i64', 'f32' or 'f64'
    element          of a pointer: what it points to ('f16', 'bf16', 'u8', ...); '' for a scalar
    alignment_bytes  of a pointer: the kernel's loads need the address to be a multiple of this power of two
    writable         of a pointer: the kernel writes through it
    divisible_by     of an integer: the kernel needs it to be a multiple of this

    Raises `LowlpValueError` for anything else.
    """

    name: str
    kind: str
    element: str = ""
    alignment_bytes: int = 1
    writable: bool = False
    divisible_by: int = 1

    def __post_init__(self) -> None:
        _expect(self, name=str, kind=str, element=str, alignment_bytes=int, writable=bool, divisible_by=int)
        if not _PARAMETER_NAME.fullmatch(self.name):
            raise LowlpValueError(f"parameter name: expected an identifier, got {self.name!r}")
        if self.kind not in KINDS:
            raise LowlpValueError(
                f"parameter {self.name!r}: kind {self.kind!r} is unknown; allowed: {', '.join(KINDS)}"
            )
        if self.is_pointer != bool(_ELEMENT.fullmatch(self.element)):
            allowed = "the name of an element type such as 'f16'" if self.is_pointer else "'' (it is no pointer)"
            raise LowlpValueError(f"parameter {self.name!r}: element must be {allowed}, got {self.element!r}")
        if self.alignment_bytes < 1 or self.alignment_bytes & (self.alignment_bytes - 1):
            raise LowlpValueError(
                f"parameter {self.name!r}: alignment_bytes must be a power of two, got {self.alignment_bytes}"
            )

        if self.divisible_by < 1 or (self.divisible_by > 1 and not self.is_integer):
            raise LowlpValueError(
                f"parameter {self.name!r}: divisible_by must be positive, and on an integer, got {self.divisible_by}"
            )

    @property
    def is_pointer(self) -> bool:
        return self.kind == "pointer"

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_KINDS

    @property
    def slot_format(self) -> str:
        """For `struct`: an argument in 8 bytes, its value in the low ones (of a little-endian host)."""
        return _SLOT_FORMATS[self.kind]


@dataclass(frozen=True)
class KernelDescription:
    """What a launch needs to know of a kernel.

    name              the entry point in PTX and cubin
    parameters        in the order of the signature
    grid              blocks in x, y, z: three expressions over the integer parameters (see `lowlp_runtime.grid`)
    block             threads in x, y, z
    shared_bytes      dynamic shared memory of a block
    workspace         what the blocks of a launch share beside the arguments; where there is some, the kernel takes the
                      pointer to it after its parameters (see `lowlp_runtime.workspace`)
    compiler_version  free text: what made the kernel
    notes             JSON of any form under string keys: the plan, the report. Not part of the hash.
    tensor_maps       what the kernel receives after its parameters, made by a launch
    dependent_launch  the kernel may start before the one in front of it ends, since it waits for that one by itself
                      (see `lowlp_runtime.dependent_launch`)
    packed_format     the version of the packed format in which the kernel reads weights; None: it reads none
    product           what a kernel of `linear` multiplies, with the role of each parameter; None for other kernels
    resources         what the machine code takes, one entry for each architecture that was assembled
    format_version    of the saved file, `FORMAT_VERSION`

    Lists are taken where tuples are declared. Raises `LowlpValueError` or `LowlpTypeError` for what CUDA or the file
    format cannot hold.
    """

    name: str
    parameters: tuple[Parameter, ...]
    grid: grids.Grid
    block: tuple[int, int, int]
    shared_bytes: int = 0
    workspace: tuple[WorkspacePart, ...] = ()
    compiler_version: str = ""
    notes: Mapping[str, object] = field(default_factory=dict, hash=False)
    tensor_maps: tuple[TensorMap, ...] = ()
    dependent_launch: bool = False
    packed_format: int | None = None
    product: Product | None = None
    resources: tuple[Resources, ...] = ()
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        _expect(self, name=str, shared_bytes=int, compiler_version=str, format_version=int, dependent_launch=bool)
        if self.format_version != FORMAT_VERSION:
            raise LowlpValueError(f"format_version: must be {FORMAT_VERSION}, got {self.format_version}")
        if not _IDENTIFIER.fullmatch(self.name):
            raise LowlpValueError(f"name: expected a PTX identifier, got {self.name!r}")
        if not 0 <= self.shared_bytes < 2**31:
            raise LowlpValueError(f"shared_bytes: must be in 0..2**31-1, got {self.shared_bytes}")
        object.__setattr__(self, "parameters", _parameters(self.parameters))
        object.__setattr__(self, "block", _block(self.block))
        object.__setattr__(self, "grid", _grid(self.grid, self.parameters))
        object.__setattr__(self, "workspace", _workspace(self.workspace, self.parameters))
        object.__setattr__(self, "notes", _notes(self.notes))
        object.__setattr__(self, "tensor_maps", _tensor_maps(self.tensor_maps, self.parameters))
        object.__setattr__(self, "resources", _resources(self.resources))
        if self.packed_format is not None and type(self.packed_format) is not int:
            raise LowlpTypeError(f"packed_format: expected None or an int, got {self.packed_format!r:.40}")
        if self.product is not None:
            _check_product(self.product, self.parameters)

    def require_product(self) -> Product:
        """What the kernel multiplies. Raises `LowlpTypeError` for a kernel that is none of `linear`."""
        if self.product is None:
            parameters = ", ".join(parameter.name for parameter in self.parameters)
            raise LowlpTypeError(
                f"kernel {self.name!r} is none of `linear`; launch it with its arguments, {self.name}({parameters})"
            )
        return self.product

    def resources_of(self, arch: str) -> Resources | None:
        """What the machine code for an architecture takes; None where the assembler did not say."""
        return next((found for found in self.resources if found.arch == arch), None)

    def evaluate_grid(self, values: Mapping[str, int]) -> tuple[int, int, int]:
        """Blocks in x, y, z for these integer arguments, by name; names that the grid does not read are ignored.

        Any zero means that a launch has nothing to do. Raises `LowlpValueError` for a missing value, a divisor that is
        not positive, and a size outside what CUDA allows.
        """
        return grids.evaluate_grid(self.grid, values)

    def lay_out_workspace(self, values: Mapping[str, int]) -> WorkspaceLayout:
        """Where the parts of the workspace lie for these integer arguments, by name.

        Raises `LowlpValueError` for a missing value, a divisor that is not positive, and a negative size.
        """
        return lay_out(self.workspace, values)

    def shape_parameters(self) -> set[str]:
        """Names of the parameters that decide grid, workspace and tensor maps; what the others are changes none."""
        expressions = [*self.grid, *(part.size_bytes for part in self.workspace)]
        for tensor_map in self.tensor_maps:
            expressions += [*tensor_map.extents, *tensor_map.strides]
        return {name for expression in expressions for name in grids.parameters_of(expression)}

    def to_json(self) -> dict[str, object]:
        """The description as JSON; `from_json` is its inverse. Tensor maps, dependent launch, the packed format, the
        product and resources are fields only of kernels that have them."""
        tensor_maps = [tensor_map.to_json() for tensor_map in self.tensor_maps]
        return {
            "name": self.name,
            "parameters": [
                {
                    "name": p.name,
                    "kind": p.kind,
                    "element": p.element,
                    "alignment_bytes": p.alignment_bytes,
                    "writable": p.writable,
                    "divisible_by": p.divisible_by,
                }
                for p in self.parameters
            ],
            "grid": [grids.thaw(expression) for expression in self.grid],
            "block": list(self.block),
            "shared_bytes": self.shared_bytes,
            "workspace": [
                {"name": part.name, "size_bytes": grids.thaw(part.size_bytes), "zeroed": part.zeroed}
                for part in self.workspace
            ],
            "compiler_version": self.compiler_version,
            "notes": dict(self.notes),
            "format_version": self.format_version,
            **({"tensor_maps": tensor_maps} if tensor_maps else {}),
            **({"dependent_launch": True} if self.dependent_launch else {}),
            **({"packed_format": self.packed_format} if self.packed_format is not None else {}),
            **({"product": self.product.to_json()} if self.product else {}),
            **({"resources": [entry.to_json() for entry in self.resources]} if self.resources else {}),
        }

    @staticmethod
    def from_json(data: object) -> "KernelDescription":
        """The description that `to_json` wrote. Raises `LowlpValueError` or `LowlpTypeError` for anything else."""
        if isinstance(data, dict):
            data = {**_ABSENT, **data}
        fields = _exact_keys(data, "description", set(KernelDescription.__dataclass_fields__))
        listed = fields.pop("parameters")
        if not isinstance(listed, list):
            raise LowlpTypeError(f"parameters: expected a list, got {type(listed).__name__}")
        allowed = set(Parameter.__dataclass_fields__)
        entries = [_exact_keys(entry, "parameter", allowed) for entry in listed]
        parameters = tuple(Parameter(**entry) for entry in entries)  # type: ignore[arg-type]
        parts = _entries(fields.pop("workspace"), "workspace", set(WorkspacePart.__dataclass_fields__))
        maps = _entries(fields.pop("tensor_maps"), "tensor_maps", set(TensorMap.__dataclass_fields__))
        resources = _entries(fields.pop("resources"), "resources", set(Resources.__dataclass_fields__))
        product = fields.pop("product")
        return KernelDescription(
            parameters=parameters,
            workspace=tuple(WorkspacePart(**part) for part in parts),  # type: ignore[arg-type]
            tensor_maps=tuple(TensorMap(**entry) for entry in maps),  # type: ignore[arg-type]
            resources=tuple(Resources(**entry) for entry in resources),  # type: ignore[arg-type]
            product=None if product is None else Product.from_json(product),
            **fields,  # type: ignore[arg-type]
        )


def _expect(owner: object, **types: type) -> None:
    for name, wanted in types.items():
        value = getattr(owner, name)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise LowlpTypeError(f"{name}: expected {wanted.__name__}, got {value!r}")


def _exact_keys(data: object, what: str, allowed: set[str]) -> dict[str, object]:
    if not isinstance(data, dict):
        raise LowlpTypeError(f"{what}: expected an object, got {type(data).__name__}")
    if set(data) != allowed:
        wrong = ", ".join(sorted(map(str, set(data) ^ allowed)))
        raise LowlpValueError(f"{what}: missing or unknown fields: {wrong}")
    return dict(data)


def _parameters(parameters: object) -> tuple[Parameter, ...]:
    if not isinstance(parameters, Sequence) or not all(isinstance(p, Parameter) for p in parameters):
        raise LowlpTypeError(f"parameters: expected a sequence of Parameter, got {parameters!r}")
    for name, times in Counter(p.name for p in parameters).items():
        if times > 1:
            raise LowlpValueError(f"parameters: the name {name!r} occurs {times} times")
    return tuple(parameters)


def _three(what: str, value: object) -> tuple[object, object, object]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise LowlpTypeError(f"{what}: expected three entries (x, y, z), got {value!r}")
    return value[0], value[1], value[2]


def _block(block: object) -> tuple[int, int, int]:
    threads = []
    for axis, count, bound in zip("xyz", _three("block", block), _MAX_THREADS, strict=True):
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= bound:
            raise LowlpValueError(f"block: threads in {axis} must be in 1..{bound}, got {count!r}")
        threads.append(count)
    x, y, z = threads
    if x * y * z > 1024:
        raise LowlpValueError(f"block: at most 1024 threads, got {x} * {y} * {z} = {x * y * z}")
    return x, y, z


def _grid(grid: object, parameters: tuple[Parameter, ...]) -> grids.Grid:
    x, y, z = (grids.freeze(expression) for expression in _three("grid", grid))
    for expression in (x, y, z):
        _check_names("grid", expression, parameters)
    return x, y, z


def _entries(listed: object, name: str, keys: set[str]) -> list[dict[str, object]]:
    if not isinstance(listed, list):
        raise LowlpTypeError(f"{name}: expected a list, got {type(listed).__name__}")
    return [_exact_keys(entry, name, keys) for entry in listed]


def _workspace(parts: object, parameters: tuple[Parameter, ...]) -> tuple[WorkspacePart, ...]:
    if not isinstance(parts, Sequence) or not all(isinstance(part, WorkspacePart) for part in parts):
        raise LowlpTypeError(f"workspace: expected a sequence of WorkspacePart, got {parts!r}")
    for part in parts:
        _check_names("workspace", part.size_bytes, parameters)
    return tuple(parts)


def _tensor_maps(maps: object, parameters: tuple[Parameter, ...]) -> tuple[TensorMap, ...]:
    if not isinstance(maps, Sequence) or not all(isinstance(entry, TensorMap) for entry in maps):
        raise LowlpTypeError(f"tensor_maps: expected a sequence of TensorMap, got {maps!r}")
    pointers = [p.name for p in parameters if p.is_pointer]
    for entry in maps:
        if entry.parameter not in pointers:
            raise LowlpValueError(f"tensor_maps: {entry.parameter!r} is no pointer; pointers: {', '.join(pointers)}")
        for expression in (*entry.extents, *entry.strides):
            _check_names("tensor_maps", expression, parameters)
    return tuple(maps)


def _resources(resources: object) -> tuple[Resources, ...]:
    if not isinstance(resources, Sequence) or not all(isinstance(entry, Resources) for entry in resources):
        raise LowlpTypeError(f"resources: expected a sequence of Resources, got {resources!r:.200}")
    archs = [entry.arch for entry in resources]
    for arch in archs:
        if archs.count(arch) > 1:
            raise LowlpValueError(f"resources: {arch} occurs {archs.count(arch)} times")
    return tuple(resources)


def _check_product(product: object, parameters: tuple[Parameter, ...]) -> None:
    """A product's operands are the parameters: by name, in order, arrays where these are pointers."""
    if not isinstance(product, Product):
        raise LowlpTypeError(f"product: expected None or a Product, got {type(product).__name__}")
    operands = [(operand.name, operand.is_array) for operand in product.operands]
    if operands != [(p.name, p.is_pointer) for p in parameters]:
        named, found = (", ".join(entry.name for entry in entries) for entries in (product.operands, parameters))
        raise LowlpValueError(f"product: its operands are {named}, and the kernel's parameters are {found}")


def _check_names(what: str, expression: grids.GridExpression, parameters: tuple[Parameter, ...]) -> None:
    integers = {p.name for p in parameters if p.is_integer}
    for name in grids.parameters_of(expression):
        if name not in integers:
            allowed = ", ".join(sorted(integers)) or "none"
            raise LowlpValueError(f"{what}: {name!r} is no integer parameter; integer parameters: {allowed}")


def _notes(notes: object) -> dict[str, object]:
    if not isinstance(notes, Mapping) or not all(isinstance(key, str) for key in notes):
        raise LowlpTypeError("notes: expected a mapping with string keys")
    try:
        copied = json.loads(json.dumps(dict(notes), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise LowlpValueError(f"notes: not JSON: {error}") from error
    assert isinstance(copied, dict)
    return copied
