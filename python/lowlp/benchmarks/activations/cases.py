"""What is measured of products with quantised activations: pairs of types, shapes, rows, paths, and peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lowlp.benchmarks.cases import GROUP_SIZE, Shape, WeightKind
from lowlp_runtime.errors import LowlpValueError

FAMILIES: Final = {"planes": "b1", "s8": "s8", "fp8": "e4m3", "f16": "f16"}
"""Paths of ours, and the families of words that they take."""
PATHS: Final = tuple(FAMILIES)
SUPER_GROUP: Final = "channel"


@dataclass(frozen=True)
class Weights:
    """Quantised weights.

    name     as results name them: 'int4', 'int2 g128', 'int4 g128 uint4'
    dtype    type of the codes
    bits     of a code
    group    weights of a row that share a scale; 0: all of them
    scale    type of the scales: 'f16', or an integer type where each row has a second scale of f16
    numbers  the numbers that are drawn, where these are not all of the type
    """

    name: str
    dtype: str
    bits: int
    group: int = 0
    scale: str = "f16"
    numbers: tuple[float, ...] = ()

    @property
    def has_levels(self) -> bool:
        """Whether integer scales of groups have a second one for the row."""
        return self.scale != "f16"

    def kind_for(self, path: str) -> WeightKind:
        """As the bench of `linear` describes them, packed in the family of a path."""
        family = FAMILIES[path]
        return WeightKind(
            f"{self.name} {family}", self.dtype, self.bits, group=self.group, scale=self.scale, activation=family
        )


@dataclass(frozen=True)
class ActivationKind:
    """Weights times quantised activations.

    name        as the command line and results name it
    title       as tables name it
    weights     what is multiplied
    activation  type of x: 'int8', 'bipolar1', 'f8e4m3'
    bits        of its codes
    paths       of ours that take them
    """

    name: str
    title: str
    weights: Weights
    activation: str
    bits: int
    paths: tuple[str, ...]

    @property
    def element(self) -> str:
        """What the codes of x are stored as."""
        if self.activation.startswith("f8"):
            return self.activation
        return "uint8" if self.is_bipolar else "int8"

    @property
    def is_bipolar(self) -> bool:
        """Whether codes u of x stand for 2 u - (2^b - 1)."""
        return self.activation.startswith("bipolar")

    def kernel_kind(self, path: str) -> str:
        """What entries of prepared kernels are found by: kinds with the same kernels share them."""
        name = self.weights.kind_for(path).name
        if path == "planes":
            return f"{name} {self.activation}"
        return f"{name} bipolar{self.bits}" if path == "s8" and self.is_bipolar else name


def _weights(bits: int, group: int = 0) -> Weights:
    return Weights(f"int{bits}" + (f" g{group}" if group else ""), f"int{bits}", bits, group)


def _kind(p: int, q: int, group: int = 0) -> ActivationKind:
    weights = Weights("bipolar1", "bipolar1", 1) if (p, group) == (1, 0) else _weights(p, group)
    paths = ("s8", "f16") if group or p * q > 16 else ("planes", "s8", "f16")
    title = f"W{p}A{q}" + (f" g{group}" if group else "")
    return ActivationKind(f"w{p}a{q}", title, weights, f"int{q}" if q > 1 else "bipolar1", q, paths)


_TERNARY: Final = Weights("ternary g128", "int2", 2, GROUP_SIZE, numbers=(-1.0, 0.0, 1.0))
_LEVELS: Final = Weights("int4 g128 uint4", "int4", 4, GROUP_SIZE, "uint4")
_E2M1: Final = Weights("f4e2m1", "f4e2m1", 4)
_E4M3: Final = Weights("f8e4m3", "f8e4m3", 8)
_BYTES: Final = ("s8", "f16")
_FLOATS: Final = ("fp8", "f16")

KINDS: Final = {
    kind.name: kind
    for kind in (
        *(_kind(p, q) for p, q in ((1, 1), (1, 2), (2, 2), (2, 4), (3, 3), (3, 4), (4, 4))),
        _kind(1, 8, GROUP_SIZE),
        _kind(2, 8, GROUP_SIZE),
        ActivationKind("ternary", "ternary A8 g128", _TERNARY, "int8", 8, _BYTES),
        ActivationKind("w4a8", "W4A8 int8", _weights(4), "int8", 8, _BYTES),
        ActivationKind("w4a8-levels", "W4A8 int8, integer g128", _LEVELS, "int8", 8, _BYTES),
        ActivationKind("w4a8-fp8", "W4A8 fp8", _E2M1, "f8e4m3", 8, _FLOATS),
        ActivationKind("w4a8-fp8-int", "W4A8 fp8, int4 g128", _weights(4, GROUP_SIZE), "f8e4m3", 8, _FLOATS),
        ActivationKind("w8a8", "W8A8 int8", _weights(8), "int8", 8, _BYTES),
        ActivationKind("w8a8-fp8", "W8A8 fp8", _E4M3, "f8e4m3", 8, _FLOATS),
    )
}
"""By name, in the order in which they are measured."""

SHAPES: Final = tuple(Shape(n, k) for n, k in ((57344, 8192), (8192, 8192), (8192, 28672), (4096, 4096)))
ROWS: Final = (1, 16, 64, 256, 1024, 4096)
QUICK_SHAPES: Final = (SHAPES[1], SHAPES[3])
QUICK_ROWS: Final = (1, 64, 1024)

HUMMING: Final = ("humming int8", "humming f8e4m3")
"""By the activations that it quantised."""
TORCH: Final = "torch"
INT_MM: Final = "torch int_mm"
SCALED_MM: Final = "torch scaled_mm"
PEERS: Final = (TORCH, INT_MM, SCALED_MM, *HUMMING)
LIBRARIES: Final = ("torch", "humming")
"""What is to be installed for peers, of whose name it is the first word."""
OURS: Final = "lowlp"


def who(path: str) -> str:
    """What rows of a path of ours are by."""
    return f"{OURS} {path}"


def parse_kinds(text: str) -> tuple[ActivationKind, ...]:
    """The kinds named in 'w1a1,w4a8'. Raises `LowlpValueError`."""
    names = text.split(",")
    for name in names:
        if name not in KINDS:
            raise LowlpValueError(f"--types: must be among {', '.join(KINDS)} with --activations, got {name!r:.40}")
    return tuple(KINDS[name] for name in dict.fromkeys(names))


def parse_peers(text: str | None) -> tuple[str, ...]:
    """Those of the libraries named in 'torch,humming'; None: none; 'all': all. Raises `LowlpValueError`."""
    if text is None:
        return ()
    libraries = LIBRARIES if text == "all" else tuple(text.split(","))
    for library in libraries:
        if library not in LIBRARIES:
            raise LowlpValueError(f"--peers: must be among {', '.join(LIBRARIES)} with --activations, got {library!r}")
    return tuple(peer for peer in PEERS if peer.split()[0] in libraries)
