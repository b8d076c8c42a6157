"""What the plug-ins for serving engines (`lowlp.vllm`, `lowlp.sglang`) share: which tensors of a checkpoint make a
layer, how an engine's loaders divide them among ranks, and layers of packed weights. What differs is an `Engine`.

No engine is imported here; PyTorch is.
"""
