"""Ranges of indices, one after the other."""

from sheafcoarsen._kernels.jit import kernel


@kernel
def concatenate_ranges(starts, lengths, out):
    """Write start, start + 1, ..., start + length - 1 of every block."""
    at = 0
    for k in range(starts.size):
        for i in range(lengths[k]):
            out[at + i] = starts[k] + i
        at += lengths[k]
