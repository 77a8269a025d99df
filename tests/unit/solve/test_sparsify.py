"""Leverages; sparsifications, whose bounds hold for all kinds of sheaves at any scale."""

import copy
import dataclasses
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._support import linalg
from sheafcoarsen.solve import _least_squares, _leverages, _sparsify
from tests.support.helpers import assert_residual, covering
from tests.support.strategies import graphs, sheaves
from tests.unit.solve import conftest

DENSE_GRAPH = nx.gnm_random_graph(100, 2400, seed=0)
LOGNORMAL = np.random.default_rng(0).lognormal(0, 2, 2400)
LOPSIDED = nx.compose(nx.barbell_graph(60, 3), nx.star_graph(122))
SHEAVES = {
    "graph": CellularSheaf.constant(nx.gnm_random_graph(200, 6000, seed=2)),
    "weights": CellularSheaf.constant(np.array(DENSE_GRAPH.edges), weight=LOGNORMAL),
    "bridges": CellularSheaf.constant(LOPSIDED, dim=2),
    "bundle": sc.gallery.bundle(nx.gnm_random_graph(120, 4000, seed=1), 2, seed=0),
    "connection": sc.gallery.bundle(DENSE_GRAPH, 3, noise=0.3, seed=0),
    "float32": CellularSheaf.random(DENSE_GRAPH, 2, 2, seed=0, dtype=np.float32),
    "complex64": CellularSheaf.random(DENSE_GRAPH, 2, [1, 3] * 1200, seed=0, dtype=np.complex64),
    "complex128": CellularSheaf.random(DENSE_GRAPH, [0, 1, 2, 3] * 25, 2, seed=0, dtype=complex),
    "loops, two components": sc.disjoint_union(
        [CellularSheaf.random(nx.gnm_random_graph(40, 700, seed=s), 2, 2, seed=s) for s in range(2)]
        + [CellularSheaf.random(np.zeros((200, 2), int), 2, 1, seed=3)]
    )[0],
}


def ratios(F, G):
    """Return all generalized eigenvalues of (L', L) on the range of L, and a basis of ker L."""
    double = np.result_type(F.dtype, float)
    deltas = (sc.coboundary(H).astype(double) / F.largest_entry for H in (F, G))
    L, M = ((delta.conj().T @ delta).toarray() for delta in deltas)
    values, V = np.linalg.eigh(L)
    rank = int((values > 1e-10 * values[-1]).sum())
    W = V[:, -rank:] / np.sqrt(values[-rank:])
    return np.linalg.eigvalsh(W.conj().T @ M @ W), V[:, :-rank].T


@pytest.mark.parametrize(("limits", "name"), covering([(0.8, 1e-12), (0.3, 1e12)], SHEAVES))
def test_all_generalized_eigenvalues_are_within_eps(name, limits):
    F, (eps, scale) = SHEAVES[name], limits
    F = F.with_maps(F.tail_data * F.dtype.type(scale), F.head_data * F.dtype.type(scale))
    Z = sc.sparsify(F, eps, seed=1)
    values, kernel = ratios(F, Z.sheaf)
    assert 1 - eps <= values.min()
    assert values.max() <= 1 + eps
    single = np.finfo(F.dtype).eps > 1e-10
    for found in (Z.bounds(), dataclasses.replace(Z, eps=1e-3).bounds()):  # of drawing, or anew
        np.testing.assert_allclose(found, values[[0, -1]], rtol=1e-5 if single else 1e-7)
    assert Z.sheaf.dtype == Z.prolongation.dtype == F.dtype
    assert sc.global_sections(Z.sheaf).h0 == len(kernel)
    assert (np.diff(Z.edges) > 0).all()
    for i in range(0, len(Z.edges), 37):
        root = F.dtype.type(np.sqrt(Z.weights[i]))
        np.testing.assert_array_equal(Z.sheaf.tail_map(i), root * F.tail_map(Z.edges[i]))
        np.testing.assert_array_equal(Z.sheaf.head_map(i), root * F.head_map(Z.edges[i]))
    assert sc.verify(Z).passed


