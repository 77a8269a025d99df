"""Connected components of a list of edges."""

from sheafcoarsen._kernels.jit import kernel, subkernel


@subkernel
def _root(above, v):
    """Return the first vertex of a tree, and halve the way there."""
    while above[v] != v:
        above[v] = above[above[v]]
        v = above[v]
    return v


@kernel
def label_components(edges, labels):
    """Write the component of each vertex, numbered in the order of their first vertices."""
    for v in range(labels.size):
        labels[v] = v
    for e in range(len(edges)):
        u, v = _root(labels, edges[e, 0]), _root(labels, edges[e, 1])
        labels[max(u, v)] = min(u, v)
    count = 0
    for v in range(labels.size):  # what is above a vertex comes before it, and has its number
        if labels[v] == v:
            labels[v] = count
            count += 1
        else:
            labels[v] = labels[labels[v]]
