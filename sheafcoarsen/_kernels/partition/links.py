"""Link strengths, neighbour lists, total link weights to adjacent clusters; components."""

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel


@borrowing_kernel
def strengths(sheaf, factor, out):
    """Write norm(F_{u->e}* F_{v->e})_F of each edge, with maps times ``factor``; 0 for loops."""
    for e in range(sheaf.edges.shape[0]):
        u = sheaf.edges[e, 0]
        v = sheaf.edges[e, 1]
        out[e] = 0.0
        if u == v or sheaf.edge_dims[e] == 0:
            continue
        rows = sheaf.vertex_dims[u]
        cols = sheaf.vertex_dims[v]
        a = sheaf.tail_offsets[e]
        b = sheaf.head_offsets[e]
        total, largest = 0.0, 0.0
        for i in range(rows):
            for j in range(cols):
                inner = 0.0 * (sheaf.tail_data[a] * factor)  # zero in the precision of the product
                for k in range(sheaf.edge_dims[e]):
                    left = np.conj(sheaf.tail_data[a + k * rows + i] * factor)
                    inner += left * (sheaf.head_data[b + k * cols + j] * factor)
                size = float(abs(inner))
                if size > largest:
                    total, largest = total * (largest / size) ** 2 + 1, size
                elif size > 0:
                    total += (size / largest) ** 2
        out[e] = largest * np.sqrt(total)


@borrowing_kernel
def neighbours(edges, edge_weights, starts, ends, weights, position):
    """Write the neighbour lists of all vertices and return their total length.

    Loops are omitted, weights of parallel edges summed. ``position`` is workspace for each vertex.
    """
    n = starts.size - 1
    starts[:] = 0
    for e in range(edges.shape[0]):
        if edges[e, 0] != edges[e, 1]:
            starts[edges[e, 0] + 1] += 1
            starts[edges[e, 1] + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
        position[v] = starts[v]  # where the next neighbour of v is written
    for e in range(edges.shape[0]):
        u = edges[e, 0]
        v = edges[e, 1]
        if u != v:
            ends[position[u]] = v
            weights[position[u]] = edge_weights[e]
            position[u] += 1
            ends[position[v]] = u
            weights[position[v]] = edge_weights[e]
            position[v] += 1
    position[:] = -1  # position[u]: index of u in the list being written
    count = 0
    begin = 0
    for v in range(n):
        first = count
        end = starts[v + 1]
        for p in range(begin, end):
            u = ends[p]
            if position[u] >= first:
                weights[position[u]] += weights[p]
            else:
                position[u] = count
                ends[count] = u
                weights[count] = weights[p]
                count += 1
        begin = end
        starts[v + 1] = count
    return count


@subkernel
def add_links(links, v, labels, own, link_sums, adjacent, n_adjacent):
    """Add the weights of links from vertex v into clusters other than ``own`` to ``link_sums``.

    ``adjacent`` lists these clusters, and ``link_sums`` is negative for all others. Returns their
    number.
    """
    for p in range(links.starts[v], links.starts[v + 1]):
        t = labels[links.ends[p]]
        if t != own:
            if link_sums[t] < 0:
                link_sums[t] = 0.0
                adjacent[n_adjacent] = t
                n_adjacent += 1
            link_sums[t] += links.weights[p]
    return n_adjacent


@subkernel
def best_linked(adjacent, n_adjacent, link_sums, cluster_weights, own, high):
    """Return the adjacent cluster with the largest total link weight, or -1 if there is none.

    Clusters whose weight would exceed ``high`` with ``own`` come last, the lightest of them first.
    """
    best, highest = -1, (False, 0.0, 0.0)
    for i in range(n_adjacent):
        t = adjacent[i]
        fits = cluster_weights[t] + own <= high
        rank = fits, 0.0 if fits else -float(cluster_weights[t]), link_sums[t]
        if best < 0 or rank > highest:
            best, highest = t, rank
    return best


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
