"""Attention of a few new tokens over a paged cache of keys and values, and appending to such a cache."""
