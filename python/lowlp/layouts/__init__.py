"""Layouts of tiles in registers and in shared memory: bindings of the C++ library."""
