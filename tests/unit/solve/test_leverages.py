"""Leverages, compared with the diagonal of a dense projection."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._support import linalg
from sheafcoarsen.solve import _leverages, normal_equations
from tests.support.helpers import assert_residual
from tests.support.strategies import graphs, sheaves
from tests.unit.solve.problems import SHEAVES


def by_projection(F):
    """Return the diagonal of delta delta^+, summed over the rows of each edge."""
    U, sigma, _ = np.linalg.svd(sc.coboundary(F).toarray().astype(complex), full_matrices=False)
    rows = (abs(U[:, sigma > 1e-5 * sigma.max(initial=0)]) ** 2).sum(axis=1)
    return np.bincount(np.repeat(np.arange(F.n_edges), F.edge_dims), rows, F.n_edges)


@pytest.fixture(params=["dense", "solves"])
def exact(request, monkeypatch):
    """Compute exact leverages by a decomposition or by solves, a few rows at a time."""
    monkeypatch.setattr(_leverages, "ROWS", 7)
    if request.param == "solves":
        monkeypatch.setattr(_leverages, "DENSE_BELOW", 0)
        monkeypatch.setattr(_leverages, "COLUMNS", 7)
        monkeypatch.setattr(normal_equations, "is_small", lambda *sizes: False)
    return lambda F: sc.leverages(F, method="exact")


@given(F=sheaves(graph=graphs(max_vertices=8), spread=False))
def test_leverages_sum_to_the_rank_of_the_coboundary(F):
    assert abs(sc.leverages(F).sum() - (F.dim_c0 - sc.global_sections(F).h0)) <= 1e-10


@pytest.mark.parametrize("name", SHEAVES)
def test_exact_leverages_are_the_diagonal_of_the_projection(name, exact):
    F = SHEAVES[name]
    found = exact(F)
    assert found.dtype == float
    assert_residual(found - by_projection(F), F.edge_dims, n=F.dim_c0, eps=linalg.eps_of(F.dtype))


def test_a_weak_bridge_has_full_leverage(exact):
    """Its weight in L, 1e-14, is near rounding, but its singular value of delta is not."""
    part = nx.gnm_random_graph(40, 150, seed=1)
    edges = np.array([*nx.disjoint_union(part, part).edges, (3, 47)])
    F = sc.gallery.bundle(edges, 2, seed=0)
    weak = np.append(np.ones(300), 1e-7).repeat(4)
    found = exact(F.with_maps(weak * F.tail_data, weak * F.head_data))
    assert abs(found[-1] - 2) < 1e-10
    assert abs(found.sum() - 158) < 1e-10


def nearly_flat(noise):
    rng = np.random.default_rng(0)
    frames = np.linalg.qr(rng.standard_normal((30, 3, 3)))[0]
    errors = noise * rng.standard_normal((30, 3, 40))
    X = frames @ rng.standard_normal((3, 40)) + errors
    return sc.fit_connection(X, np.array(nx.gnm_random_graph(30, 90, seed=1).edges))


def test_eigenvalues_near_rounding_count_fully_in_the_sum(exact):
    """In a nearly flat bundle, three eigenvalues of L are 4e-15 or 8e-13 times the largest."""
    noise = 4e-3 if JIT_IS_OFF else 1e-3  # scipy's solves are less exact, by the last digits
    assert abs(exact(nearly_flat(noise)).sum() - 90) <= 1e-10


def test_unitary_bases_of_the_stalks_do_not_change_leverages_near_rounding():
    F, rng = nearly_flat(1e-3), np.random.default_rng(0)
    bases = np.linalg.qr(rng.standard_normal((30, 3, 3)) + 1j * rng.standard_normal((30, 3, 3)))[0]
    maps = (data.reshape(-1, 3, 3) for data in (F.tail_data, F.head_data))
    turned = F.with_maps(*(each @ bases[ends] for each, ends in zip(maps, F.edges.T, strict=True)))
    np.testing.assert_allclose(sc.leverages(turned), sc.leverages(F), rtol=1e-7)


def test_a_sum_other_than_the_rank_raises(monkeypatch):
    F = nearly_flat(1e-4)
    wanted = sc.leverages(F)
    monkeypatch.setattr(_leverages, "DENSE_BELOW", 0)
    monkeypatch.setattr(normal_equations, "is_small", lambda *sizes: False)
    with pytest.raises(sc.NotConverged, match=r"differs from dim C\^0 - h\^0 = 90 by") as raised:
        sc.leverages(F, method="exact")
    np.testing.assert_allclose(raised.value.result, wanted, rtol=1e-6)


def test_singular_values_below_the_rounding_of_the_laplacian_raise():
    rows = [np.array([[2.0, 1.0]]), np.array([[1e-12, -1e-12]])]
    F = CellularSheaf([[0, 0], [0, 0]], rows, [0 * row for row in rows])
    assert sc.global_sections(F).h0 == 0
    with pytest.raises(sc.NotConverged, match=r"delta has rank 2 = dim C\^0 - h\^0, but some"):
        sc.leverages(F)


def test_leverages_do_not_depend_on_the_scale_of_the_maps(exact):
    F = CellularSheaf.random(nx.gnm_random_graph(12, 30, seed=0), 2, 1, seed=0)
    for scale in (1e-140, 1e140):
        G = F.with_maps(scale * F.tail_data, scale * F.head_data)
        np.testing.assert_allclose(exact(G), exact(F), rtol=1e-10)


def test_leverages_do_not_depend_on_the_scale_of_each_stalk():
    """The eigenvalues of L range over 28 digits."""
    F = CellularSheaf.random(nx.gnm_random_graph(12, 30, seed=0), 2, 1, seed=0)
    tail, head = np.geomspace(1e-14, 1, 12)[F.edges].repeat(2, axis=0).T
    G = F.with_maps(tail * F.tail_data, head * F.head_data)
    np.testing.assert_allclose(sc.leverages(G), sc.leverages(F), rtol=1e-10)


@pytest.mark.parametrize("eps", [0.1, 0.3])
@pytest.mark.parametrize("dtype", [float, np.complex64])
def test_nine_of_ten_sketched_leverages_are_within_eps(eps, dtype):
    graph = nx.gnm_random_graph(40, 150, seed=0)
    F = CellularSheaf.random(graph, 2, [1, 2] * 75, seed=0, dtype=dtype)
    exact = sc.leverages(F, method="exact")
    found = sc.leverages(F, method="sketch", eps=eps, seed=1)
    errors = abs(found - exact) / exact
    assert (errors <= eps).mean() >= 0.9
    assert errors.max() > eps / 10  # the sketch was used
    assert not np.array_equal(found, sc.leverages(F, method="sketch", eps=eps, seed=2))


@pytest.mark.parametrize("method", ["exact", "sketch"])
@pytest.mark.parametrize("edges", [np.zeros((0, 2), int), [[0, 1], [1, 2], [1, 3]]])
def test_leverages_are_numbers_between_zero_and_the_dimension(edges, method):
    found = sc.leverages(CellularSheaf.constant(edges, 2, n_vertices=4), method=method, eps=0.5)
    assert found.dtype == float
    assert ((found >= 0) & (found <= 2)).all()


def test_auto_sketches_if_that_takes_fewer_solves(monkeypatch):
    monkeypatch.setattr(_leverages, "DENSE_BELOW", 10)
    F = CellularSheaf.constant(nx.grid_2d_graph(5, 8))  # 67 rows of delta
    exact, sketch = (sc.leverages(F, method=method, eps=0.35) for method in ("exact", "sketch"))
    np.testing.assert_array_equal(sc.leverages(F, eps=0.35), sketch)  # a sketch has 66 columns
    np.testing.assert_array_equal(sc.leverages(F, eps=0.34), exact)  # a sketch has 70 columns
