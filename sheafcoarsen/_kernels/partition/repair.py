"""Repair: pieces found, light clusters merged, items packed, parts apportioned.

``links`` is a :class:`sheafcoarsen.partition.links.Links`, as in ``balls``.
"""

import numpy as np

from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.partition.adjacent import add_links, best_linked
from sheafcoarsen._kernels.partition.heap import (
    ascending_code,
    code_item,
    descending_code,
    heap_pop,
    heap_push,
)

PATIENCE = 2.0
"""The growth of a neighbour after which a cluster that waits looks at its neighbours again."""


@kernel
def fragments(links, labels, out):
    """Fill ``out`` with the numbers of the clusters' connected pieces; return how many."""
    starts, ends = links.starts, links.ends
    n = labels.size
    out[:] = -1
    queue = np.empty(n, np.int32)
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
def turn_code(main, share, a):
    """Return the code by which a cluster waits in ``merge``: pieces first, then light ones.

    Bit 62 of a code is free for a share of at most 1.
    """
    return (np.int64(main) << 62) | ascending_code(share, a)


@kernel
def merge(links, labels, weight, main, n_clusters, low, high):
    """Merge connected clusters into neighbours: those below ``low``, then down to ``n_clusters``.

    Pieces cut off from their cluster (not ``main``) come first, then the lightest; one that has no
    neighbour with room waits until nothing makes a lighter cluster than it would. ``labels`` are
    changed in place; a cluster that has gone has ``weight`` 0. Returns the number left: above
    ``n_clusters`` only where all of them are whole components.

    The lighter of two moves, so that a vertex moves at most log2(total weight) times; and one that
    waits is looked at again only after what it waits for has grown by ``PATIENCE``, so that a star
    takes no quadratic time.
    """
    n = labels.size
    count = weight.size
    total = weight.sum()
    following = np.arange(n).astype(np.int32)  # circular lists of the clusters' vertices
    first = np.full(count, -1, np.int32)
    for v in range(n):
        f = first[labels[v]]
        if f < 0:
            first[labels[v]] = v
        else:
            following[v], following[f] = following[f], following[v]
    tally = np.full(count, -1.0)
    near = np.empty(count, np.int32)
    heap = np.empty(count, np.int64)
    turn = weight.copy()  # the weight by which a cluster waits
    size = 0
    for a in range(count):
        size = heap_push(heap, size, turn_code(main[a], turn[a] / total, a))
    while size > 0:
        code = heap[0]
        size = heap_pop(heap, size)
        a = code_item(code)
        if weight[a] == 0:
            continue
        if turn[a] < weight[a]:  # it has grown since
            turn[a] = weight[a]
            size = heap_push(heap, size, turn_code(main[a], turn[a] / total, a))
            continue
        if count <= n_clusters and weight[a] >= low:
            continue
        n_near = 0
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
            size = heap_push(heap, size, turn_code(main[a], turn[a] / total, a))
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
            size = heap_push(heap, size, turn_code(main[best], result / total, best))
    return count


@kernel
def pack(weight, order, bins, n_bins):
    """Put items, heaviest first, each into the bin that is lightest so far: bins[item] = bin."""
    heap = np.arange(n_bins)  # all with key 0
    load = np.zeros(n_bins)
    for i in range(order.size):
        lightest = code_item(heap[0])
        bins[order[i]] = lightest
        load[lightest] += weight[order[i]]
        size = heap_pop(heap, n_bins)
        heap_push(heap, size, ascending_code(load[lightest], lightest))


@kernel
def apportion(weight, limits, total, parts):
    """Share ``total`` parts out: one each, then always to the largest weight per part.

    At most ``limits[a]`` go to item a.
    """
    heap = np.empty(weight.size, np.int64)
    size = 0
    for a in range(weight.size):
        parts[a] = 1
        if limits[a] > 1:
            size = heap_push(heap, size, descending_code(weight[a], a))
    for _ in range(total - weight.size):
        a = code_item(heap[0])
        size = heap_pop(heap, size)
        parts[a] += 1
        if parts[a] < limits[a]:
            size = heap_push(heap, size, descending_code(weight[a] / parts[a], a))
