"""Numbers without a pattern, for starts that are no eigenvector's complement: Marsaglia's xorshift.

J. Stat. Softw. 8(14), 2003. The state is handed on by whoever draws.
"""

import numpy as np

from sheafcoarsen._kernels.jit import inlined

SEED = 88172645463325252
"""A state to begin with, or this and a number."""


@inlined
def following(state):
    """Return the state after ``state``, an unsigned 64-bit integer that is not 0."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@inlined
def drawn(state):
    """Return the number of a state, between -1/2 and 1/2."""
    return (state >> np.uint64(11)) * 2.0**-53 - 0.5
