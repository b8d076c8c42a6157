"""The libraries that lowlp is held against. Each is a small adapter, found where its package can be imported."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Sequence
from typing import Any, Final, Protocol

from lowlp.benchmarks.cases import WeightKind
from lowlp_runtime.errors import LowlpValueError


class PeerProduct(Protocol):
    """A peer's weights, ready to be multiplied."""

    @property
    def detail(self) -> str:
        """What else is to be known of it, or ''."""

    def __call__(self, x: Any) -> Any:
        """y f16 [M, N] of x f16 [M, K], as a user of the library gets it."""

    def dequantized(self) -> Any:
        """The meaning of the weights [N, K], in any float type."""


class Peer(Protocol):
    """An adapter. `package` is what pip calls it, `module` what is imported."""

    name: str
    package: str
    module: str

    def supports(self, kind: WeightKind | None) -> bool:
        """Whether it has such weights; None means f16."""

    def make(self, kind: WeightKind | None, weights: Any, rows: Sequence[int]) -> PeerProduct:
        """Quantises f16 weights [N, K] with the library's own functions, to be multiplied by so many rows."""


NAMES: Final = ("torch", "humming", "gemlite", "bitsandbytes", "aqlm")
"""In the order in which they are measured; each is a module here."""

_MODULES: Final = {
    "torch": "torch_f16",
    "humming": "humming_layer",
    "gemlite": "gemlite_linear",
    "bitsandbytes": "bnb",
    "aqlm": "aqlm_linear",
}
_OF_BOOKS: Final = ("aqlm",)


def parse_peers(text: str) -> tuple[str, ...]:
    """The names in 'torch,humming'; 'all' means all. Raises `LowlpValueError`."""
    if text == "all":
        return NAMES
    names = text.split(",")
    for name in names:
        if name not in NAMES:
            raise LowlpValueError(f"--peers: must be 'all' or among {', '.join(NAMES)}, got {name!r}")
    return tuple(name for name in NAMES if name in names)


def peer(name: str) -> Peer:
    """The adapter of that name. Imports the adapter, not the library."""
    found: Peer = importlib.import_module(f".{_MODULES[name]}", __name__).PEER
    return found


def supports(name: str, kind: WeightKind) -> bool:
    """Whether the peer has such weights; codebooks only those that know them."""
    return not (kind.version or kind.skewed) and (not kind.vectors or name in _OF_BOOKS) and peer(name).supports(kind)


def version(name: str) -> str:
    """The version of the peer's package, or '' where it is not installed."""
    adapter = peer(name)
    if importlib.util.find_spec(adapter.module) is None:
        return ""
    try:
        return importlib.metadata.version(adapter.package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
