"""Kernels that quantise activations: templates in the DSL."""
