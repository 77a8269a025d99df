"""Partition of a graph into balls, and its refinement.

``links`` is a :class:`sheafcoarsen.partition.links.Links`. A link of weight 0 is a link: weights
only rank neighbours.
"""

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel
from sheafcoarsen._kernels.partition.heap import ITEM, descending_code, heap_pop, heap_push
from sheafcoarsen._kernels.partition.links import add_links, best_linked


@borrowing_kernel
def grow(links, n_clusters, start, labels, heap, workspace):
    """Partition the graph into about ``n_clusters`` connected balls; return their number.

    Balls have about equal weight. The first one starts at ``start``, each other one at the vertex
    that has been adjacent to earlier balls for the longest time. A ball grows by the vertex with
    the largest sum of links into it, divided by the square root of all its links, and the first
    one among equals. Without the division balls run through hubs: 205 balls instead of 283 for 293
    wanted ones, on a graph of degrees up to 2138. A ball that cannot grow to a third of the mean
    weight is merged into an adjacent ball. The target weight depends on the weight not covered yet
    and on that of such balls. ``workspace`` holds (3, n) floats, (6, n) 32-bit integers and (n,)
    64-bit integers.
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
    low = mean / 3
    high = 1.5 * mean
    head = 0
    tail = 0
    scanned = 0
    count = first
    n_balls = 0
    covered = 0
    pocket_weight = 0
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
        last_ball[v] = n_balls
        link[v] = 0.0
        position[v] = 0
        touched[0] = v
        n_touched = 1
        size = heap_push(heap, first, descending_code(0.0, first))
        ball_size = 0
        ball_weight = 0
        is_full = False
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
                    last_ball[u] = n_balls
                    link[u] = 0.0
                    position[u] = n_touched
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
            for i in range(n_adjacent):
                link_sums[adjacent[i]] = -1.0
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

    ``labels`` and ``weight`` are updated in place. Moves keep weights within ``bounds``, but a
    cluster above them gives vertices, whatever its own links, to any that ends up lighter than it
    was.
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
