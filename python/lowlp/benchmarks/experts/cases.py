"""What `lowlp bench --experts` measures: models, their two products, kinds of weights, tokens, and how these choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lowlp.benchmarks.floor import READ_BYTES_PER_S
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp_runtime.errors import LowlpValueError


@dataclass(frozen=True)
class Model:
    """Experts of a model, of which a token takes `top`; x has `hidden` columns, and gate and up have `inner` rows."""

    name: str
    experts: int
    top: int
    hidden: int
    inner: int

    def shape(self, product: str) -> tuple[int, int]:
        """N and K of a product, one of `PRODUCTS`."""
        return (2 * self.inner, self.hidden) if product == "gate_up" else (self.hidden, self.inner)


MODELS: Final = {
    model.name: model
    for model in (
        Model("gpt-oss-120b", 128, 4, 2880, 2880),
        Model("qwen3-30b-a3b", 128, 8, 2048, 768),
        Model("deepseek-v3", 256, 8, 7168, 2048),
    )
}
PRODUCTS: Final = ("gate_up", "down")
KINDS: Final = ("mxfp4", "int4")
TOKENS: Final = (1, 16, 64, 256, 1024, 4096)
QUICK_TOKENS: Final = (1, 64, 4096)
ROUTINGS: Final = ("uniform", "zipf")
_INT4_GROUPS: Final = (128, 64)


@dataclass(frozen=True)
class Case:
    """One product: its model, which product, the kind of weights, tokens, and how they choose."""

    model: str
    product: str
    kind: str
    tokens: int
    routing: str

    @property
    def of(self) -> Model:
        """The model."""
        return MODELS[self.model]

    @property
    def rows(self) -> int:
        """Of x: M."""
        return self.tokens * self.of.top

    @property
    def codec(self) -> Codec:
        """Of the weights; int4 has groups of 128, or of 64 where those do not divide K."""
        if self.kind == "mxfp4":
            return Codec.parse("f4e2m1 g32 e8m0")
        k = self.of.shape(self.product)[1]
        return Codec.parse(f"int4 g{next(group for group in _INT4_GROUPS if k % group == 0)} f16")

    @property
    def spec(self) -> LinearSpec:
        """Of the kernels."""
        n, k = self.of.shape(self.product)
        return LinearSpec(n=n, k=k, codec=self.codec, aligned=True, experts=self.of.experts, dependent_launch=True)

    def rows_of_experts(self) -> NDArray[np.int64]:
        """How many rows each expert has, the first the most; each token has `top` experts, none of them twice."""
        rng = np.random.default_rng(self.tokens)
        experts, weights = self.of.experts, np.ones(self.of.experts)
        if self.routing == "zipf":
            weights = 1 / rng.permutation(np.arange(1, experts + 1))
        # The largest of logarithms with Gumbel's noise are draws without putting back.
        noise = rng.gumbel(size=(self.tokens, experts)) + np.log(weights)
        chosen = np.argpartition(-noise, self.of.top - 1, axis=1)[:, : self.of.top]
        counts = np.bincount(chosen.ravel(), minlength=experts)
        fullest = int(counts.argmax())
        counts[[0, fullest]] = counts[[fullest, 0]]
        return counts

    def floor_us(self, read_bytes_per_s: float = READ_BYTES_PER_S) -> float:
        """Microseconds to read the weights of the experts that have rows."""
        n, k = self.of.shape(self.product)
        hit = int((self.rows_of_experts() > 0).sum())
        scale_bytes = 1 if self.kind == "mxfp4" else 2
        group = self.codec.group
        assert isinstance(group, int)
        return hit * n * (k * self.codec.bits // 8 + k // group * scale_bytes) / read_bytes_per_s * 1e6

    def __str__(self) -> str:
        return f"{self.model} {self.product} {self.kind}, {self.tokens} tokens, {self.routing}"


def cases_of(models: tuple[str, ...], kinds: tuple[str, ...], tokens: tuple[int, ...]) -> list[Case]:
    """All of them, those with the same weights side by side."""
    return [
        Case(model, product, kind, count, routing)
        for model in models
        for product in PRODUCTS
        for kind in kinds
        for routing in ROUTINGS
        for count in tokens
    ]


def parse_names(text: str, among: tuple[str, ...], option: str) -> tuple[str, ...]:
    """Names with commas between. Raises `LowlpValueError` for others than those `among` which they may be."""
    names = tuple(text.split(","))
    for name in names:
        if name not in among:
            raise LowlpValueError(f"{option}: must be among {', '.join(among)} with --experts, got {name!r:.40}")
    return names
