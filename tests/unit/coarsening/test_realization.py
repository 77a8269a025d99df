"""The coarse sheaf: order of edges, and maps."""

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from sheafcoarsen import Partition, gallery
from tests.support import reference
from tests.theory.test_theorems import coarsenings

# ---------------------------------------------------------------- crossing edges


@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
@given(coarsenings())
def test_crossing_edges_are_sorted_and_followed_by_sorted_loops(case):
    C, blocks = case
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
    assert C.sheaf.vertex_dims.tolist() == [R_a.shape[1] for R_a in blocks]
    assert C.crossing_rows.tolist() == reference.crossing_rows(F, P)
    assert not C.crossing_rows.flags.writeable


# ---------------------------------------------------------------- loops


BUNDLE = gallery.bundle(nx.connected_watts_strogatz_graph(30, 4, 0.3, seed=5), 3, seed=7)


THREE_BALLS = Partition(np.arange(30) // 10)


def test_a_user_basis_on_a_bundle_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        basis = [np.eye(30, 2)] * 3
        assert sc.coarsen(BUNDLE, THREE_BALLS, basis=basis).sheaf.vertex_dims.tolist() == [2, 2, 2]
