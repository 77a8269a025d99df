"""The coarse sheaf: order of edges, and maps."""

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from tests.support import reference
from tests.support.helpers import ties_allowed
from tests.support.strategies import bases, mode_counts, sheaves_with_partitions


@st.composite
def coarsenings(draw, **options):
    """Draw a coarsening of any kind: internal or principal modes, or own blocks."""
    F, P = draw(sheaves_with_partitions())
    kind = draw(st.sampled_from(["internal", "principal", "basis"]))
    if kind == "basis":
        return sc.coarsen(F, P, basis=draw(bases(F, P)), **options)
    with ties_allowed():
        return sc.coarsen(F, P, draw(mode_counts(P)), local_operator=kind, **options)


def blocks_of(C):
    return [C.block(a) for a in range(C.partition.n_clusters)]


# ---------------------------------------------------------------- crossing edges


@given(coarsenings())
def test_crossing_edges_are_sorted_and_followed_by_sorted_loops(C):
    F, P = C.fine, C.partition
    groups = reference.crossing_groups(F, P)
    crossing, loops = (
        C.sheaf.edges[: C.n_crossing_edges].tolist(),
        C.sheaf.edges[C.n_crossing_edges :].tolist(),
    )
    assert [tuple(edge) for edge in crossing] == list(groups)  # sorted, a < b
    assert all(a == b for a, b in loops)
    assert loops == sorted(loops)
    assert len({a for a, _ in loops}) == len(loops)  # at most one loop per cluster
    dims = [sum(int(F.edge_dims[e]) for e in group) for group in groups.values()]
    assert C.sheaf.edge_dims[: C.n_crossing_edges].tolist() == dims
    assert C.sheaf.vertex_dims.tolist() == [R_a.shape[1] for R_a in blocks_of(C)]
    assert C.crossing_rows.tolist() == reference.crossing_rows(F, P)
    assert not C.crossing_rows.flags.writeable


@pytest.mark.parametrize("ends", [(0, 1), (1, 0)], ids=["tail in a", "tail in b"])
def test_a_coarse_edge_matches_hand_computation(ends):
    F = CellularSheaf([ends, (0, 1)], [[[2.0]], [[5.0]]], [[[3.0]], [[7.0]]])
    C = sc.coarsen(F, Partition([0, 1]), 1)
    tail, head = C.sheaf.tail_map(0), C.sheaf.head_map(0)
    if ends == (0, 1):
        assert (tail.tolist(), head.tolist()) == ([[2], [5]], [[3], [7]])
    else:  # both maps change sign, so that delta = 2 x_1 - 3 x_0 as before
        assert (tail.tolist(), head.tolist()) == ([[-3], [5]], [[-2], [7]])
    assert sc.coboundary(C.sheaf).toarray().tolist() == sc.coboundary(F).toarray().tolist()
    assert C.n_crossing_edges == C.sheaf.n_edges == 1


# ---------------------------------------------------------------- loops


BUNDLE = gallery.bundle(nx.connected_watts_strogatz_graph(30, 4, 0.3, seed=5), 3, seed=7)


THREE_BALLS = Partition(np.arange(30) // 10)


def test_a_user_basis_on_a_bundle_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        basis = [np.eye(30, 2)] * 3
        assert sc.coarsen(BUNDLE, THREE_BALLS, basis=basis).sheaf.vertex_dims.tolist() == [2, 2, 2]
