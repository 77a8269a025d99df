"""The smallest positive singular values, above any number of zeros and of small components."""

from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.quality import smallest_singular_values as smallest
from sheafcoarsen.solve import EigenProblem, eigensolver
from tests.support.helpers import assert_residual

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def low_pairs(F, k):
    D, size = sc.coboundary(F), np.linalg.norm(sc.laplacian(F).toarray(), np.inf) ** 0.5
    return smallest.low_pairs(D, k, np.finfo(float).eps, size, sheaf=F)


def singular_values(F):
    """Return those of the coboundary, ascending."""
    return np.linalg.svd(sc.coboundary(F).toarray(), compute_uv=False)[::-1]


def many_components(count, dim=3):
    """Return the constant sheaf on a grid and many small paths, as in citation graphs."""
    trees = [nx.path_graph(2 + i % 2) for i in range(count)] + [nx.grid_2d_graph(12, 11)]
    return sc.CellularSheaf.constant(nx.disjoint_union_all(trees), dim)


@pytest.mark.parametrize(("count", "dim", "spread"), [(170, 3, 0), (300, 2, 0), (170, 3, 3)])
def test_positive_singular_values_are_found_above_many_zeros(count, dim, spread):
    """With a spread, those of paths are between those of the grid."""
    graph, F = many_components(count, 1), many_components(count, dim)
    weights = 10 ** np.random.default_rng(0).uniform(-spread, 0, F.n_edges)
    weights[-(11 * 12 + 10 * 11 + 11) :] = 1.0  # the grid
    graph = graph.with_maps(weights, weights)
    weights = np.repeat(weights, dim**2)
    F = F.with_maps(weights * F.tail_data, weights * F.head_data)
    D = sc.coboundary(F)
    Z = sc.global_sections(F).basis
    found = low_pairs(F, 12)
    exact = singular_values(graph)
    exact = np.repeat(np.append(np.zeros(graph.dim_c0 - len(exact)), exact), dim)
    assert found.kernel == dim * (count + 1)
    positive = exact[found.kernel :]
    np.testing.assert_allclose(found.sigma[: found.end], positive[: found.end], rtol=1e-9)
    assert found.end >= 12
    residual = D.T @ (D @ found.vectors) - found.vectors * found.sigma**2
    assert abs(residual[:, : found.end]).max() < 1e-9
    assert abs(found.vectors.T @ Z).max() < 1e-9


def test_a_wrong_kernel_is_rejected_and_computed_densely(monkeypatch):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(30, 30))
    wrong = np.linalg.qr(np.random.default_rng(3).standard_normal((900, 3)))[0]
    monkeypatch.setattr(eigensolver, "global_sections", lambda sheaf: SimpleNamespace(basis=wrong))
    found = low_pairs(F, 2)
    assert (found.kernel, found.end) == (1, 2)
    assert found.zero < 1e-12  # rejected vectors do not count


def test_spectral_quality_of_a_sheaf_with_many_zeros(monkeypatch):
    """Neither fine nor coarse zeros are computed by the iteration or by a dense solver."""
    F = many_components(200)
    C = sc.coarsen(F, sc.select(F, 450), 2, loops=False)
    monkeypatch.setattr(smallest, "MAX_DENSE", 1000)
    Q = sc.spectral_quality(C, 6)
    assert Q.kernel_fine == 603
    fine = np.repeat(np.linalg.eigvalsh(sc.laplacian(many_components(200, 1)).toarray()), 3)
    coarse = np.linalg.eigvalsh(C.galerkin().toarray())
    k = len(Q.fine)
    np.testing.assert_allclose(Q.fine, fine[603 : 603 + k], rtol=1e-9)
    np.testing.assert_allclose(Q.coarse, coarse[603 : 603 + k], rtol=1e-9)


def test_a_sheaf_without_zeros_needs_no_kernel(monkeypatch):
    F = sc.gallery.bundle(nx.grid_2d_graph(30, 15), 2, noise=0.5, seed=3)
    monkeypatch.setattr(eigensolver, "global_sections", None)
    found = low_pairs(F, 4)
    assert found.kernel == 0
    np.testing.assert_allclose(found.sigma[: found.end], singular_values(F)[: found.end], rtol=1e-9)


