"""Repair: pieces found, light clusters merged, items packed, parts apportioned.

``links`` is a :class:`sheafcoarsen.partition.links.Links`, as in ``balls``.
"""

import numpy as np

from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.partition.adjacent import add_links, best_linked
from sheafcoarsen._kernels.partition.heap import (
    ITEM,
    ascending_code,
    descending_code,
    heap_pop,
    heap_push,
)

PATIENCE = 2.0
"""The growth of a neighbour after which a cluster that waits looks at its neighbours again."""


@kernel
def fragments(links, labels, out, queue):
    """Fill ``out`` with the numbers of the clusters' connected pieces; return how many.

    ``queue`` is work space for each vertex.
    """
    starts, ends = links.starts, links.ends
    n = labels.size
    for v in range(n):
        out[v] = -1
    count = 0
    for s in range(n):
        if out[s] >= 0:
            continue
        out[s] = count
        queue[0] = s
        tail = 1
        head = 0
        while head < tail:
            v = queue[head]
            head += 1
            for p in range(starts[v], starts[v + 1]):
                u = ends[p]
                if out[u] < 0 and labels[u] == labels[s]:
                    out[u] = count
                    queue[tail] = u
                    tail += 1
        count += 1
    return count


@kernel
def merge(links, labels, weight, main, n_clusters, bounds, workspace):
    """Merge connected clusters into neighbours: those below low, then down to ``n_clusters``.

    Pieces cut off from their cluster (not ``main``) come first, then the lightest; one that has no
    neighbour with room waits until nothing makes a lighter cluster than it would. ``labels`` are
    changed in place; a cluster that has gone has ``weight`` 0. Returns the number left: above
    ``n_clusters`` only where all of them are whole components.

    The lighter of two moves, so that a vertex moves at most log2(total weight) times; and one that
    waits is looked at again only after what it waits for has grown by ``PATIENCE``, so that a star
    takes no quadratic time.
    """
    n, count, total, none = labels.size, weight.size, 0, np.int64(0)
    (low, high), (following, first, near, tally, heap, turn) = bounds, workspace
    for a in range(count):
        first[a], tally[a] = -1, -1.0
        turn[a] = weight[a]  # the weight by which a cluster waits
        total += weight[a]
    for v in range(n):  # circular lists of the clusters' vertices
        following[v] = v
        f = first[labels[v]]
        if f < 0:
            first[labels[v]] = v
        else:
            following[v], following[f] = following[f], following[v]
    size = none
    for a in range(count):  # pieces first, then light ones: bit 62 is free for a share of at most 1
        code = (np.int64(main[a]) << 62) | ascending_code(turn[a] / total, a)
        size = heap_push(heap, size, code)
    while size > 0:
        code = heap[0]
        size = heap_pop(heap, size)
        a = code & ITEM
        if weight[a] == 0:
            continue
        if turn[a] < weight[a]:  # it has grown since
            turn[a] = weight[a]
            code = (np.int64(main[a]) << 62) | ascending_code(turn[a] / total, a)
            size = heap_push(heap, size, code)
            continue
        if count <= n_clusters and weight[a] >= low:
            continue
        n_near = none
        v = first[a]
        while True:
            n_near = add_links(links, v, labels, a, tally, near, n_near)
            v = following[v]
            if v == first[a]:
                break
        best = best_linked(near, n_near, tally, weight, weight[a], high)
        for i in range(n_near):
            tally[near[i]] = -1.0
        if best < 0:
            continue
        result = weight[a] + weight[best]
        if result > high and result > PATIENCE * turn[a]:
            turn[a] = result
            code = (np.int64(main[a]) << 62) | ascending_code(turn[a] / total, a)
            size = heap_push(heap, size, code)
            continue
        taken_over = weight[best] < weight[a]
        if taken_over:
            a, best = best, a
        v = first[a]
        while labels[v] == a:
            labels[v] = best
            v = following[v]
        f = first[best]
        following[v], following[f] = following[f], following[v]
        weight[best] = result
        weight[a] = 0
        main[best] |= main[a]
        count -= 1
        if taken_over:  # its code has been popped
            turn[best] = result
            code = (np.int64(main[best]) << 62) | ascending_code(result / total, np.int64(best))
            size = heap_push(heap, size, code)
    return count


@kernel
def pack(weight, order, bins, n_bins):
    """Put items, heaviest first, each into the bin that is lightest so far: bins[item] = bin."""
    heap = np.arange(n_bins)  # all with key 0
    load = np.zeros(n_bins)
    for i in range(order.size):
        lightest = heap[0] & ITEM
        bins[order[i]] = lightest
        load[lightest] += weight[order[i]]
        size = heap_pop(heap, n_bins)
        heap_push(heap, size, ascending_code(load[lightest], lightest))


@kernel
def apportion(weight, limits, total, parts, heap):
    """Share ``total`` parts out: one each, then always to the largest weight per part.

    At most ``limits[a]`` go to item a. ``heap`` is work space for each.
    """
    size = np.int64(0)
    for a in range(weight.size):
        parts[a] = 1
        if limits[a] > 1:
            size = heap_push(heap, size, descending_code(float(weight[a]), a))
    for _ in range(total - weight.size):
        a = heap[0] & ITEM
        size = heap_pop(heap, size)
        parts[a] += 1
        if parts[a] < limits[a]:
            size = heap_push(heap, size, descending_code(weight[a] / parts[a], a))
