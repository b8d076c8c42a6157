"""The kernels of `lowlp.linear`."""