@pytest.mark.large
def test_sparsifying_dense_networks_keeps_few_edges():
    dense = CellularSheaf.constant(nx.gnm_random_graph(500, 30_000, seed=2))
    for F, share in ((dense, 0.3), (SHEAVES["bundle"], 0.55), (SHEAVES["weights"], 0.7)):
        assert sc.sparsify(F, 0.5).sheaf.n_edges <= share * F.n_edges


@pytest.mark.parametrize("eps", [1e-6, 1e-170])
def test_all_edges_are_kept_if_fewer_do_not_suffice(eps):
    Z = sc.sparsify(CellularSheaf.constant(nx.complete_graph(12)), eps)
    assert (Z.sheaf.n_edges, Z.weights.tolist(), Z.bounds()) == (66, [1.0] * 66, (1.0, 1.0))


def test_edges_whose_squares_underflow_are_kept():
    """Two triangles joined by an edge; the maps of the second one are 1e-162."""
    edges = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]]
    maps = np.repeat([1.0, 1e-162], [4, 3]).reshape(-1, 1, 1)
    F = CellularSheaf(edges, maps, maps)
    assert sc.global_sections(sc.sparsify(F, 0.5).sheaf).h0 == sc.global_sections(F).h0 == 1


@given(F=sheaves(graph=graphs(max_vertices=8), spread=False), eps=st.floats(0.05, 0.95))
def test_the_bounds_hold_for_all_kinds_of_sheaves(F, eps):
    Z = sc.sparsify(F, eps)
    assert sc.verify(Z).passed
    lo, hi = Z.bounds()
    assert 1 - eps <= lo <= hi <= 1 + eps


def test_halving_keeps_each_edge_with_probability_one_half_and_balances_degrees():
    edges = np.array([*DENSE_GRAPH.edges, (0, 0), (1, 1), (2, 3), (2, 3)])
    rng, total = np.random.default_rng(0), np.zeros(len(edges))
    for _ in range(400):
        kept = _sparsify._every_second(edges, rng)
        total += kept
        ends = edges[(edges[:, 0] != edges[:, 1])]
        degrees = np.bincount(ends.reshape(-1), minlength=100)
        inside = kept[: len(DENSE_GRAPH.edges)]
        left = np.bincount(np.array(DENSE_GRAPH.edges)[inside].reshape(-1), minlength=100)
        assert abs(2 * left - degrees).max() <= 8
    assert abs(total / 400 - 0.5).max() < 0.13


