"""Heavy-edge matching."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def match(links, order, n_groups, high, groups):
    """Group vertices along links that are heavy relative to vertex weights; return the group count.

    Each vertex, in the given order, is paired with a free neighbour or added to the group of a
    neighbour, up to weight ``high``. Pairs alone would stall or use weak links in stars and heavy
    triangles. Stops at ``n_groups`` groups.
    """
    starts, ends, weights, sizes = links.starts, links.ends, links.weights, links.sizes
    n = groups.size
    groups[:] = -1
    weight = np.zeros(n, np.int64)
    n_left = n
    count = 0
    for i in range(n):
        v = order[i]
        if groups[v] >= 0:
            continue
        best = -1
        score = -1.0
        if n_left > n_groups:
            for p in range(starts[v], starts[v + 1]):
                u = ends[p]
                other = sizes[u] if groups[u] < 0 else weight[groups[u]]
                if other + sizes[v] <= high and weights[p] > score * other:
                    best = u
                    score = weights[p] / other
        if best >= 0:
            n_left -= 1
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
