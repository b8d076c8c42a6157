"""vLLM on the CPU: its own classes, without its compiled code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import vllm.platforms
import vllm.platforms.cpu

# A build of vLLM without compiled code belongs to no platform.
vllm.platforms.current_platform = vllm.platforms.cpu.CpuPlatform()

from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config  # noqa: E402
from vllm.distributed import parallel_state  # noqa: E402

import lowlp.vllm  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
lowlp.vllm.register()
lowlp.vllm.register()


@pytest.fixture(scope="session", autouse=True)
def _one_process(tmp_path_factory: pytest.TempPathFactory) -> None:
    """vLLM's groups of processes, of this one; and no accelerator to give memory back to."""
    torch.accelerator.empty_cache = lambda: None
    store = f"file://{tmp_path_factory.mktemp('group') / 'store'}"
    with set_current_vllm_config(VllmConfig(device_config=DeviceConfig(device="cpu"))):
        parallel_state.init_distributed_environment(1, 0, store, 0, "gloo")
        parallel_state.initialize_model_parallel(1)


@pytest.fixture(autouse=True)
def _half_precision() -> Iterator[None]:
    """As vLLM has it while it builds and loads a model."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    with set_current_vllm_config(VllmConfig(device_config=DeviceConfig(device="cpu"))), torch.no_grad():
        yield
    torch.set_default_dtype(before)


@pytest.fixture
def as_rank(monkeypatch: pytest.MonkeyPatch) -> Any:
    """as_rank(rank, size): what vLLM's layers take for their place among the ranks of tensor parallelism."""

    def place(rank: int, size: int) -> None:
        for module in ("parameter", "layers.linear", "layers.vocab_parallel_embedding"):
            monkeypatch.setattr(f"vllm.model_executor.{module}.get_tensor_model_parallel_rank", lambda: rank)
            monkeypatch.setattr(f"vllm.model_executor.{module}.get_tensor_model_parallel_world_size", lambda: size)

    return place
