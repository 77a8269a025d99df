"""Splitting of clusters into connected parts."""

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, kernel


@borrowing_kernel
def cut_subtrees(order, parents, sizes, load, t, cuts, labels, label):
    """Cut at most ``cuts`` subtrees of weight at least ``t`` off a rooted tree, leaves first.

    ``order`` lists the root first and each vertex after its parent. Returns the number of parts of
    weight at least ``t``. If ``label`` >= 0, the subtrees get the labels ``label``, ``label`` + 1,
    ...
    """
    for i in range(order.size):
        load[order[i]] = sizes[order[i]]
    n_cut = 0
    for i in range(order.size - 1, 0, -1):
        v = order[i]
        if load[v] >= t and n_cut < cuts:
            load[v] = -1 - n_cut  # encodes the index of the subtree with root v
            n_cut += 1
        else:
            load[parents[v]] += load[v]
            load[v] = 0
    if label >= 0:
        for i in range(1, order.size):
            v = order[i]
            labels[v] = label - load[v] - 1 if load[v] < 0 else labels[parents[v]]
    return n_cut + (load[order[0]] >= t)


@borrowing_kernel
def spanning_tree(links, labels, root, order, parents, cursor, depth_first):
    """Write a spanning tree of the cluster of ``root``, breadth or depth first; return its size.

    ``order`` and ``parents`` are those of ``cut_subtrees``.
    """
    a = labels[root]
    order[0] = root
    parents[root] = -1
    cursor[root] = links.starts[root]
    count = 1
    head = 0
    v = root
    while v >= 0:
        child = -1
        while cursor[v] < links.starts[v + 1]:
            u = links.ends[cursor[v]]
            cursor[v] += 1
            if labels[u] == a and cursor[u] < 0:
                parents[u] = v
                cursor[u] = links.starts[u]
                order[count] = u
                count += 1
                if depth_first:
                    child = u
                    break
        if depth_first:
            v = child if child >= 0 else parents[v]
        else:
            head += 1
            v = order[head] if head < count else -1
    for i in range(count):
        cursor[order[i]] = -1
    return count


@kernel
def split(links, labels, first, weight, parts):
    """Split every cluster a into ``parts[a]`` connected parts; new labels follow the old ones.

    The parts are subtrees of a spanning tree, and the lightest of them is as heavy as that tree
    allows. A breadth-first tree from a vertex at the rim gives compact parts. If the lightest part
    has less than half of the mean weight, as for a star around a hub, a depth-first tree is used if
    its lightest part is heavier.
    """
    n = labels.size
    order = np.empty(n, np.int32)
    parents = np.empty(n, np.int32)
    load = np.empty(n, np.int64)
    cursor = np.full(n, -1, np.int64)
    label = weight.size
    for a in range(weight.size):
        p = parts[a]
        if p == 1:
            continue
        count = spanning_tree(links, labels, first[a], order, parents, cursor, False)
        rim = order[count - 1]
        best = 0
        best_depth_first = False
        for depth_first in (False, True):
            if depth_first and 2 * best * p >= weight[a]:
                break
            spanning_tree(links, labels, rim, order, parents, cursor, depth_first)
            low = 1
            high = weight[a] // p
            while low < high:
                t = (low + high + 1) // 2
                if (
                    cut_subtrees(order[:count], parents, links.sizes, load, t, count, labels, -1)
                    >= p
                ):
                    low = t
                else:
                    high = t - 1
            if low > best:
                best = low
                best_depth_first = depth_first
        spanning_tree(links, labels, rim, order, parents, cursor, best_depth_first)
        cut_subtrees(order[:count], parents, links.sizes, load, best, p - 1, labels, label)
        label += p - 1
