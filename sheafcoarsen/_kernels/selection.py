"""Partitions of a weighted graph: growing, refining, matching and repairing, on neighbour lists.

``links`` is a :class:`sheafcoarsen.selection.Links`. A link of weight 0 is still a link: weights rank neighbours, and
only the lists say who is one.
"""

import numpy as np

from sheafcoarsen._kernels.jit import kernel

PATIENCE = 2.0
"""In :func:`merge`, the growth of a neighbour after which a cluster looks at its neighbours again."""

# ---------------------------------------------------------------- a binary min-heap of int64 codes (key, item)
# One integer is compared and moved where two arrays would be: growing takes 0.8 of the time. Keys count to 24 bits.


@kernel
def _ascending(key, item):
    """Return a code that sorts by ``key`` >= 0, then by ``item`` < 2^32."""
    return (np.int64(np.float32(key).view(np.int32)) << 32) | item


@kernel
def _descending(key, item):
    """Return a code that sorts by ``key`` >= 0 from above, then by ``item`` < 2^32."""
    return (np.int64(0x7FFFFFFF - np.float32(key).view(np.int32)) << 32) | item


@kernel
def _item(code):
    return code & 0xFFFFFFFF


@kernel
def _push(heap, size, code):
    """Add a code to a heap of ``size`` codes; return the new size."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if heap[up] <= code:
            break
        heap[i] = heap[up]
        i = up
    heap[i] = code
    return size + 1


@kernel
def _pop(heap, size):
    """Remove ``heap[0]``, which the caller has read; return the new size."""
    size -= 1
    code = heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if code <= heap[child]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = code
    return size


# ---------------------------------------------------------------- the graph


@kernel
def strengths(sheaf, factor, out):
    """out[e] = norm(F_{u->e}* F_{v->e})_F of the maps times ``factor``, 0 for loops."""
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
        total = 0.0
        for i in range(rows):
            for j in range(cols):
                inner = 0.0 * (sheaf.tail_data[a] * factor)  # in the precision of the product
                for k in range(sheaf.edge_dims[e]):
                    left = np.conj(sheaf.tail_data[a + k * rows + i] * factor)
                    inner += left * (sheaf.head_data[b + k * cols + j] * factor)
                total += abs(inner) ** 2
        out[e] = np.sqrt(total)


@kernel
def neighbours(edges, edge_weights, starts, ends, weights):
    """Fill the neighbour lists of all vertices: loops left out, parallel edges summed; return their total length."""
    n = starts.size - 1
    starts[:] = 0
    for e in range(edges.shape[0]):
        if edges[e, 0] != edges[e, 1]:
            starts[edges[e, 0] + 1] += 1
            starts[edges[e, 1] + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
    fill = starts[:-1].copy()
    for e in range(edges.shape[0]):
        u = edges[e, 0]
        v = edges[e, 1]
        if u != v:
            ends[fill[u]] = v
            weights[fill[u]] = edge_weights[e]
            fill[u] += 1
            ends[fill[v]] = u
            weights[fill[v]] = edge_weights[e]
            fill[v] += 1
    place = fill  # where a neighbour stands in the list being written
    place[:] = -1
    count = 0
    begin = 0
    for v in range(n):
        first = count
        end = starts[v + 1]
        for p in range(begin, end):
            u = ends[p]
            if place[u] >= first:
                weights[place[u]] += weights[p]
            else:
                place[u] = count
                ends[count] = u
                weights[count] = weights[p]
                count += 1
        begin = end
        starts[v + 1] = count
    return count


# ---------------------------------------------------------------- balls


@kernel
def _best_linked(near, n_near, tally, cluster_weights, own, high):
    """Pick a neighbouring cluster: the best linked of those with room, else the lightest."""
    best = -1
    best_fits = False
    for i in range(n_near):
        t = near[i]
        fits = cluster_weights[t] + own <= high
        if best < 0 or (fits and not best_fits):
            better = True
        elif fits != best_fits:
            better = False
        elif fits or cluster_weights[t] == cluster_weights[best]:
            better = tally[t] > tally[best]
        else:
            better = cluster_weights[t] < cluster_weights[best]
        if better:
            best = t
            best_fits = fits
    return best


@kernel
def grow(links, n_clusters, start, labels, heap):
    """Cover the graph with connected balls of about equal weight, about ``n_clusters`` of them; return how many.

    A ball starts at the vertex that has waited longest next to the earlier balls (``start`` for the first one). It
    takes next the vertex with the largest total link into it, relative to the root of all its links (else balls run
    through hubs: 205 balls instead of 283 where 293 are wanted, on a graph of degrees up to 2138), ties by waiting
    time. A ball that is stuck below a third of the mean joins a ball next to it. The weight aimed at follows what is
    left to cover and how much such pockets have added.
    """
    n = labels.size
    total = links.sizes.sum()
    mean = total / n_clusters
    low = mean / 3
    high = 1.5 * mean
    labels[:] = -1
    link = np.zeros(n)
    scale = np.ones(n)
    for v in range(n):
        strength = 0.0
        for p in range(links.starts[v], links.starts[v + 1]):
            strength += links.weights[p]
        if strength > 0:
            scale[v] = 1 / np.sqrt(strength)
    turn = np.full(n, -1, np.int32)  # the ball that last touched a vertex, and which link[v] counts into
    place = np.empty(n, np.int32)  # where a vertex stands among those touched by that ball
    touched = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    head = 0
    tail = 0
    scanned = 0
    ball = np.empty(n, np.int32)
    weight = np.zeros(n, np.int64)
    tally = np.full(n, -1.0)
    near = np.empty(n, np.int32)
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
        size = _push(heap, 0, _descending(0.0, 0))
        taken = 0
        own = 0
        full = False
        while size > 0:
            code = heap[0]
            size = _pop(heap, size)
            v = touched[_item(code)]
            if labels[v] >= 0 or code != _descending(link[v] * scale[v], place[v]):
                continue
            if taken and own + 0.5 * links.sizes[v] > aim:
                full = True
                break
            labels[v] = count
            ball[taken] = v
            taken += 1
            own += links.sizes[v]
            for p in range(links.starts[v], links.starts[v + 1]):
                u = links.ends[p]
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
                elif links.weights[p] == 0:
                    continue
                link[u] += links.weights[p]
                size = _push(heap, size, _descending(link[u] * scale[u], place[u]))
        turns += 1
        covered += own
        home = -1
        if not full and own < low:
            n_near = 0
            for i in range(taken):
                for p in range(links.starts[ball[i]], links.starts[ball[i] + 1]):
                    t = labels[links.ends[p]]
                    if t != count:
                        if tally[t] < 0:
                            tally[t] = 0.0
                            near[n_near] = t
                            n_near += 1
                        tally[t] += links.weights[p]
            home = _best_linked(near, n_near, tally, weight, own, high)
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
def refine(links, labels, weight, low, high, sweeps):
    """Move vertices to the cluster they are linked to best, while cluster weights stay within ``low`` .. ``high``."""
    n = labels.size
    tally = np.full(weight.size, -1.0)
    near = np.empty(weight.size, np.int32)
    active = np.ones(n, np.uint8)
    for _ in range(sweeps):
        moved = False
        for v in range(n):
            if active[v] == 0:
                continue
            active[v] = 0
            a = labels[v]
            if weight[a] - links.sizes[v] < low:
                continue
            n_near = 0
            inside = 0.0
            for p in range(links.starts[v], links.starts[v + 1]):
                t = labels[links.ends[p]]
                if t == a:
                    inside += links.weights[p]
                    continue
                if tally[t] < 0:
                    tally[t] = 0.0
                    near[n_near] = t
                    n_near += 1
                tally[t] += links.weights[p]
            best = a
            most = inside
            for i in range(n_near):
                t = near[i]
                if tally[t] > most and weight[t] + links.sizes[v] <= high:
                    best = t
                    most = tally[t]
                tally[t] = -1.0
            if best != a:
                labels[v] = best
                weight[a] -= links.sizes[v]
                weight[best] += links.sizes[v]
                moved = True
                for p in range(links.starts[v], links.starts[v + 1]):
                    active[links.ends[p]] = 1
        if not moved:
            break


# ---------------------------------------------------------------- matching


@kernel
def match(links, order, n_groups, high, groups):
    """Join vertices along the link that is heaviest relative to what it joins; return the number of groups.

    Each vertex, in the given order, pairs with a free neighbour or is absorbed by a neighbour's group, within weight
    ``high``. Absorbing is what keeps stars and heavy triangles going, where pairs alone stall or take weak links. Stops
    at ``n_groups`` groups.
    """
    n = groups.size
    groups[:] = -1
    weight = np.zeros(n, np.int64)
    left = n
    count = 0
    for i in range(n):
        v = order[i]
        if groups[v] >= 0:
            continue
        best = -1
        score = -1.0
        if left > n_groups:
            for p in range(links.starts[v], links.starts[v + 1]):
                u = links.ends[p]
                other = links.sizes[u] if groups[u] < 0 else weight[groups[u]]
                if other + links.sizes[v] <= high and links.weights[p] > score * other:
                    best = u
                    score = links.weights[p] / other
        if best >= 0:
            left -= 1
        if best >= 0 and groups[best] >= 0:
            groups[v] = groups[best]
        else:
            groups[v] = count
            count += 1
            if best >= 0:
                groups[best] = groups[v]
                weight[groups[v]] += links.sizes[best]
        weight[groups[v]] += links.sizes[v]
    return count


# ---------------------------------------------------------------- repair


@kernel
def fragments(links, labels, out):
    """Fill ``out`` with the numbers of the clusters' connected pieces; return how many there are."""
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
            for p in range(links.starts[v], links.starts[v + 1]):
                u = links.ends[p]
                if out[u] < 0 and labels[u] == labels[s]:
                    out[u] = count
                    queue[tail] = u
                    tail += 1
        count += 1
    return count


