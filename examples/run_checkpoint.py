"""Text by a checkpoint of GPTQ, or of another format of docs/checkpoints.md: `run_checkpoint.py FOLDER [PROMPT]`."""

import sys

import torch
from transformers import AutoTokenizer

import lowlp.transformers

if not sys.argv[1:]:
    sys.exit(__doc__)
folder, prompt = sys.argv[1], " ".join(sys.argv[2:]) or "The capital of France is"
device = "cuda" if torch.cuda.is_available() else "cpu"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = lowlp.transformers.from_pretrained(folder, dtype=torch.bfloat16, device_map=device)
ids = tokenizer(prompt, return_tensors="pt").to(device)
print(tokenizer.decode(model.generate(**ids, max_new_tokens=40, do_sample=False)[0]))
