"""N and K of the products in the layers of ten models, derived from what their `config.json` says.

A layer has four products: merged q, k and v; o, of what attention gives; merged gate and up; down. On several GPUs qkv
and gate-up are cut along N, whole heads each, and o and down along K. Heads of keys and values that are fewer than GPUs
are repeated, one for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lowlp.benchmarks.cases import Shape

GPUS: Final = (1, 2, 4, 8)
"""For how many the layers are cut."""

MOST_WEIGHTS: Final = 1 << 30
"""Of a product: torch's copy of them in 16 bits takes 2 GiB. More are never on one GPU."""
_K_MULTIPLE: Final = 16


@dataclass(frozen=True)
class Product:
    """One product of a layer. `name` is 'qkv', 'o', 'gate_up', 'down' or another; `gpus` for how many it is cut."""

    model: str
    name: str
    gpus: int
    shape: Shape

    def __str__(self) -> str:
        return f"{self.model} {self.name}" + (f" / {self.gpus}" if self.gpus > 1 else "")


@dataclass(frozen=True)
class Model:
    """Fields of `config.json`, with the names that they have there.

    source  the repository that the file is in, on huggingface.co
    """

    name: str
    source: str
    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    intermediate_size: int
    head_dim: int = 128

    def products(self, gpus: int) -> Iterator[Product]:
        """The four products, cut for so many GPUs; none where heads cannot be divided among them."""
        heads, pairs = self.num_attention_heads, self.num_key_value_heads
        if heads % gpus or (pairs % gpus and gpus % pairs):
            return
        attention = heads * self.head_dim // gpus
        keys_and_values = 2 * max(1, pairs // gpus) * self.head_dim
        inner = self.intermediate_size // gpus
        for name, n, k in (
            ("qkv", attention + keys_and_values, self.hidden_size),
            ("o", self.hidden_size, attention),
            ("gate_up", 2 * inner, self.hidden_size),
            ("down", self.hidden_size, inner),
        ):
            yield Product(self.name, name, gpus, Shape(n, k))


@dataclass(frozen=True)
class LatentModel:
    """A model whose attention goes through latent vectors (DeepSeek-V2, arXiv 2405.04434, section 2.1): its dense
    products. q_a and kv_a are merged and on every GPU whole; `intermediate_size` is of its dense layers, and
    `shared_size` of the expert that all tokens go through."""

    name: str
    source: str
    hidden_size: int
    num_attention_heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    intermediate_size: int
    shared_size: int

    def products(self, gpus: int) -> Iterator[Product]:
        """Its products, cut for so many GPUs."""
        heads = self.num_attention_heads // gpus
        latent = self.q_lora_rank + self.kv_lora_rank + self.qk_rope_head_dim
        inner, shared = self.intermediate_size // gpus, self.shared_size // gpus
        for name, n, k in (
            *([("q_a and kv_a", latent, self.hidden_size)] if gpus == 1 else []),
            ("q_b", heads * (self.qk_nope_head_dim + self.qk_rope_head_dim), self.q_lora_rank),
            ("kv_b", heads * (self.qk_nope_head_dim + self.v_head_dim), self.kv_lora_rank),
            ("o", self.hidden_size, heads * self.v_head_dim),
            ("gate_up", 2 * inner, self.hidden_size),
            ("down", self.hidden_size, inner),
            ("shared gate_up", 2 * shared, self.hidden_size),
            ("shared down", self.hidden_size, shared),
        ):
            yield Product(self.name, name, gpus, Shape(n, k))


MODELS: Final[tuple[Model | LatentModel, ...]] = (
    Model("Llama 3.1 8B", "meta-llama/Llama-3.1-8B", 4096, 32, 8, 14336),
    Model("Llama 3.1 70B", "meta-llama/Llama-3.1-70B", 8192, 64, 8, 28672),
    Model("Llama 3.1 405B", "meta-llama/Llama-3.1-405B", 16384, 128, 8, 53248),
    Model("Qwen3 8B", "Qwen/Qwen3-8B", 4096, 32, 8, 12288),
    Model("Qwen3 14B", "Qwen/Qwen3-14B", 5120, 40, 8, 17408),
    Model("Qwen3 32B", "Qwen/Qwen3-32B", 5120, 64, 8, 25600),
    Model("Gemma 3 27B", "google/gemma-3-27b-it", 5376, 32, 16, 21504),
    Model("Mistral Small 24B", "mistralai/Mistral-Small-24B-Instruct-2501", 5120, 32, 8, 32768),
    Model("Phi-4", "microsoft/phi-4", 5120, 40, 10, 17920),
    LatentModel("DeepSeek-V3", "deepseek-ai/DeepSeek-V3", 7168, 128, 1536, 512, 128, 64, 128, 18432, 2048),
)


def products() -> Iterator[Product]:
    """All products of all models, cut for all numbers of GPUs."""
    for model in MODELS:
        for gpus in GPUS:
            yield from model.products(gpus)


def shapes() -> dict[Shape, tuple[Product, ...]]:
    """The distinct shapes, ascending, each with the products that have it; those of a K that is no multiple of 16 and
    those of more than `MOST_WEIGHTS` weights are left out."""
    found: dict[Shape, list[Product]] = {}
    for product in products():
        if product.shape.k % _K_MULTIPLE == 0 and product.shape.n * product.shape.k <= MOST_WEIGHTS:
            found.setdefault(product.shape, []).append(product)
    return {shape: tuple(found[shape]) for shape in sorted(found)}
