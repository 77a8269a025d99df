"""Connected components of a graph."""

from sheafcoarsen._kernels.jit import borrowing_kernel


@borrowing_kernel
def label_components(edges, labels):
    """Number the connected components in the order of their lowest vertices; label each vertex.

    By Rem's algorithm (Dijkstra 1976): until the end, ``labels`` are parents, never above children.
    """
    for v in range(labels.size):
        labels[v] = v
    for e in range(len(edges)):
        u, v = edges[e, 0], edges[e, 1]
        while labels[u] != labels[v]:
            if labels[u] < labels[v]:
                u, v = v, u
            parent = labels[u]
            labels[u] = labels[v]
            if u == parent:
                break
            u = parent
    count = 0
    for v in range(labels.size):  # parents precede their children and are labelled already
        if labels[v] == v:
            labels[v] = count
            count += 1
        else:
            labels[v] = labels[labels[v]]
