"""Models of SGLang."""

from sglang.srt.models.llama import LlamaForCausalLM
from sglang.srt.models.qwen2 import Qwen2ForCausalLM
from sglang.srt.models.qwen3_moe import Qwen3MoeForCausalLM

EntryClass = [LlamaForCausalLM, Qwen2ForCausalLM, Qwen3MoeForCausalLM]
