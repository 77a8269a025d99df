"""Elimination as a theorem (docs/conventions.md, section 12), on all kinds of sheaves.

The sheaf that is left has the generalized Schur complement as its Laplacian, extensions have least
energy and norm, and global sections restrict onto global sections.
"""

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support import reference
from tests.support.helpers import LIMIT, assert_residual, eps_of, size
from tests.support.strategies import DTYPES, graphs, sheaves
from tests.theory.test_theorems import random_cochain

CLEAR = 1e-6
"""Smallest nonzero singular value of the reference above which its own inverse has digits left."""


@st.composite
def eliminations(draw, **options):
    """Draw (sheaf, vertices to keep, elimination)."""
    F = draw(sheaves(graph=graphs(max_vertices=8), **options))
    vertices = st.lists(st.integers(0, F.n_vertices - 1), max_size=3, unique=True)
    keep = draw(vertices if F.n_vertices else st.just([]))
    return F, keep, sc.eliminate(F, keep=np.array(keep, int))


def assert_more_neighbors(K, keep, most):
    """Assert that every remaining vertex that need not be kept has more than ``most`` neighbors."""
    graph = nx.Graph(K.sheaf.edges.tolist())
    graph.add_nodes_from(range(K.sheaf.n_vertices))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    assert all(degree > most for v, degree in graph.degree() if K.kept[v] not in keep)


@given(eliminations())
def test_laplacian_after_elimination_is_the_schur_complement(case):
    F, keep, K = case
    assert set(keep) <= set(K.kept.tolist())
    assert sorted([*K.kept, *K.eliminated]) == list(range(F.n_vertices))
    assert_more_neighbors(K, keep, 2)
    wanted, delta = reference.schur_complement(F, K.kept.tolist()), reference.coboundary(F)
    error = reference.laplacian(K.sheaf) - wanted.laplacian
    # im M, and so the reference, is accurate to eps / smallest
    assert_residual(error, delta, delta, 1 / wanted.smallest, n=F.dim_c0, eps=eps_of(F.dtype))
    assert (K.sheaf.edge_dims <= K.sheaf.vertex_dims[K.sheaf.edges].sum(axis=1)).all()


@given(eliminations())
def test_laplacian_does_not_depend_on_the_order_of_elimination(case):
    """Eliminate the same vertices at once, and in two calls of which the first keeps some."""
    F, _, first = case
    second = sc.eliminate(first.sheaf)
    at_once = sc.eliminate(F, keep=first.kept[second.kept])
    delta = reference.coboundary(F)
    assert np.array_equal(at_once.kept, first.kept[second.kept])
    error = reference.laplacian(second.sheaf) - reference.laplacian(at_once.sheaf)
    assert_residual(error, delta, delta, n=F.dim_c0, eps=eps_of(F.dtype))


@given(eliminations())
def test_extensions_have_minimum_energy_and_minimum_norm(case):
    F, _, K = case
    wanted = reference.schur_complement(F, K.kept.tolist())
    z = random_cochain(K.sheaf, 7, columns=2)
    x = K.extend(z)
    assert np.array_equal(x[wanted.kept], z)
    delta = reference.coboundary(F)
    unit = size(delta) or 1.0
    lines = delta / unit @ x
    for j in range(2):  # the derivative of the energy is zero in every direction
        slope = (delta / unit).conj().T[wanted.eliminated] @ lines[:, j]
        bound = (delta / unit, delta / unit, x[:, j])
        assert_residual(slope, *bound, n=F.dim_c0, eps=eps_of(F.dtype))
    if wanted.smallest > CLEAR:
        error = x[wanted.eliminated] - wanted.extension @ z
        scale = size(x) / wanted.smallest**2
        assert size(error) <= LIMIT * max(F.dim_c0, 1) * eps_of(F.dtype) * scale
    assert_residual(K.prolongation @ z - x, x, n=F.dim_c0, eps=eps_of(F.dtype))