def test_inaccurate_pairs_are_iterated_again_by_the_direct_method(monkeypatch):
    F = sc.gallery.bundle(nx.grid_2d_graph(21, 21), 2, noise=0.1, seed=3)
    methods, solver = [], smallest.lowest_eigenpairs

    def rough_at_first(problem, method, start, sections):
        found = solver(problem, method, start, sections)
        noise = 1e-3 * np.random.default_rng(0).standard_normal(found.vectors.shape)
        methods.append(method)
        return found if len(methods) > 1 else replace(found, vectors=found.vectors + noise)

    monkeypatch.setattr(smallest, "lowest_eigenpairs", rough_at_first)
    monkeypatch.setattr(EigenProblem, "chosen", lambda self: "multilevel")
    found = low_pairs(F, 5)
    assert methods == ["multilevel", "direct"]
    np.testing.assert_allclose(found.sigma[:5], singular_values(F)[:5], rtol=1e-9)


@pytest.mark.parametrize(
    ("method", "side", "dim", "k"),
    [("direct", 25, 2, 2), ("multilevel", 25, 2, 2), (None, 18, 3, 1)],
)
def test_zeros_are_counted_and_multiplets_completed(method, side, dim, k, monkeypatch):
    """The second eigenvalue of a square grid is double."""
    monkeypatch.setattr(smallest, "SPARSE_SHARE", 5)
    if method:
        monkeypatch.setattr(EigenProblem, "chosen", lambda self: method)
    found = low_pairs(sc.CellularSheaf.constant(nx.grid_2d_graph(side, side), dim), k)
    assert (found.kernel, found.end) == (dim, 2 * dim)
    assert found.zero < 1e-12
    exact = 2 - 2 * np.cos(np.pi / side)
    np.testing.assert_allclose(found.sigma[: 2 * dim] ** 2, exact, rtol=1e-9)


def test_the_largest_zero_may_come_from_a_small_component():
    F = sc.CellularSheaf.constant(nx.disjoint_union(nx.grid_2d_graph(29, 29), nx.path_graph(2)))
    maps = np.append(np.ones(F.n_edges - 1), 1e-13)
    F = F.with_maps(maps, maps)
    found = low_pairs(F, 2)
    assert (found.kernel, found.zero) == (3, pytest.approx(np.sqrt(2) * 1e-13, rel=1e-6, abs=0))


def test_small_components_need_no_iteration(monkeypatch):
    """An iteration would need a long time, because the multiplets are as large as their number."""
    monkeypatch.setattr(smallest, "Iteration", None)
    F = sc.CellularSheaf.constant(nx.disjoint_union_all([nx.path_graph(5)] * 300))
    found = low_pairs(F, 3)
    assert (found.kernel, found.end, found.is_cut) == (300, 3, True)
    assert_residual(found.sigma[:3] - 2 * np.sin(np.pi / 10), 2.0, n=5)


@pytest.mark.parametrize("dtype", [float, complex])
def test_small_components_and_the_rest_have_the_lowest_singular_values(dtype, monkeypatch):
    monkeypatch.setattr(smallest, "SPARSE_ABOVE", 50)
    monkeypatch.setattr(smallest, "SPARSE_SHARE", 2)
    graphs = [nx.path_graph(2 + i % 3) for i in range(9)] + [nx.grid_2d_graph(9, 9)]
    graphs.insert(3, nx.empty_graph(2))
    G = nx.disjoint_union_all(graphs)
    rng = np.random.default_rng(3)
    dims = rng.integers(0, 4, G.number_of_nodes())
    edge_dims = rng.integers(0, 4, G.number_of_edges())
    F = sc.CellularSheaf.random(G, dims, edge_dims, seed=5, dtype=dtype)
    D, found = sc.coboundary(F), low_pairs(F, 12)
    exact = np.linalg.svd(D.toarray(), compute_uv=False)
    exact = np.append(exact, np.zeros(F.dim_c0 - len(exact)))[::-1]
    assert found.kernel == int((exact < 1e-10).sum())
    sigma, X = found.sigma[: found.end], found.vectors[:, : found.end]
    assert_residual(sigma - exact[found.kernel :][: found.end], exact, n=F.dim_c0)
    assert_residual(X.conj().T @ X - np.eye(found.end), n=F.dim_c0)
    assert_residual(np.linalg.norm(D @ X, axis=0) - sigma, exact, n=F.dim_c0)
