"""Blocks of a launch that begins early, spread evenly over the multiprocessors.

Blocks of a launch go where there is room. When nothing else runs, that is one after the other on every multiprocessor.
A dependent launch begins while blocks of the kernels in front are still there, and those that end first make room for
several blocks of one multiprocessor, while others get none. A product divides its work among as many blocks as all of
them have room for, so it takes as long as its fullest multiprocessor. So it asks for so much shared memory that no
multiprocessor has room for more blocks than an even share.
"""

from lowlp_runtime import device
from lowlp_runtime.description import KernelDescription


def reserved_shared_bytes(description: KernelDescription, blocks: int, ordinal: int) -> int:
    """Dynamic shared memory of a block of a launch of so many: what the kernel needs; of a product that may begin early
    at least so much that a multiprocessor of the device takes no more blocks than an even share.

    Of more blocks than are resident at once the share has room by itself, and clusters are placed as wholes: both keep
    what they need.
    """
    needed, product = description.shared_bytes, description.product
    if not description.dependent_launch or product is None:
        return needed
    if product.tiles is not None and product.tiles.cluster * product.tiles.multicast > 1:
        return needed
    share = -(-blocks // device.multiprocessors(ordinal))
    of_block = device.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", ordinal) // (share + 1)
    least = of_block - device.attribute("RESERVED_SHARED_MEMORY_PER_BLOCK", ordinal) + 1
    return max(needed, min(least, device.max_shared_bytes(ordinal)))
