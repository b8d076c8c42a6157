"""Models of transformers on two GPUs, by its own plans and NCCL: logits and words are those of one GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers", minversion="5.17")
if torch.cuda.device_count() < 2:
    pytest.skip("fewer than two CUDA devices", allow_module_level=True)

from lowlp.torch.quantized_module import QuantizedModule  # noqa: E402
from lowlp.transformers import LowlpConfig  # noqa: E402

RANKS = 2
LIMIT = 5e-3
"""Of logits in float16, of which each sum of a layer has a rounding that one GPU's has not."""


def save(folder: Path) -> None:
    """A quantised model with a tied head, and a prompt's logits and words on one GPU."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "vocab_size": 272, "head_dim": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads)).save_pretrained(folder / "plain")
    given = LowlpConfig("int4", group_size=64, rules={"lm_head": "int8", "model.embed_tokens": "int8"})
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "plain", quantization_config=given, device_map="cuda:0", dtype=torch.float16
    )
    model.save_pretrained(folder / "own")
    ids = torch.randint(0, 272, (2, 12), generator=torch.Generator().manual_seed(1))
    torch.save({"ids": ids, **results_of(model, ids)}, folder / "wanted.pt")


@torch.no_grad()
def results_of(model: Any, ids: Any) -> dict[str, Any]:
    ids = ids.to(model.device)
    made = model.generate(ids, max_new_tokens=4, do_sample=False, pad_token_id=0)
    return {"logits": model(ids).logits.float().cpu(), "made": made.cpu()}


def main(folder: str) -> None:
    """One rank, which torchrun started."""
    from transformers.distributed import DistributedConfig

    model = transformers.AutoModelForCausalLM.from_pretrained(
        f"{folder}/own", distributed_config=DistributedConfig(tp_size=RANKS), dtype=torch.float16
    )
    rank = torch.distributed.get_rank()
    assert "nccl" in torch.distributed.get_backend_config()
    assert model.device == torch.device("cuda", rank)
    parts = [module for module in model.modules() if isinstance(module, QuantizedModule) and module.part_of]
    assert len(parts) >= 14, len(parts)
    wanted = torch.load(f"{folder}/wanted.pt")
    found = results_of(model, wanted["ids"])
    error = float((found["logits"] - wanted["logits"]).norm() / wanted["logits"].norm())
    print(f"rank {rank}: {len(parts)} modules divided, logits {error:.1e} from one GPU's", flush=True)
    assert error <= LIMIT, error
    assert torch.equal(found["made"], wanted["made"]), (found["made"], wanted["made"])
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def test_two_gpus(tmp_path: Path) -> None:
    save(tmp_path)
    options = ["--standalone", "--nproc-per-node", str(RANKS), __file__, str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *options],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    print(done.stdout)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


if __name__ == "__main__":
    main(sys.argv[1])
