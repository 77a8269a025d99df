"""Breadth-first balls, their refinement, and the heap that both repair and balls wait in."""

import networkx as nx
import numpy as np

from sheafcoarsen._kernels.partition import balls
from sheafcoarsen._kernels.partition import heap as heaps
from sheafcoarsen.partition.balls import SWEEPS, find_balls
from sheafcoarsen.partition.links import links_of
from tests.support.kernels import from_python


def room_to_grow(n):
    return np.empty((3, n)), np.empty((6, n), np.int32), np.empty(n, np.int64)


def test_balls_do_not_run_through_hubs():
    links = links_of(nx.barabasi_albert_graph(4000, 3, seed=23), "graph")
    labels = np.empty(4000, dtype=np.int32)
    heap = np.empty(len(links.ends) + 1, dtype=np.int64)
    count = balls.grow(links, 100, 29, labels, heap, room_to_grow(4000))
    assert 90 <= count <= 110


def test_refinement_sweeps_lower_the_cut():
    G = nx.random_geometric_graph(1500, 0.05, seed=13)
    edges = np.array(G.edges)
    links = links_of(G, "graph")
    n_clusters = 60
    labels = np.empty(1500, dtype=np.int32)
    heap = np.empty(len(links.ends) + 1, dtype=np.int64)
    count = balls.grow(links, n_clusters, 17, labels, heap, room_to_grow(1500))
    before = (labels[edges[:, 0]] != labels[edges[:, 1]]).sum()
    weight = np.bincount(labels, minlength=count)
    mean = 1500 / n_clusters
    room = np.empty(count), np.empty(count, np.int32), np.empty(1500, np.uint8)
    balls.refine(links, labels, weight, (mean / 3, 1.5 * mean), SWEEPS, room)
    assert (labels[edges[:, 0]] != labels[edges[:, 1]]).sum() < 0.95 * before
    assert np.array_equal(weight, np.bincount(labels, minlength=count))


def test_heap_sorts():
    rng = np.random.default_rng(19)
    values = rng.integers(0, 9, 200) / 4
    push, pop = from_python(heaps.heap_push), from_python(heaps.heap_pop)
    for code in (heaps.ascending_code, heaps.descending_code):
        heap = np.empty(200, dtype=np.int64)
        size = 0
        for i, value in enumerate(values):
            size = push(heap, size, from_python(code)(value, i))
        order = []
        while size:
            order.append(int(heap[0] & heaps.ITEM))
            size = pop(heap, size)
        sign = 1 if code is heaps.ascending_code else -1
        assert order == np.argsort(sign * values, kind="stable").tolist()


def test_balls_are_grown_and_then_refined():
    links = links_of(nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 21)), "graph")
    found = find_balls(links, 20, np.random.default_rng(3))
    grown = np.empty(420, dtype=np.int32)
    heap = np.empty(len(links.ends) + 1, dtype=np.int64)
    start = int(np.random.default_rng(3).integers(420))
    count = balls.grow(links, 20, start, grown, heap, room_to_grow(420))
    assert found.max() + 1 == count
    assert 0 < (found != grown).sum() < 210
