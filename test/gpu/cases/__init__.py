"""Launches for the GPU, made without one: each module but `case` has `cases(arch)`, which yields `Case`s."""