def test_equal_seeds_give_equal_edges_and_other_seeds_differ():
    F = SHEAVES["connection"]
    draws = [sc.sparsify(F, 0.6, seed=seed).edges.tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_results_are_immutable_and_can_be_pickled_and_printed():
    Z = sc.sparsify(SHEAVES["connection"], 0.6)
    lo, hi = Z.bounds()
    head = f"Sparsification(2400 -> {len(Z.edges)} edges"
    assert repr(Z) == f"{head}, {lo:.3g} L <= L' <= {hi:.3g} L)"
    loaded = sc.Sparsification(Z.fine, Z.sheaf, Z.edges, Z.weights)
    assert repr(loaded) == f"{head}, bounds not computed, see bounds())"
    assert loaded.bounds() is loaded.bounds()
    assert "L <= L' <=" in repr(loaded)
    assert "largest weight" in Z._repr_html_()
    for other in (Z, pickle.loads(pickle.dumps(Z)), copy.deepcopy(Z)):
        assert other.bounds() == Z.bounds()
        with pytest.raises(ValueError, match="read-only"):
            other.weights[0] = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Z.edges = Z.edges
    np.testing.assert_allclose(dataclasses.replace(Z).bounds(), (lo, hi), rtol=1e-12)


def test_bounds_see_weak_edges_next_to_strong_ones():
    """A path of strong edges, which are all kept, hangs on a complete graph."""
    complete = np.array(nx.complete_graph(60).edges)
    path = np.stack([np.arange(59, 79), np.arange(60, 80)], axis=1)
    edges = np.concatenate([complete, path])
    weights = (np.repeat([1.0, w], [1770, 20]) for w in (1.0, 1e12))
    weak, strong = (CellularSheaf.constant(edges, weight=weight) for weight in weights)
    lo, hi = sc.sparsify(weak, 0.8).bounds()
    assert lo < 0.7
    assert hi > 1.3
    np.testing.assert_allclose(sc.sparsify(strong, 0.8).bounds(), (lo, hi), rtol=1e-4)


@pytest.mark.parametrize(("seed", "decades"), [(19, 10), (40, 15)])
def test_bounds_enclose_eigenvalues_that_are_close_to_each_other(seed, decades):
    """The quotients of cochains that are 1 at some vertices and 0 at others lie between them."""
    edges = np.array(nx.random_regular_graph(8, 16, seed=seed).edges)
    weight = 10 ** np.random.default_rng(seed).uniform(-decades, 0, len(edges))
    F = sc.CellularSheaf.constant(edges, weight=weight)
    Z = sc.sparsify(F, 0.9, seed=0)
    lo, hi = Z.bounds()
    cuts = np.random.default_rng(0).integers(0, 2, (16, 1000)).astype(float)
    cuts = cuts[:, np.ptp(cuts, axis=0) > 0]
    quotients = sc.energy(Z.sheaf, cuts) / sc.energy(F, cuts)
    assert lo - 1e-6 <= quotients.min()
    assert quotients.max() <= hi + 1e-6
    assert sc.verify(Z).passed, str(sc.verify(Z))


# ---------------------------------------------------------------- leverages
@pytest.fixture(params=["dense", "solves"])
def exact(request, monkeypatch):
    """Compute exact leverages by a decomposition or by solves, a few rows at a time."""
    monkeypatch.setattr(_leverages, "ROWS", 7)
    if request.param == "solves":
        monkeypatch.setattr(_leverages, "DENSE_BELOW", 0)
        monkeypatch.setattr(_leverages, "COLUMNS", 7)
        monkeypatch.setattr(_least_squares, "is_small", lambda *sizes: False)
    return lambda F: sc.leverages(F, method="exact")


@given(F=sheaves(graph=graphs(max_vertices=8), spread=False))
def test_leverages_sum_to_the_rank_of_the_coboundary(F):
    assert abs(sc.leverages(F).sum() - (F.dim_c0 - sc.global_sections(F).h0)) <= 1e-10


@pytest.mark.parametrize("name", conftest.SHEAVES)
def test_exact_leverages_are_the_diagonal_of_the_projection(name, exact):
    """Which is delta delta^+; its entries are summed over the rows of each edge."""
    F = conftest.SHEAVES[name]
    found = exact(F)
    U, sigma, _ = np.linalg.svd(sc.coboundary(F).toarray().astype(complex), full_matrices=False)
    rows = (abs(U[:, sigma > 1e-5 * sigma.max(initial=0)]) ** 2).sum(axis=1)
    wanted = np.bincount(np.repeat(np.arange(F.n_edges), F.edge_dims), rows, F.n_edges)
    assert found.dtype == float
    assert_residual(found - wanted, F.edge_dims, n=F.dim_c0, eps=linalg.eps_of(F.dtype))


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
    monkeypatch.setattr(_least_squares, "is_small", lambda *sizes: False)
    with pytest.raises(sc.NotConverged, match=r"differs from dim C\^0 - h\^0 = 90 by") as raised:
        sc.leverages(F, method="exact")
    np.testing.assert_allclose(raised.value.result, wanted, rtol=1e-6)


def test_singular_values_below_the_rounding_of_the_laplacian_raise():
    rows = [np.array([[2.0, 1.0]]), np.array([[1e-12, -1e-12]])]
    F = CellularSheaf([[0, 0], [0, 0]], rows, [0 * row for row in rows])
    assert sc.global_sections(F).h0 == 0
    with pytest.raises(sc.NotConverged, match=r"delta has rank 2 = dim C\^0 - h\^0, but some"):
        sc.leverages(F)


def test_leverages_do_not_depend_on_the_scale_of_the_maps_or_of_each_stalk(exact):
    """For stalks of different scale, the eigenvalues of L range over 28 digits."""
    F = CellularSheaf.random(nx.gnm_random_graph(12, 30, seed=0), 2, 1, seed=0)
    for scale in (1e-140, 1e140):
        G = F.with_maps(scale * F.tail_data, scale * F.head_data)
        np.testing.assert_allclose(exact(G), exact(F), rtol=1e-10)
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
