"""Breadth-first balls and their refinement, on neighbour lists.

``links`` is a :class:`sheafcoarsen.partition.links.Links`. A link of weight 0 is still a link:
weights rank neighbours, and only the lists say who is one.
"""

import numpy as np

from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.partition.adjacent import add_links, best_linked
from sheafcoarsen._kernels.partition.heap import (
    ITEM,
    descending_code,
    heap_pop,
    heap_push,
)


@kernel
def grow(links, n_clusters, start, labels, heap, workspace):
    """Cover the graph with connected balls of about equal weight; return how many.

    There are about ``n_clusters`` of them. A ball starts at the vertex that has waited longest next
    to the earlier balls (``start`` for the first one). It takes next the vertex with the largest
    total link into it, relative to the root of all its links (else balls run through hubs: 205
    balls instead of 283 where 293 are wanted, on a graph of degrees up to 2138), ties by waiting
    time. A ball that is stuck below a third of the mean joins a ball next to it. The target
    weight follows the weight that is not covered yet and that of such pockets. ``workspace`` holds
    (3, n) floats, (6, n) 32-bit integers and (n,) 64-bit ones.
    """
    starts, ends, weights, sizes = links.starts, links.ends, links.weights, links.sizes
    n = labels.size
    floats, integers, weight = workspace
    link, scale, tally = floats[0], floats[1], floats[2]
    turn = integers[0]  # the ball that last touched a vertex, and which link[v] counts into
    place = integers[1]  # where a vertex stands among those touched by that ball
    touched, queue, ball, near = integers[2], integers[3], integers[4], integers[5]
    total, first = 0, np.int64(0)  # a literal would be a type of its own
    for v in range(n):
        total += sizes[v]
        strength = 0.0
        for p in range(starts[v], starts[v + 1]):
            strength += weights[p]
        scale[v] = 1 / np.sqrt(strength) if strength > 0 else 1.0
        labels[v], link[v], tally[v], turn[v], weight[v] = -1, 0.0, -1.0, -1, 0
    mean = total / n_clusters
    low = mean / 3
    high = 1.5 * mean
    head = 0
    tail = 0
    scanned = 0
    count = 0
    turns = 0
    covered = 0
    pockets = 0
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
        aim = mean
        if count < n_clusters and covered > pockets:
            aim = (total - covered) / (n_clusters - count) * ((covered - pockets) / covered)
            aim = min(max(aim, 0.5 * mean), 1.25 * mean)
        turn[v] = turns
        link[v] = 0.0
        place[v] = 0
        touched[0] = v
        n_touched = 1
        size = heap_push(heap, first, descending_code(0.0, first))
        taken = 0
        own = 0
        full = False
        while size > 0:
            code = heap[0]
            size = heap_pop(heap, size)
            v = touched[code & ITEM]
            if labels[v] >= 0 or code != descending_code(link[v] * scale[v], np.int64(place[v])):
                continue
            if taken and own + 0.5 * sizes[v] > aim:
                full = True
                break
            labels[v] = count
            ball[taken] = v
            taken += 1
            own += sizes[v]
            for p in range(starts[v], starts[v + 1]):
                u = ends[p]
                if labels[u] >= 0:
                    continue
                if turn[u] != turns:
                    if turn[u] < 0:
                        queue[tail] = u
                        tail += 1
                    turn[u] = turns
                    link[u] = 0.0
                    place[u] = n_touched
                    touched[n_touched] = u
                    n_touched += 1
                elif weights[p] == 0:
                    continue
                link[u] += weights[p]
                size = heap_push(
                    heap, size, descending_code(link[u] * scale[u], np.int64(place[u]))
                )
        turns += 1
        covered += own
        home = -1
        if not full and own < low:
            n_near = first
            for i in range(taken):
                n_near = add_links(links, ball[i], labels, count, tally, near, n_near)
            home = best_linked(near, n_near, tally, weight, own, high)
            for i in range(n_near):
                tally[near[i]] = -1.0
        if home >= 0:
            pockets += own
            weight[home] += own
            for i in range(taken):
                labels[ball[i]] = home
        else:
            weight[count] = own
            count += 1


@kernel
def refine(links, labels, weight, bounds, sweeps, workspace):
    """Move vertices to the cluster they are linked to best, the lighter of equals, in place.

    Clusters stay within the weights ``bounds``. ``workspace`` holds a float and a 32-bit integer
    for each cluster, a byte for each vertex.
    """
    starts, ends, weights, sizes = links.starts, links.ends, links.weights, links.sizes
    n = labels.size
    (low, high), (tally, near, active) = bounds, workspace
    for a in range(weight.size):
        tally[a] = -1.0
    for v in range(n):
        active[v] = 1
    for _ in range(sweeps):
        moved = False
        for v in range(n):
            if active[v] == 0:
                continue
            active[v] = 0
            a = labels[v]
            if weight[a] - sizes[v] < low:
                continue
            n_near = 0
            inside = 0.0
            for p in range(starts[v], starts[v + 1]):
                t = labels[ends[p]]
                if t == a:
                    inside += weights[p]
                    continue
                if tally[t] < 0:
                    tally[t] = 0.0
                    near[n_near] = t
                    n_near += 1
                tally[t] += weights[p]
            # too heavy a cluster gives its vertices to any that stays lighter than it was
            limit = max(high, weight[a] - 1)
            best, most, least = a, inside if weight[a] <= high else -1.0, weight[a]
            for i in range(n_near):
                t = near[i]
                load = weight[t] + sizes[v]
                if load <= limit and (tally[t] > most or (tally[t] == most and load < least)):
                    best, most, least = t, tally[t], load
                tally[t] = -1.0
            if best != a:
                labels[v] = best
                weight[a] -= sizes[v]
                weight[best] += sizes[v]
                moved = True
                for p in range(starts[v], starts[v + 1]):
                    active[ends[p]] = 1
        if not moved:
            break
