"""Fields of a checkpoint's quantisation config, checked as they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lowlp.errors import CheckpointError


class Settings:
    """The fields of a quantisation config. Errors name the field, its value and what is allowed."""

    def __init__(self, fields: Mapping[str, Any], where: str = "quantization_config") -> None:
        self.fields = fields
        self.where = where

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def value(self, *names: str, default: Any = None) -> Any:
        """The first of these fields that is there and not null."""
        return next((self.fields[name] for name in names if self.fields.get(name) is not None), default)

    def integer(self, *names: str, allowed: Iterable[int] | None = None, default: int | None = None) -> int | None:
        """An integer, or `default` where none of the fields is there."""
        value = self.value(*names, default=default)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise CheckpointError(f"{self.where}: {names[0]} must be an integer, got {value!r:.40}")
        choices = None if allowed is None else tuple(allowed)
        if choices is not None and value not in choices:
            raise CheckpointError(
                f"{self.where}: {names[0]} must be one of {', '.join(map(str, choices))}, got {value!r:.40}"
            )
        return value

    def flag(self, *names: str, default: bool | None = None) -> bool | None:
        """A boolean, or `default`."""
        value = self.value(*names, default=default)
        if value is not None and not isinstance(value, bool):
            raise CheckpointError(f"{self.where}: {names[0]} must be true or false, got {value!r:.40}")
        return value

    def text(self, *names: str, allowed: Iterable[str] | None = None, default: str | None = None) -> str | None:
        """A text, or `default`."""
        value = self.value(*names, default=default)
        if value is not None and not isinstance(value, str):
            raise CheckpointError(f"{self.where}: {names[0]} must be a text, got {value!r:.40}")
        choices = None if allowed is None else tuple(allowed)
        if value is not None and choices is not None and value not in choices:
            raise CheckpointError(f"{self.where}: {names[0]} must be one of {', '.join(choices)}, got {value!r:.40}")
        return value

    def part(self, name: str) -> Settings:
        """The fields of an object within; none where it is not there."""
        value = self.fields.get(name)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise CheckpointError(f"{self.where}: {name} must be an object, got {value!r:.40}")
        return Settings(value, f"{self.where}.{name}")

    def with_fields(self, fields: Mapping[str, Any]) -> Settings:
        """These, overridden by others."""
        return Settings({**self.fields, **fields}, self.where)

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name begins with what a regular expression of the config describes."""
        try:
            return re.match(pattern, name) is not None
        except re.error as error:
            raise CheckpointError(f"{self.where}: {pattern!r:.80} is no regular expression: {error}") from None
