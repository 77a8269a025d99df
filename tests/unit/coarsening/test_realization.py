"""The coarse sheaf: order of edges, and maps."""

import pytest
from hypothesis import given

from tests.support import reference
from tests.theory.test_theorems import coarsenings


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
