"""Kernels of :mod:`sheafcoarsen.partition`: links, balls, matching, merging and splitting.

``links`` is a :class:`sheafcoarsen.partition.links.Links`. A link of weight 0 is a link: weights
only rank neighbours.
"""

import numpy as np

from sheafcoarsen._kernels.heap import ITEM, ascending_code, descending_code, heap_pop, heap_push
from sheafcoarsen._kernels.jit import borrowing_kernel, kernel, subkernel


@borrowing_kernel
def strengths(sheaf, factor, out):
    """Write norm(F_{u->e}* F_{v->e})_F of each edge, with maps times ``factor``; 0 for loops."""
    for e in range(sheaf.edges.shape[0]):
        u, v = sheaf.edges[e, 0], sheaf.edges[e, 1]
        out[e] = 0.0
        if u == v or sheaf.edge_dims[e] == 0:
            continue
        rows, cols = sheaf.vertex_dims[u], sheaf.vertex_dims[v]
        a, b = sheaf.tail_offsets[e], sheaf.head_offsets[e]
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
def neighbours(tails, heads, edge_weights, unit, starts, ends, weights, position):
    """Write the neighbour lists of all vertices and return their total length.

    Weights are divided by ``unit``. Loops are omitted, weights of parallel edges summed.
    ``position`` is workspace for each vertex.
    """
    n = starts.size - 1
    starts[:] = 0
    for e in range(tails.size):
        if tails[e] != heads[e]:
            starts[tails[e] + 1] += 1
            starts[heads[e] + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
        position[v] = starts[v]  # where the next neighbour of v is written
    for e in range(tails.size):
        u, v = tails[e], heads[e]
        if u != v:
            ends[position[u]] = v
            weights[position[u]] = edge_weights[e] / unit
            position[u] += 1
            ends[position[v]] = u
            weights[position[v]] = edge_weights[e] / unit
            position[v] += 1
    position[:] = -1  # position[u]: index of u in the list being written
    count, begin = 0, 0
    for v in range(n):
        first, end = count, starts[v + 1]
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
    ends, weights = links.ends, links.weights
    for p in range(links.starts[v], links.starts[v + 1]):
        t = labels[ends[p]]
        if t != own:
            if link_sums[t] < 0:
                link_sums[t] = 0.0
                adjacent[n_adjacent] = t
                n_adjacent += 1
            link_sums[t] += weights[p]
    return n_adjacent


@subkernel
def best_linked(adjacent, n_adjacent, link_sums, cluster_weights, own, high):
    """Return the adjacent cluster with the largest total link weight, or -1 if there is none.

    Clusters whose weight would exceed ``high`` with ``own`` come last, the lightest of them first.
    Their entries of ``link_sums`` become negative again.
    """
    best, highest = -1, (False, 0.0, 0.0)
    for i in range(n_adjacent):
        t = adjacent[i]
        fits = cluster_weights[t] + own <= high
        rank = fits, 0.0 if fits else -float(cluster_weights[t]), link_sums[t]
        if best < 0 or rank > highest:
            best, highest = t, rank
        link_sums[t] = -1.0
    return best


@borrowing_kernel
def label_components(tails, heads, kept, labels):
    """Number the components of all ``kept`` edges by their lowest vertices; label each vertex.

    By Rem's algorithm (Dijkstra 1976): until the end, ``labels`` are parents, never above children.
    """
    for v in range(labels.size):
        labels[v] = v
    for e in range(tails.size):
        u, v = tails[e], heads[e]
        while kept[e] and labels[u] != labels[v]:
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


@borrowing_kernel
def grow(links, n_clusters, start, labels, heap, workspace):
    """Partition the graph into about ``n_clusters`` connected balls; return their number.

    The first ball starts at ``start``, each other one at the vertex that has been adjacent to
    earlier balls for the longest time. A ball grows by the vertex with the largest sum of links
    into it, divided by the square root of all its links, without which balls run through hubs. A
    ball that cannot grow to a third of the mean weight is merged into an adjacent one. The target
    weight depends on the weight not covered yet and on that of such balls. ``workspace`` holds
    (3, n) floats, (6, n) 32-bit integers and (n,) 64-bit integers.
    """
    starts, ends, weights, sizes = links.starts, links.ends, links.weights, links.sizes
    n = labels.size
    floats, integers, weight = workspace
    link, scale, link_sums = floats[0], floats[1], floats[2]
    last_ball = integers[0]  # the ball that last touched v, to which link[v] refers
    position = integers[1]  # index of v among the vertices touched by that ball
    touched, queue, ball, adjacent = integers[2], integers[3], integers[4], integers[5]
    total, first = 0, np.int64(0)  # int64, since a literal would have another type
    for v in range(n):
        total += sizes[v]
        strength = 0.0
        for p in range(starts[v], starts[v + 1]):
            strength += weights[p]
        scale[v] = 1 / np.sqrt(strength) if strength > 0 else 1.0
        labels[v], link[v], link_sums[v], last_ball[v], weight[v] = -1, 0.0, -1.0, -1, 0
    mean = total / n_clusters
    low, high = mean / 3, 1.5 * mean
    head, tail, scanned = 0, 0, 0
    count, n_balls, covered, pocket_weight = first, 0, 0, 0
    while True:
        while head < tail and labels[queue[head]] >= 0:
            head += 1
        if head == tail:
            while scanned < n and labels[(start + scanned) % n] >= 0:
                scanned += 1
            if scanned == n:
                return count
            v = (start + scanned) % n
        else:
            v = queue[head]
        target = mean
        if count < n_clusters and covered > pocket_weight:
            target = (
                (total - covered) / (n_clusters - count) * ((covered - pocket_weight) / covered)
            )
            target = min(max(target, 0.5 * mean), 1.25 * mean)
        last_ball[v], link[v], position[v], touched[0], n_touched = n_balls, 0.0, 0, v, 1
        size = heap_push(heap, first, descending_code(0.0, first))
        ball_size, ball_weight, is_full = 0, 0, False
        while size > 0:
            code = heap[0]
            size = heap_pop(heap, size)
            v = touched[code & ITEM]
            if labels[v] >= 0 or code != descending_code(link[v] * scale[v], np.int64(position[v])):
                continue
            if ball_size and ball_weight + 0.5 * sizes[v] > target:
                is_full = True
                break
            labels[v] = count
            ball[ball_size] = v
            ball_size += 1
            ball_weight += sizes[v]
            for p in range(starts[v], starts[v + 1]):
                u = ends[p]
                if labels[u] >= 0:
                    continue
                if last_ball[u] != n_balls:
                    if last_ball[u] < 0:
                        queue[tail] = u
                        tail += 1
                    last_ball[u], link[u], position[u] = n_balls, 0.0, n_touched
                    touched[n_touched] = u
                    n_touched += 1
                elif weights[p] == 0:
                    continue
                link[u] += weights[p]
                size = heap_push(
                    heap, size, descending_code(link[u] * scale[u], np.int64(position[u]))
                )
        n_balls += 1
        covered += ball_weight
        best = -1
        if not is_full and ball_weight < low:
            n_adjacent = first
            for i in range(ball_size):
                n_adjacent = add_links(
                    links, ball[i], labels, count, link_sums, adjacent, n_adjacent
                )
            best = best_linked(adjacent, n_adjacent, link_sums, weight, ball_weight, high)
        if best >= 0:
            pocket_weight += ball_weight
            weight[best] += ball_weight
            for i in range(ball_size):
                labels[ball[i]] = best
        else:
            weight[count] = ball_weight
            count += 1


@borrowing_kernel
def refine(links, labels, weight, bounds, sweeps, workspace):
    """Move vertices to the cluster of largest total link weight; ties go to the lightest cluster.

    ``labels`` and ``weight`` are updated in place. Moves keep weights within ``bounds``.
    ``workspace`` holds a float and a 32-bit integer for each cluster, a byte for each vertex.
    """
    starts, ends, sizes = links.starts, links.ends, links.sizes
    n, none, zero = labels.size, np.int64(-1), np.int64(0)
    (low, high), (link_sums, adjacent, active) = bounds, workspace
    link_sums[:] = -1.0
    active[:] = 1
    for _ in range(sweeps):
        moved = False
        for v in range(n):
            if active[v] == 0:
                continue
            active[v] = 0
            a = labels[v]
            if weight[a] - sizes[v] < low:
                continue
            n_adjacent = add_links(links, v, labels, none, link_sums, adjacent, zero)
            inside = max(link_sums[a], 0.0)
            # a cluster above ``high`` may give vertices to any that ends up lighter than it was
            limit = high if weight[a] - 1 < high else weight[a] - 1
            best, most, least = a, inside if weight[a] <= high else -1.0, weight[a]
            for i in range(n_adjacent):
                t = adjacent[i]
                load = weight[t] + sizes[v]
                is_better = link_sums[t] > most or (link_sums[t] == most and load < least)
                if t != a and load <= limit and is_better:
                    best, most, least = t, link_sums[t], load
                link_sums[t] = -1.0
            if best != a:
                labels[v] = best
                weight[a] -= sizes[v]
                weight[best] += sizes[v]
                moved = True
                for p in range(starts[v], starts[v + 1]):
                    active[ends[p]] = 1
        if not moved:
            break


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
    n_left, count = n, 0
    for i in range(n):
        v = order[i]
        if groups[v] >= 0:
            continue
        best, score = -1, -1.0
        if n_left > n_groups:
            for p in range(starts[v], starts[v + 1]):
                u = ends[p]
                other = sizes[u] if groups[u] < 0 else weight[groups[u]]
                if other + sizes[v] <= high and weights[p] > score * other:
                    best, score = u, weights[p] / other
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
        weight[best], weight[a] = result, 0
        main[best] |= main[a]
        count -= 1
        if is_swapped:  # the code of the remaining cluster has been popped
            priority[best] = result
            code = (np.int64(main[best]) << 62) | ascending_code(result / total, np.int64(best))
            size = heap_push(heap, size, code)
    return count


@subkernel
def cut_subtrees(order, parents, sizes, load, t, cuts, labels, label):
    """Cut at most ``cuts`` subtrees of weight at least ``t`` off a rooted tree, leaves first.

    ``order`` lists the root first and each vertex after its parent. Returns the number of parts of
    weight at least ``t``. If ``label`` >= 0, the subtrees get labels from ``label`` on.
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


@subkernel
def spanning_tree(links, labels, root, order, parents, cursor, depth_first):
    """Write a spanning tree of the cluster of ``root``, breadth or depth first; return its size.

    ``order`` and ``parents`` are those of ``cut_subtrees``.
    """
    order[0], parents[root], cursor[root] = root, -1, links.starts[root]
    v, count, head = root, 1, 0
    while v >= 0:
        child = -1
        while cursor[v] < links.starts[v + 1]:
            u = links.ends[cursor[v]]
            cursor[v] += 1
            if labels[u] == labels[root] and cursor[u] < 0:
                parents[u], cursor[u], order[count] = v, links.starts[u], u
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
    n, label = labels.size, weight.size
    order, parents = np.empty(n, np.int32), np.empty(n, np.int32)
    load, cursor = np.empty(n, np.int64), np.full(n, -1, np.int64)
    for a in range(weight.size):
        p = parts[a]
        if p == 1:
            continue
        count = spanning_tree(links, labels, first[a], order, parents, cursor, False)
        rim, best, best_depth_first = order[count - 1], 0, False
        for depth_first in (False, True):
            if depth_first and 2 * best * p >= weight[a]:
                break
            spanning_tree(links, labels, rim, order, parents, cursor, depth_first)
            low, high, tree = 1, weight[a] // p, order[:count]
            while low < high:
                t = (low + high + 1) // 2
                if cut_subtrees(tree, parents, links.sizes, load, t, count, labels, -1) >= p:
                    low = t
                else:
                    high = t - 1
            if low > best:
                best, best_depth_first = low, depth_first
        spanning_tree(links, labels, rim, order, parents, cursor, best_depth_first)
        cut_subtrees(order[:count], parents, links.sizes, load, best, p - 1, labels, label)
        label += p - 1
