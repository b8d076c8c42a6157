"""SGLang on the CPU: its own classes, without its compiled code."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import without_gpu

without_gpu.install()
sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
os.environ["SGLANG_EXTERNAL_MODEL_PACKAGE"] = "tested_models"

import sglang.srt.plugins  # noqa: E402
from sglang.srt.runtime_context import get_context, get_parallel  # noqa: E402

import lowlp.sglang  # noqa: E402

# lowlp is not installed here, so SGLang is given the entry points that a wheel would have.
_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
sglang.srt.plugins.entry_points = lambda group: [
    EntryPoint(name, value, group) for name, value in _PROJECT["entry-points"].get(group, {}).items()
]
sglang.srt.plugins.load_plugins()
lowlp.sglang.register()


@pytest.fixture(autouse=True)
def _half_precision() -> Iterator[None]:
    """As SGLang has it while it builds and loads a model, and one process."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    with get_context().override_server_args(device="cpu"), torch.no_grad():
        yield
    torch.set_default_dtype(before)


@pytest.fixture
def as_rank() -> Iterator[Any]:
    """as_rank(rank, size): what SGLang's layers take for their place among the ranks of tensor parallelism."""
    with ExitStack() as stack:

        def place(rank: int, size: int) -> None:
            group = SimpleNamespace(rank_in_group=rank, world_size=size)
            stage = SimpleNamespace(rank_in_group=0, world_size=1, is_first_rank=True, is_last_rank=True)
            sizes = dict.fromkeys(("tp_size", "attn_tp_size", "moe_tp_size"), size)
            ranks = dict.fromkeys(("tp_rank", "attn_tp_rank", "moe_tp_rank"), rank)
            stack.enter_context(
                get_parallel().override(tp_group=group, pp_group=stage, pp_rank=0, moe_ep_rank=0, **sizes, **ranks)
            )

        yield place
