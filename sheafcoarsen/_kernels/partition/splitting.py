"""A cluster cut in two or more connected parts."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def carve(order, above, sizes, load, t, cuts, labels, label):
    """Cut subtrees of weight at least ``t`` off a rooted tree, leaves first, at most ``cuts``.

    ``order`` lists the root first and each vertex after the one ``above`` it. Returns the number of
    parts of weight at least ``t``. With ``label`` >= 0 the parts that were cut off get the labels
    ``label``, ``label`` + 1, ...
    """
    for i in range(order.size):
        load[order[i]] = sizes[order[i]]
    done = 0
    for i in range(order.size - 1, 0, -1):
        v = order[i]
        if load[v] >= t and done < cuts:
            load[v] = -1 - done  # remembers which part it heads
            done += 1
        else:
            load[above[v]] += load[v]
            load[v] = 0
    if label >= 0:
        home = labels[order[0]]
        for i in range(1, order.size):
            v = order[i]
            labels[v] = label - load[v] - 1 if load[v] < 0 else labels[above[v]]
        labels[order[0]] = home
    return done + (load[order[0]] >= t)


@kernel
def span(links, labels, root, order, above, cursor, deep):
    """Span the cluster of ``root`` by a tree, breadth or depth first; return its size.

    Fills ``order`` and ``above`` as ``carve`` reads them.
    """
    a = labels[root]
    order[0] = root
    above[root] = -1
    cursor[root] = links.starts[root]
    count = 1
    head = 0
    v = root
    while v >= 0:
        went = -1
        while cursor[v] < links.starts[v + 1]:
            u = links.ends[cursor[v]]
            cursor[v] += 1
            if labels[u] == a and cursor[u] < 0:
                above[u] = v
                cursor[u] = links.starts[u]
                order[count] = u
                count += 1
                if deep:
                    went = u
                    break
        if deep:
            v = went if went >= 0 else above[v]
        else:
            head += 1
            v = order[head] if head < count else -1
    for i in range(count):
        cursor[order[i]] = -1
    return count


@kernel
def split(links, labels, first, weight, parts):
    """Split every cluster a in ``parts[a]`` connected ones; new labels follow the old ones.

    The parts are subtrees of a spanning tree, cut so that the lightest is as heavy as that tree
    allows. The tree is a breadth-first one from the rim, which makes compact parts, or, where its
    best is under half of an even share (a hub makes it a star), a depth-first one if that does
    better.
    """
    n = labels.size
    order = np.empty(n, np.int32)
    above = np.empty(n, np.int32)
    load = np.empty(n, np.int64)
    cursor = np.full(n, -1, np.int64)
    label = weight.size
    for a in range(weight.size):
        p = parts[a]
        if p == 1:
            continue
        count = span(links, labels, first[a], order, above, cursor, False)
        rim = order[count - 1]
        best = 0
        best_deep = False
        for deep in (False, True):
            if deep and 2 * best * p >= weight[a]:
                break
            span(links, labels, rim, order, above, cursor, deep)
            low = 1
            high = weight[a] // p
            while low < high:
                t = (low + high + 1) // 2
                if carve(order[:count], above, links.sizes, load, t, count, labels, -1) >= p:
                    low = t
                else:
                    high = t - 1
            if low > best:
                best = low
                best_deep = deep
        span(links, labels, rim, order, above, cursor, best_deep)
        carve(order[:count], above, links.sizes, load, best, p - 1, labels, label)
        label += p - 1
