"""Kernels of `lowlp.linear` on bit planes of weights and activations."""
