"""Binary heap of codes, each a key and an item in one integer, with the smallest on top.

Keys are rounded to single precision, so nearly equal ones are ordered by item.
"""

import numpy as np

from sheafcoarsen._kernels.jit import subkernel

ITEM = 0xFFFFFFFF
"""Mask of the bits of a code that hold its item."""


@subkernel
def ascending_code(key, item):
    """Return a code that sorts by ascending ``key`` >= 0, then by ``item`` < 2^32."""
    return (np.int64(np.float32(key).view(np.int32)) << 32) | item


@subkernel
def descending_code(key, item):
    """Return a code that sorts by descending ``key`` >= 0, then by ``item`` < 2^32."""
    return (np.int64(0x7FFFFFFF - np.float32(key).view(np.int32)) << 32) | item


@subkernel
def heap_push(heap, size, code):
    """Add a code to a heap of ``size`` codes; return the new size."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if heap[up] <= code:
            break
        heap[i] = heap[up]
        i = up
    heap[i] = code
    return size + 1


@subkernel
def heap_pop(heap, size):
    """Remove ``heap[0]``; return the new size."""
    size -= 1
    code = heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if code <= heap[child]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = code
    return size