@kernel
def _turn(main, share, a):
    """Return the code of a cluster in :func:`merge`; bit 62 of a code is free for a share of at most 1."""
    return (np.int64(main) << 62) | _ascending(share, a)


@kernel
def merge(links, labels, weight, main, n_clusters, low, high):
    """Merge connected clusters into neighbours: those below ``low``, and more until ``n_clusters`` are left.

    Pieces cut off from their cluster (not ``main``) come first, then the lightest; one that has no neighbour with room
    waits until nothing makes a lighter cluster than it would. ``labels`` are changed in place; a cluster that has gone
    has ``weight`` 0. Returns the number left: above ``n_clusters`` only where all of them are whole components.

    The lighter of two moves, so that a vertex moves at most log2(total weight) times; and one that waits is looked at
    again only after what it waits for has grown by ``PATIENCE``, so that a star takes no quadratic time.
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
        size = _push(heap, size, _turn(main[a], turn[a] / total, a))
    while size > 0:
        code = heap[0]
        size = _pop(heap, size)
        a = _item(code)
        if weight[a] == 0:
            continue
        if turn[a] < weight[a]:  # it has grown since
            turn[a] = weight[a]
            size = _push(heap, size, _turn(main[a], turn[a] / total, a))
            continue
        if count <= n_clusters and weight[a] >= low:
            continue
        n_near = 0
        v = first[a]
        while True:
            for p in range(links.starts[v], links.starts[v + 1]):
                t = labels[links.ends[p]]
                if t != a:
                    if tally[t] < 0:
                        tally[t] = 0.0
                        near[n_near] = t
                        n_near += 1
                    tally[t] += links.weights[p]
            v = following[v]
            if v == first[a]:
                break
        best = _best_linked(near, n_near, tally, weight, weight[a], high)
        for i in range(n_near):
            tally[near[i]] = -1.0
        if best < 0:
            continue
        result = weight[a] + weight[best]
        if result > high and result > PATIENCE * turn[a]:
            turn[a] = result
            size = _push(heap, size, _turn(main[a], turn[a] / total, a))
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
            size = _push(heap, size, _turn(main[best], result / total, best))
    return count


@kernel
def pack(weight, order, bins, n_bins):
    """Put items, heaviest first, each into the bin that is lightest so far: bins[item] = bin."""
    heap = np.arange(n_bins)  # all with key 0
    load = np.zeros(n_bins)
    for i in range(order.size):
        lightest = _item(heap[0])
        bins[order[i]] = lightest
        load[lightest] += weight[order[i]]
        size = _pop(heap, n_bins)
        _push(heap, size, _ascending(load[lightest], lightest))


@kernel
def apportion(weight, limits, total, parts):
    """Share ``total`` parts out: one each, then always to the largest weight per part; at most ``limits``."""
    heap = np.empty(weight.size, np.int64)
    size = 0
    for a in range(weight.size):
        parts[a] = 1
        if limits[a] > 1:
            size = _push(heap, size, _descending(weight[a], a))
    for _ in range(total - weight.size):
        a = _item(heap[0])
        size = _pop(heap, size)
        parts[a] += 1
        if parts[a] < limits[a]:
            size = _push(heap, size, _descending(weight[a] / parts[a], a))


@kernel
def _carve(order, above, sizes, load, t, cuts, labels, label):
    """Cut subtrees of weight at least ``t`` off a rooted tree, leaves first, at most ``cuts`` of them.

    ``order`` lists the root first and each vertex after the one ``above`` it. Returns the number of parts of weight at
    least ``t``. With ``label`` >= 0 the parts that were cut off get the labels ``label``, ``label`` + 1, ...
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
def _span(links, labels, root, order, above, cursor, deep):
    """Span the cluster of ``root`` by a tree, breadth or depth first; fill ``order`` and ``above``, return its size."""
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

    The parts are subtrees of a spanning tree, cut so that the lightest is as heavy as that tree allows. The tree is a
    breadth-first one from the rim, which makes compact parts, or, where its best is under half of an even share (a hub
    makes it a star), a depth-first one if that does better.
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
        count = _span(links, labels, first[a], order, above, cursor, False)
        rim = order[count - 1]
        best = 0
        best_deep = False
        for deep in (False, True):
            if deep and 2 * best * p >= weight[a]:
                break
            _span(links, labels, rim, order, above, cursor, deep)
            low = 1
            high = weight[a] // p
            while low < high:
                t = (low + high + 1) // 2
                if _carve(order[:count], above, links.sizes, load, t, count, labels, -1) >= p:
                    low = t
                else:
                    high = t - 1
            if low > best:
                best = low
                best_deep = deep
        _span(links, labels, rim, order, above, cursor, best_deep)
        _carve(order[:count], above, links.sizes, load, best, p - 1, labels, label)
        label += p - 1
