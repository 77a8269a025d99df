"""Repair of partitions: merging of light clusters.

``links`` is a :class:`sheafcoarsen.partition.links.Links`, as in ``balls``.
"""

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel
from sheafcoarsen._kernels.partition.heap import ITEM, ascending_code, heap_pop, heap_push
from sheafcoarsen._kernels.partition.links import add_links, best_linked


@borrowing_kernel
def merge(links, labels, weight, main, n_clusters, bounds, workspace):
    """Merge clusters lighter than low into adjacent ones, then more until ``n_clusters`` remain.

    Pieces cut off from their cluster (not ``main``) come first, then the lightest. If each merge of
    a cluster would exceed ``high``, it waits until no other cluster gives a lighter merge.
    ``labels`` are updated in place, and removed clusters get ``weight`` 0. Returns the number of
    remaining clusters, above ``n_clusters`` only if each is a connected component.

    The lighter of two clusters is relabelled, so that a vertex is relabelled at most log2(total
    weight) times. A waiting cluster is examined again only after the merged weight has doubled,
    so that stars take no quadratic time.
    """
    n, count, total, none = labels.size, weight.size, 0, np.int64(0)
    (low, high), (next_vertex, first, adjacent, link_sums, heap, priority) = bounds, workspace
    for a in range(count):
        first[a], link_sums[a] = -1, -1.0
        priority[a] = weight[a]  # the weight by which the heap orders a
        total += weight[a]
    for v in range(n):  # link the vertices of each cluster in a circular list
        next_vertex[v] = v
        f = first[labels[v]]
        if f < 0:
            first[labels[v]] = v
        else:
            next_vertex[v], next_vertex[f] = next_vertex[f], next_vertex[v]
    size = none
    for a in range(count):  # pieces first, then light clusters: keys up to 1 leave bit 62 free
        code = (np.int64(main[a]) << 62) | ascending_code(priority[a] / total, a)
        size = heap_push(heap, size, code)
    while size > 0:
        code = heap[0]
        size = heap_pop(heap, size)
        a = code & ITEM
        if weight[a] == 0:
            continue
        if priority[a] < weight[a]:  # the cluster has grown since it was pushed
            priority[a] = weight[a]
            code = (np.int64(main[a]) << 62) | ascending_code(priority[a] / total, a)
            size = heap_push(heap, size, code)
            continue
        if count <= n_clusters and weight[a] >= low:
            continue
        n_adjacent = none
        v = first[a]
        while True:
            n_adjacent = add_links(links, v, labels, a, link_sums, adjacent, n_adjacent)
            v = next_vertex[v]
            if v == first[a]:
                break
        best = best_linked(adjacent, n_adjacent, link_sums, weight, weight[a], high)
        for i in range(n_adjacent):
            link_sums[adjacent[i]] = -1.0
        if best < 0:
            continue
        result = weight[a] + weight[best]
        if result > high and result > 2.0 * priority[a]:
            priority[a] = result
            code = (np.int64(main[a]) << 62) | ascending_code(priority[a] / total, a)
            size = heap_push(heap, size, code)
            continue
        is_swapped = weight[best] < weight[a]
        if is_swapped:
            a, best = best, a
        v = first[a]
        while labels[v] == a:
            labels[v] = best
            v = next_vertex[v]
        f = first[best]
        next_vertex[v], next_vertex[f] = next_vertex[f], next_vertex[v]
        weight[best] = result
        weight[a] = 0
        main[best] |= main[a]
        count -= 1
        if is_swapped:  # the code of the remaining cluster has been popped
            priority[best] = result
            code = (np.int64(main[best]) << 62) | ascending_code(result / total, np.int64(best))
            size = heap_push(heap, size, code)
    return count
