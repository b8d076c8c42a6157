"""Quantised activations: what they are, and what quantising means, in numpy."""
