"""Quantised weights: the tensor, and how its codes are packed."""
