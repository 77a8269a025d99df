"""Heavy-edge matching."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def match(links, order, n_groups, high, groups):
    """Join vertices along the link that is heaviest relative to what it joins; return the number of groups.

    Each vertex, in the given order, pairs with a free neighbour or is absorbed by a neighbour's
    group, within weight ``high``. Absorbing is what keeps stars and heavy triangles going, where
    pairs alone stall or take weak links. Stops at ``n_groups`` groups.
    """
    n = groups.size
    groups[:] = -1
    weight = np.zeros(n, np.int64)
    left = n
    count = 0
    for i in range(n):
        v = order[i]
        if groups[v] >= 0:
            continue
        best = -1
        score = -1.0
        if left > n_groups:
            for p in range(links.starts[v], links.starts[v + 1]):
                u = links.ends[p]
                other = links.sizes[u] if groups[u] < 0 else weight[groups[u]]
                if other + links.sizes[v] <= high and links.weights[p] > score * other:
                    best = u
                    score = links.weights[p] / other
        if best >= 0:
            left -= 1
        if best >= 0 and groups[best] >= 0:
            groups[v] = groups[best]
        else:
            groups[v] = count
            count += 1
            if best >= 0:
                groups[best] = groups[v]
                weight[groups[v]] += links.sizes[best]
        weight[groups[v]] += links.sizes[v]
    return count
