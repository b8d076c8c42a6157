"""Kernels of `lowlp.linear` for weights that are vectors of codebooks."""
