"""`lowlp.torch.Config`: how a module is quantised."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from lowlp.weights.quantize.quantization import quantize
from lowlp_runtime.errors import LowlpValueError

_OF_QUANTIZE: Final = frozenset(inspect.signature(quantize).parameters) - {"w", "dtype", "activation", "progress"}


class Config:
    """How a module is quantised: what `lowlp.quantize` takes, and what `lowlp.linear` does with it.

    dtype       the codec, as `lowlp.quantize` takes it: 'int4', 'nf4', 'mxfp4', 'aqlm-2x8', a `Codec`; None: 'int6', or
                what `lut` or `vq` says
    activation  the type that activations are quantised to, as for `lowlp.linear`; None: they are not
    path        as for `lowlp.linear`, or None
    options     the other arguments of `lowlp.quantize`: group_size, zero_point, scale_dtype, lut, search, vq, book_per,
                seed. Modules in bfloat16 have scales of bfloat16 where scale_dtype and activation are not given

    Raises `LowlpValueError` for an option that there is not.
    """

    def __init__(
        self, dtype: object = None, *, activation: str | None = None, path: str | None = None, **options: Any
    ) -> None:
        for name in options:
            if name not in _OF_QUANTIZE:
                raise LowlpValueError(
                    f"{name}: no option of lowlp.quantize; allowed: {', '.join(sorted(_OF_QUANTIZE))}"
                )
        self.dtype, self.activation, self.path = dtype, activation, path
        self.options: Mapping[str, Any] = dict(options)

    @classmethod
    def of(cls, value: object, **options: Any) -> Config:
        """The config that `value` is, or that of a codec with these options."""
        if isinstance(value, Config):
            if options:
                raise LowlpValueError(f"{next(iter(options))}: a Config says it; leave it out")
            return value
        return cls(value, **options)

    def with_options(self, **options: Any) -> Config:
        """The same with other options beside its own."""
        return Config(self.dtype, activation=self.activation, path=self.path, **{**self.options, **options})

    def __repr__(self) -> str:
        given = {"activation": self.activation, "path": self.path, **self.options}
        parts = [repr(self.dtype), *(f"{name}={value!r}" for name, value in given.items() if value is not None)]
        return f"Config({', '.join(parts)})"
