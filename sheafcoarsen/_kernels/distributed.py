"""Kernel of :mod:`sheafcoarsen.distributed`."""

from sheafcoarsen._kernels.jit import kernel


@kernel
def copy_blocks(data, starts, lengths, to, out):
    """Copy blocks, given by starts and lengths, to the positions ``to`` of ``out``."""
    for i in range(starts.size):
        begin, at = starts[i], to[i]
        for k in range(lengths[i]):
            out[at + k] = data[begin + k]
