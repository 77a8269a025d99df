"""Heavy-edge matching."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def match(links, order, n_groups, high, groups):
    """Join vertices along the link that is heaviest for what it joins; return the groups' number.

    Each vertex, in the given order, pairs with a free neighbour or is absorbed by a neighbour's
    group, within weight ``high``. Absorbing is what keeps stars and heavy triangles going, where
    pairs alone stall or take weak links. Stops at ``n_groups`` groups.
    """
    starts, ends, weights, sizes = links.starts, links.ends, links.weights, links.sizes
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
            for p in range(starts[v], starts[v + 1]):
                u = ends[p]
                other = sizes[u] if groups[u] < 0 else weight[groups[u]]
                if other + sizes[v] <= high and weights[p] > score * other:
                    best = u
                    score = weights[p] / other
        if best >= 0:
            left -= 1
        if best >= 0 and groups[best] >= 0:
            groups[v] = groups[best]
        else:
            groups[v] = count
            count += 1
            if best >= 0:
                groups[best] = groups[v]
                weight[groups[v]] += sizes[best]
        weight[groups[v]] += sizes[v]
    return count
