"""The clusters next to a cluster, and the best of them to join."""

from sheafcoarsen._kernels.jit import subkernel


@subkernel
def add_links(links, v, labels, own, tally, near, n_near):
    """Add vertex v's links into other clusters than ``own`` to ``tally``; return their number.

    ``near`` lists them; ``tally`` is negative for all others.
    """
    for p in range(links.starts[v], links.starts[v + 1]):
        t = labels[links.ends[p]]
        if t != own:
            if tally[t] < 0:
                tally[t] = 0.0
                near[n_near] = t
                n_near += 1
            tally[t] += links.weights[p]
    return n_near


@subkernel
def best_linked(near, n_near, tally, cluster_weights, own, high):
    """Pick a neighbouring cluster: the best linked of those with room, else the lightest."""
    best = -1
    best_fits = False
    for i in range(n_near):
        t = near[i]
        fits = cluster_weights[t] + own <= high
        if best < 0 or (fits and not best_fits):
            better = True
        elif fits != best_fits:
            better = False
        elif fits or cluster_weights[t] == cluster_weights[best]:
            better = tally[t] > tally[best]
        else:
            better = cluster_weights[t] < cluster_weights[best]
        if better:
            best = t
            best_fits = fits
    return best
