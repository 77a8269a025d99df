"""Counts before and after an elimination."""

import networkx as nx

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.elimination import dim_of_few_edges


def test_counts_before_and_after_an_elimination():
    F = CellularSheaf.constant([[0, 1], [1, 2], [2, 3], [3, 0], [2, 4], [0, 0]], n_vertices=6)
    K = sc.eliminate(F, keep=[0, 2])
    S = K.sizes
    assert (S.vertices, S.edges, S.loops, S.dim_c0) == ((6, 2), (6, 1), (1, 0), (6, 2))
    assert S.by_neighbors == (1, 1, 2)
    assert S.nonzeros == (sc.laplacian(F).nnz, 4)
    what = "1 without neighbours, 1 leaf, 2 in chains"
    wanted = f"6 -> 2 vertices: {what}; dim C^0 6 -> 2, 6 -> 1 edges + 0 loops"
    assert repr(K) == f"Elimination({wanted})"
    assert "in chains" in K._repr_html_()
    assert "<caption>Elimination</caption>" in K._repr_html_()
    assert S.rows[:3] == [("vertices", 6, 2), ("edges", 6, 1), ("of them loops", 1, 0)]
    assert S.rows[3:6] == [
        ("dim C^0", 6, 2),
        ("dim C^1", 6, 1),
        ("nonzeros of L", S.nonzeros[0], 4),
    ]
    assert [row[0] for row in S.rows[6:]] == [
        f"eliminated: {w}" for w in ("1 without neighbours", "1 leaf", "2 in chains")
    ]
    wanted = f"4 of 6 vertices eliminated exactly ({what}); dim C^0 6 -> 2"
    assert S.remark == wanted


def test_summary_of_an_elimination_without_eliminated_vertices():
    K = sc.eliminate(CellularSheaf.constant(nx.complete_graph(4)))
    assert repr(K) == "Elimination(4 -> 4 vertices; dim C^0 4 -> 4, 6 -> 6 edges + 0 loops)"
    assert K.sizes.remark == "0 of 4 vertices eliminated exactly (nothing); dim C^0 4 -> 4"


def test_remaining_loops_are_not_counted_as_edges():
    K = sc.eliminate(CellularSheaf.random(nx.star_graph(3), [2, 1, 1, 1], 2, seed=3), keep=[0])
    assert (
        repr(K) == "Elimination(4 -> 1 vertices: 3 leaves; dim C^0 5 -> 2, 3 -> 0 edges + 1 loops)"
    )


def test_vertices_eliminated_by_star_mesh_are_counted():
    F = CellularSheaf.constant(nx.star_graph(3))
    K = sc.eliminate(F, keep=[1, 2, 3], max_neighbors=3)
    assert K.sizes.by_neighbors == (0, 0, 0, 1)
    assert "1 with 3 or more neighbours" in repr(K)


def test_the_repr_is_short_whatever_the_numbers_of_neighbours():
    F = CellularSheaf.constant(nx.barabasi_albert_graph(400, 2, seed=3))
    K = sc.eliminate(F, max_neighbors=20)
    S = K.sizes
    many = sum(S.by_neighbors[3:])
    assert len(S.by_neighbors) == 21
    assert f"{S.by_neighbors[2]} in chains, {many} with 3 or more neighbours; dim C^0" in repr(K)
    assert len(repr(K)) < 200


def test_dim_of_few_edges_counts_stalks_with_at_most_two_half_edges():
    F = CellularSheaf.random([[0, 1], [1, 2], [1, 3], [3, 3], [3, 0]], [1, 2, 4, 8], 1, seed=3)
    assert dim_of_few_edges(F) == 1 + 4 + 8  # loops do not count as half-edges
