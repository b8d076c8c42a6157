"""`QuantizedCache`: keys and values of a model of transformers in caches of lowlp, and the attention over them.

    model.set_attn_implementation("lowlp")
    cache = lowlp.transformers.QuantizedCache(model.config, "int8", max_tokens=4096)
    model.generate(**inputs, past_key_values=cache)

Each layer's tokens are quantised as they come, and `lowlp.attention_decode` reads them where they are. Attention to a
prompt sees its own keys and values as they are, by PyTorch. Of a step where the kernel cannot be used - on a CPU, with
padding - PyTorch computes on the dequantised cache, and a warning says why, once for each reason.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any, Final

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache, CacheLayerMixin
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from lowlp.errors import frames_to_user
from lowlp.ops.attention import attention_decode
from lowlp.ops.kv_append import kv_append
from lowlp.ops.kv_cache import KVCache
from lowlp_runtime.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError

NAME: Final = "lowlp"
"""Of the attention, for `attn_implementation`."""
_MOST_NEW_TOKENS: Final = 16
_LAYER: Final = "_lowlp_layer"


class FallbackWarning(UserWarning):
    """Attention is computed by PyTorch, on a dequantised cache, and why."""


class QuantizedLayer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer, in a `lowlp.KVCache` that is made for the first ones.

    dtype, codebooks, recent  as `lowlp.KVCache` takes them
    max_tokens   of a sequence
    page         tokens of a page
    window       how many tokens attention sees, itself included; None: all
    """

    is_compileable = False
    is_croppable = False

    def __init__(
        self, config: Any, dtype: str, max_tokens: int, page: int, window: int | None, codebooks: Any, recent: int
    ) -> None:
        super().__init__()
        self._config, self._dtype, self._codebooks, self._recent = config, dtype, codebooks, recent
        self.page, self.window = page, window
        self.width = -(-max_tokens // page)
        self.is_sliding = window is not None
        self.cache: KVCache | None = None
        self.tokens = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Makes the cache for keys [B, kv_heads, T, head_dim]."""
        batch, heads, _, channels = key_states.shape
        self.device, self.dtype = key_states.device, key_states.dtype
        self.cache = KVCache(
            pages=batch * self.width,
            page=self.page,
            kv_heads=heads,
            head_dim=channels,
            dtype=self._dtype,
            codebooks=self._codebooks,
            recent=self._recent,
            device=key_states.device,
        )
        pages = torch.arange(batch * self.width, dtype=torch.int32, device=self.device)
        self.table = pages.view(batch, self.width)
        # Counted on the device too, so that a captured step goes on.
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=self.device)
        self.first = self.table[:, :1] * self.page
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Quantises keys and values [B, kv_heads, T, head_dim] of new tokens, and returns what attention takes."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.cache is not None
        batch, heads, count, channels = key_states.shape
        if batch != len(self.lengths):
            raise LowlpValueError(f"batch: the cache is for {len(self.lengths)} sequences, got {batch}")
        if self.tokens + count > self.width * self.page:
            raise LowlpValueError(
                f"max_tokens: the cache has room for {self.width * self.page} tokens, and {self.tokens + count} are "
                "needed"
            )
        places = self.lengths[:, None] + torch.arange(count, dtype=torch.int32, device=self.device)
        rows = (batch * count, heads, channels)
        with torch.no_grad():
            kv_append(
                self.cache,
                key_states.detach().transpose(1, 2).reshape(rows),
                value_states.detach().transpose(1, 2).reshape(rows),
                (self.first + places).reshape(-1),
            )
        self.lengths += count
        before, self.tokens = self.tokens, self.tokens + count
        if self._config._attn_implementation == NAME:
            # The same numbers as another tensor, which says where the others are.
            found = key_states.view(key_states.shape)
            setattr(found, _LAYER, self)
            return found, value_states
        return (key_states, value_states) if before == 0 else self.dense(count)

    def dense(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What `count` newest tokens see: keys and values [B, kv_heads, tokens, head_dim], dequantised."""
        assert self.cache is not None
        batch = len(self.lengths)
        first = 0 if self.window is None else max(self.tokens - count - self.window + 1, 0)
        found = []
        for array in self.cache.dequantize():
            pages = torch.from_numpy(array).to(self.device, self.dtype)
            heads, channels = pages.shape[1], pages.shape[3]
            rows = pages.view(batch, self.width, heads, self.page, channels).transpose(1, 2)
            found.append(rows.reshape(batch, heads, -1, channels)[:, :, first : self.tokens])
        return found[0], found[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many keys masks have, and the number of the first."""
        first = 0 if self.window is None else max(self.tokens - self.window + 1, 0)
        return self.tokens + query_length - first, first

    def get_seq_length(self) -> int:
        """Tokens that are there."""
        return self.tokens

    def get_max_length(self) -> int:
        """Tokens that there is room for."""
        return self.width * self.page

    def reset(self) -> None:
        """Forgets all tokens."""
        self.tokens = 0
        if self.is_initialized:
            self.lengths.zero_()

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Refused: pages stay where they are."""
        raise LowlpRuntimeError("beam search is not supported by QuantizedCache; use num_beams=1")

    def offload(self) -> None:
        """Refused: pages stay where they are."""
        raise LowlpRuntimeError("QuantizedCache is not offloaded")


class QuantizedCache(Cache):  # type: ignore[misc]
    """Keys and values of all layers of a model, quantised as they come.

    config      the model's
    dtype       as `lowlp.KVCache` has it: 'int8', 'int4', 'f8e4m3', 'f16', 'bf16', 'cq-4', 'cq-2'
    max_tokens  of a sequence, prompt included
    page        tokens of a page: 16, 32, ... 128
    codebooks   for 'cq-4' and 'cq-2': a `lowlp.KVCodebooks` for each layer
    recent      how many of the newest tokens attention takes as they were; in pages beside the codes, which take as
                much memory as a cache of f16

    `cache[i].cache` is the `lowlp.KVCache` of a layer. All sequences have the same number of tokens, as transformers
    has them; padding is masked, by PyTorch. Raises `LowlpTypeError` and `LowlpValueError`.
    """

    def __init__(
        self,
        config: Any,
        dtype: str = "int8",
        *,
        max_tokens: int,
        page: int = 64,
        codebooks: Sequence[Any] | None = None,
        recent: int = 0,
    ) -> None:
        if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
            raise LowlpTypeError(f"max_tokens: expected a positive int, got {max_tokens!r:.40}")
        text = config.get_text_config(decoder=True)
        count = text.num_hidden_layers
        if codebooks is not None and len(codebooks) != count:
            raise LowlpValueError(f"codebooks: expected one for each of {count} layers, got {len(codebooks)}")
        kinds = getattr(text, "layer_types", None) or ["full_attention"] * count
        window = getattr(text, "sliding_window", None)
        layers = []
        for number, kind in enumerate(kinds):
            if kind not in ("full_attention", "sliding_attention"):
                raise LowlpValueError(
                    f"config: layer {number} is of the type {kind!r:.40}, which has no keys and values"
                )
            mine = None if codebooks is None else codebooks[number]
            seen = window if kind == "sliding_attention" else None
            layers.append(QuantizedLayer(text, dtype, max_tokens, page, seen, mine, recent))
        super().__init__(layers=layers)

    @property
    def nbytes(self) -> int:
        """Of all layers' caches that were made."""
        return sum(layer.cache.nbytes for layer in self.layers if layer.cache is not None)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """The attention 'lowlp' of transformers: y [B, T, heads, head_dim] of q [B, heads, T, head_dim], and no weights."""
    layer: QuantizedLayer | None = getattr(key, _LAYER, None)
    count = query.shape[2]
    options = {"scaling": scaling, "dropout": dropout, **kwargs}
    if layer is None or layer.tokens == count:
        # Without such a cache, and of a prompt: all keys and values are here as they are.
        return _by_torch(module, query, key, value, attention_mask, options)
    reason = _refusal(query, attention_mask, dropout)
    if reason:
        _say_once(reason)
        return _by_torch(module, query, *layer.dense(count), attention_mask, options)
    assert layer.cache is not None
    with torch.no_grad():
        found = attention_decode(
            query.transpose(1, 2).contiguous(),
            layer.cache,
            layer.table,
            layer.lengths,
            scale=scaling,
            window=layer.window,
            sinks=kwargs.get("s_aux"),
            softcap=kwargs.get("softcap"),
        )
    return found, None


def _refusal(query: torch.Tensor, mask: torch.Tensor | None, dropout: float) -> str:
    """Why the kernel cannot be used; '': it can."""
    if not query.is_cuda:
        return "the model is on a CPU, where the kernel would run thread by thread"
    if query.dtype not in (torch.float16, torch.bfloat16):
        return f"queries are {query.dtype}, and the kernel takes float16 and bfloat16"
    if mask is not None:
        return "there is a mask, of padding or of more new tokens than one, which the kernel does not read"
    if query.shape[2] > _MOST_NEW_TOKENS:
        return f"there are {query.shape[2]} new tokens at once, and the kernel is for {_MOST_NEW_TOKENS}"
    if dropout or (torch.is_grad_enabled() and query.requires_grad):
        return "there is dropout or a gradient, which the kernel has not"
    return ""


@functools.cache
def _say_once(reason: str) -> None:
    warnings.warn(
        f"attention 'lowlp': {reason}; PyTorch computes, on a dequantised cache",
        FallbackWarning,
        stacklevel=frames_to_user(),
    )


def _by_torch(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    options: dict[str, Any],
) -> tuple[torch.Tensor, None]:
    softcap, sinks = options.get("softcap"), options.get("s_aux")
    if softcap is None and sinks is None:
        found, _ = sdpa_attention_forward(module, query, key, value, mask, **options)
        return found, None
    # What PyTorch's product of attention has no argument for.
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = (query.float() @ key.float().mT) * (options["scaling"] or query.shape[-1] ** -0.5)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if mask is None and query.shape[2] > 1:
        shape = (query.shape[2], key.shape[2])
        mask = torch.ones(shape, dtype=torch.bool, device=query.device).tril(key.shape[2] - query.shape[2])
    if mask is not None:
        # Finite, since padding may see nothing at all.
        least = torch.finfo(torch.float32).min
        scores = scores.masked_fill(~mask, least) if mask.dtype == torch.bool else scores + mask
    if sinks is not None:
        column = sinks.float().view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], -1)
    weights = scores.softmax(-1)[..., : key.shape[2]]
    return (weights @ value.float()).to(query.dtype).transpose(1, 2).contiguous(), None


def mask_of(*args: Any, **kwargs: Any) -> Any:
    """The mask of transformers' attention 'sdpa', and none for one new token without padding, which sees all that a
    cache says it has."""
    padding = kwargs.get("attention_mask")
    if kwargs.get("q_length") == 1 and (padding is None or bool(padding.all())):
        return None
    return sdpa_mask(*args, **kwargs)


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, mask_of)