@given(eliminations(scales=(1.0,), spread=False))
def test_extended_solutions_solve_the_fine_system(case):
    F, _, K = case
    wanted = reference.schur_complement(F, K.kept.tolist())
    L = reference.laplacian(F).astype(np.result_type(F.dtype, float))
    S = reference.laplacian(K.sheaf).astype(L.dtype)
    if wanted.smallest < 1e-3:
        return
    b = L @ random_cochain(F, 7).astype(L.dtype)
    z = np.linalg.lstsq(S, K.reduce(b), rcond=1e4 * eps_of(F.dtype))[0]
    x = K.extend(z, b)
    scale = size(L) * (size(x) + size(z)) + size(b)
    assert size(L @ x - b) <= 1e4 * max(F.dim_c0, 1) * eps_of(F.dtype) * scale / wanted.smallest**2


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularProblemWarning")
@given(eliminations(scales=(1.0,), spread=False))
def test_sections_of_the_reduced_sheaf_are_restrictions_of_fine_sections(case):
    """The kernel of the restriction consists of sections on the eliminated vertices."""
    F, _, K = case
    wanted = reference.schur_complement(F, K.kept.tolist())
    level = 100 * max(F.dim_c1, F.dim_c0, 1) * eps_of(F.dtype) * max(F.largest_entry, 1)

    def rank(matrix):
        sigma = np.linalg.svd(matrix.astype(complex), compute_uv=False)
        assert not ((sigma > level) & (sigma < 1e3 * level)).any() or F.dtype.itemsize <= 8
        return int((sigma > level).sum())

    delta = reference.coboundary(F)
    h0 = F.dim_c0 - rank(delta)
    alone = len(wanted.eliminated) - rank(delta[:, wanted.eliminated])
    assert K.sheaf.dim_c0 - rank(reference.coboundary(K.sheaf)) == h0 - alone


@pytest.mark.parametrize(
    ("graph", "most", "dim", "spread", "dtype"),
    [
        *((nx.cycle_graph(40), 2, dim, spread, float) for dim in (1, 2) for spread in (0, 4, 8)),
        *((nx.cycle_graph(40), 2, 3, 0, dtype) for dtype in DTYPES),
        *((nx.complete_graph(9), 8, dim, 2, float) for dim in (1, 2, 3)),
    ],
)
def test_elimination_of_flat_graphs_leaves_one_vertex_and_no_edge(graph, most, dim, spread, dtype):
    """Rounding errors of the maps and of all steps must be recognized as such."""
    edges = np.array(graph.edges)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        frames = rng.standard_normal((len(graph), dim, dim))
        frames = np.linalg.qr(frames)[0] if most > 2 or dim > 2 else frames
        turns = np.linalg.qr(rng.standard_normal((len(edges), dim, dim)))[0]
        turns *= 10.0 ** rng.uniform(-spread, spread, (len(edges), 1, 1))
        maps = ((turns @ frames[ends]).astype(dtype) for ends in edges.T)
        K = sc.eliminate(sc.CellularSheaf(edges, *maps), keep=[0], max_neighbors=most)
        assert K.kept.tolist() == [0]
        assert K.sheaf.n_edges == 0


@given(
    graph=graphs(min_vertices=1),
    dim=st.integers(1, 3),
    most=st.integers(3, 6),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([float, complex, np.float32]),
    flat=st.booleans(),
)
@example(graph=(5, np.array([[0, 1], [0, 2], [0, 3], [0, 4]])), dim=2, most=4, seed=1, dtype=float,
         flat=False)  # fmt: skip
def test_star_mesh_is_exact_for_connections(graph, dim, most, seed, dtype, flat):
    n, edges = graph
    F = sc.CellularSheaf.random(edges, [dim] * n, [dim] * len(edges), "orthogonal", seed, dtype)
    if flat:
        F = F.with_maps(*[np.tile(np.eye(dim, dtype=dtype), (len(edges), 1, 1))] * 2)
    weights = np.random.default_rng(seed).uniform(0.5, 2, len(edges))
    scale = np.repeat(weights, np.diff(F.tail_offsets)).astype(F.dtype)
    F = F.with_maps(F.tail_data * scale, F.head_data * scale)
    K = sc.eliminate(F, keep=[0], max_neighbors=most)
    wanted, delta = reference.schur_complement(F, K.kept.tolist()), reference.coboundary(F)
    error = reference.laplacian(K.sheaf) - wanted.laplacian
    assert_residual(error, delta, delta, n=F.dim_c0, eps=eps_of(F.dtype))
    z = random_cochain(K.sheaf, 7)
    error = K.extend(z)[wanted.eliminated] - wanted.extension @ z
    assert size(error) <= LIMIT * F.dim_c0 * eps_of(F.dtype) * max(size(z), 1) / wanted.smallest**2
    if flat or dim == 1:  # without holonomy every vertex can be eliminated
        assert_more_neighbors(K, [0], most)
