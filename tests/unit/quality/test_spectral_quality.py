"""The low spectrum of both sheaves, against dense linear algebra."""

import contextlib
import dataclasses
import re
import warnings
from types import SimpleNamespace
from unittest.mock import Mock

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from sheafcoarsen.quality import smallest_singular_values as smallest
from sheafcoarsen.quality._spectral_quality import principal_angles
from sheafcoarsen.sheaf import random_orthonormal
from sheafcoarsen.solve import EigenProblem, eigensolver
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, ties_allowed
from tests.support.strategies import bases, mode_counts, sheaves_with_partitions


def coarsen(*args, **kwargs):
    """Coarsen without warnings about ties or empty kernels."""
    with ties_allowed():
        warnings.simplefilter("ignore", sc.SingularProblemWarning)
        return sc.coarsen(*args, **kwargs)


def consecutive(F, size, rank):
    """Coarsen clusters of so many consecutive vertices."""
    return coarsen(F, Partition(np.arange(F.n_vertices) // size), rank)


@st.composite
def coarsenings(draw, kinds=("internal", "principal", "kernel", "basis"), **sheaf_options):
    F, P = draw(sheaves_with_partitions(**sheaf_options))
    kind = draw(st.sampled_from(kinds))
    options = {"compress": draw(st.booleans())}
    if kind == "basis":
        return coarsen(F, P, basis=draw(bases(F, P, kinds=["orthonormal"])), **options)
    if kind == "kernel":
        return coarsen(F, P, sc.ranks.kernel(), **options)
    return coarsen(F, P, draw(mode_counts(P)), local_operator=kind, **options)


def exact(A):
    return A.astype(np.result_type(A.dtype, np.float64))


def prolongation(C):
    return exact(C.prolongation.toarray())


def squared_spectrum(D):
    """Return the eigenvalues of D* D from singular values, and the root of their unit."""
    largest = float(np.abs(D).max(initial=0.0))
    if largest == 0:
        return np.zeros(D.shape[1]), 1.0
    sigma = np.linalg.svd(D / largest, compute_uv=False)
    return np.append(sigma, np.zeros(D.shape[1] - len(sigma)))[::-1] ** 2, largest


def dense_kernel_size(values, n, eps, norm2):
    """Return the number of zero eigenvalues; reject examples decided by rounding."""
    sigma, unit = np.sqrt(values), np.sqrt(norm2)
    assume(not ((sigma > 1e-2 * n * eps * unit) & (sigma < 1e2 * n * eps * unit)).any())
    return int((sigma <= n * eps * unit).sum())


@given(coarsenings(), st.data())
def test_quality_matches_dense_linear_algebra(C, data):
    assume(C.sheaf.dim_c0)
    k = data.draw(st.integers(1, C.sheaf.dim_c0), label="k")
    L, eps, R = reference.coboundary(C.fine), eps_of(C.fine.dtype), prolongation(C)
    unit = float(np.abs(L).max(initial=0.0)) or 1.0
    delta = exact(L) / unit
    what = {"n": max(*delta.shape, 1), "eps": eps}
    values, (nu, scale) = squared_spectrum(delta)[0], squared_spectrum(delta @ R)
    nu, norm2 = nu * scale * scale, values.max(initial=0.0)
    kernel, kernel_coarse = (dense_kernel_size(each, **what, norm2=norm2) for each in (values, nu))
    Q = sc.spectral_quality(C, k)
    assert (Q.kernel_fine, Q.kernel_coarse) == (kernel, kernel_coarse)
    assert_residual(Q.section_residual, **what)
    # k is increased to the end of the multiplet
    count, positive = len(Q.fine), values[kernel:]
    assert count >= min(k, len(positive))
    assert len(Q.coarse) == len(Q.relative_errors) == len(Q.angles) == count
    gap = positive[count] - positive[count - 1] if 0 < count < len(positive) else np.inf
    assert gap > 0
    for j in range(k, count):
        assert positive[j] - positive[j - 1] <= 1e-7 * positive[j] + 8 * what["n"] * eps * norm2
    assert_residual(Q.fine - positive[:count] * unit**2, L, L, **what)
    found = nu[max(kernel, kernel_coarse) :][:count]  # the coarse eigenvalues with the same indices
    m = len(found)
    errors, above = Q.relative_errors[:m], Q.coarse[:m] - Q.fine[:m]
    assert_residual(Q.coarse[:m] - found * unit**2, L, L, **what)
    assert np.isinf([Q.coarse[m:], Q.relative_errors[m:]]).all()
    assert_residual(np.minimum(above, 0), L, L, **what)  # interlacing
    # only rounding makes errors negative
    expected = np.where((above < 0) & (errors == 0), 0.0, above / Q.fine[:m])
    assert errors == pytest.approx(expected, rel=1e-9, abs=1e-12)
    if kernel_coarse < kernel or not count:
        assert Q.restricted_similarity == (np.inf if kernel_coarse < kernel else 0)
        return
    U, condition = exact(Q.fine_vectors), norm2 / positive[0]  # errors are amplified by 1 / lambda
    assume(condition < 1e5)
    lost = delta @ (U - R @ (R.conj().T @ U)) / np.sqrt(positive[:count])
    expected = np.linalg.norm(lost, 2) if lost.size else 0.0
    assert_residual(Q.restricted_similarity - expected, condition, **what)


@given(coarsenings(spread=False), st.data())
def test_angles_are_those_between_lifted_and_fine_eigenvectors(C, data):
    assume(C.sheaf.dim_c0)
    Q = sc.spectral_quality(C, data.draw(st.integers(1, C.sheaf.dim_c0), label="k"))
    assert (np.diff(Q.angles) >= 0).all()
    assert ((Q.angles >= 0) & (Q.angles <= np.pi / 2 + 1e-12)).all()
    count, eps, delta = len(Q.fine), eps_of(C.fine.dtype), exact(reference.coboundary(C.fine))
    if not count:
        return
    delta = delta / np.abs(delta).max()  # so that the spectrum is of order 1
    U, R, top = exact(Q.fine_vectors), prolongation(C), np.linalg.norm(delta, 2) ** 2
    values = np.linalg.norm(delta @ U, axis=0) ** 2
    what = {"n": max(delta.shape), "eps": eps}
    assert_residual(delta.conj().T @ (delta @ U) - U * values, delta, delta, U, **what)
    assert_residual(U.conj().T @ U - np.eye(count), U, U, **what)
    nu, unit = squared_spectrum(delta @ R)
    first, nu = max(Q.kernel_fine, Q.kernel_coarse), nu * unit**2
    end = min(first + count, len(nu))
    while first < end < len(nu) and nu[end] - nu[end - 1] <= 1e-7 * nu[end] + 100 * eps * top:
        end += 1  # include multiple eigenvalues completely
    assume(all(nu[i] - nu[i - 1] > 1e-3 * top for i in (first, end) if 0 < i < len(nu)))
    Z = R @ np.linalg.svd(delta @ R)[2][::-1].conj().T[:, first:end]
    sines = np.ones(count)
    if Z.shape[1]:
        X, Y = sorted((U, np.linalg.qr(Z)[0]), key=lambda V: -V.shape[1])
        between = np.linalg.svd(Y - X @ (X.conj().T @ Y), compute_uv=False)[::-1]
        sines[: len(between)] = between
    assert np.sin(Q.angles) == pytest.approx(sines, abs=1e7 * eps)
    assert Q.angles[max(len(nu) - first, 0) :] == pytest.approx(np.pi / 2)


@pytest.mark.parametrize("dtype", [float, complex])
def test_small_angles_are_accurate_beside_large_ones(dtype):
    """They are accurate, while those of scipy have errors of sqrt(eps)."""
    wanted = np.array([0.0, 1e-12, 1e-3, 0.7, 0.8, np.pi / 2])
    k = len(wanted)
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((2 * k, 2 * k)).astype(dtype))[0]
    U = turn[:, :k]
    V = U * np.cos(wanted) + turn[:, k:] * np.sin(wanted)
    mix = rng.standard_normal((k, k))
    assert_residual(principal_angles(U @ mix, V) - wanted, np.linalg.cond(mix), n=2 * k)
    assert_residual(principal_angles(V[:, :3], U) - wanted[:3], 1.0, n=2 * k)


def test_angles_include_all_vectors_of_a_multiple_coarse_eigenvalue():
    """Two paths have the coarse eigenvalue 1 twice, but fine eigenvalues 0.59 and 0.98."""
    gauge = random_orthonormal(np.random.default_rng(0), 4, 2, 2, np.dtype(float))
    maps = np.array([np.diag(row) for row in ([1.0, 10.0], [1.0, 1.0], [1.0, 10.0])])
    F = CellularSheaf([[0, 1], [1, 2], [2, 3]], maps @ gauge[:3], maps @ gauge[1:])
    Q = sc.spectral_quality(coarsen(F, Partition([0, 0, 1, 1]), sc.ranks.kernel()), 1)
    assert_residual(Q.fine - (2 - np.sqrt(2)), 2.0, n=8)
    assert_residual(Q.coarse - 1, 2.0, n=8)
    u = np.linalg.eigh(reference.laplacian(CellularSheaf.constant(nx.path_graph(4))))[1][:, 1]
    assert Q.angles == pytest.approx(np.arccos(np.abs(u).sum() / 2), abs=1e-12)


@pytest.fixture
def sparse(monkeypatch):
    """Count calls of the sparse solver."""
    solver = Mock(wraps=smallest.lowest_eigenpairs)
    monkeypatch.setattr(smallest, "lowest_eigenpairs", solver)
    return solver


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_the_sparse_method_agrees_with_the_dense_one(monkeypatch, sparse, dtype):
    F = CellularSheaf.random(nx.grid_2d_graph(12, 11), 2, 1, kind="general", seed=3, dtype=dtype)
    C = consecutive(F, 6, 5)
    dense = sc.spectral_quality(C, 2)
    sparse.assert_not_called()
    for module in ("smallest_singular_values", "_spectral_quality"):
        monkeypatch.setattr(f"sheafcoarsen.quality.{module}.SPARSE_ABOVE", 10)
    monkeypatch.setattr("sheafcoarsen.quality.smallest_singular_values.SPARSE_SHARE", 2)
    found = sc.spectral_quality(C, 2)
    sparse.assert_called()
    eps = eps_of(dtype)
    for name in ("fine", "coarse"):
        assert_residual(getattr(found, name) - getattr(dense, name), 100.0, n=264, eps=eps)
    assert found.kernel_fine == dense.kernel_fine
    assert found.restricted_similarity == pytest.approx(dense.restricted_similarity, rel=1e-5)


def test_missed_and_inaccurate_eigenpairs_raise(monkeypatch):
    C = consecutive(CellularSheaf.constant(nx.grid_2d_graph(71, 23)), 8, 3)
    real, pairs = eigensolver.lowest_pairs, smallest.lowest_eigenpairs

    def without_the_third(*args, **options):
        found = real(*args, **options)
        fields = {"values": 0, "vectors": 1, "residuals": 0}
        return found._replace(**{f: np.delete(getattr(found, f), 2, k) for f, k in fields.items()})

    def noisy(*args):
        found = pairs(*args)
        noise = 1e-4 * np.random.default_rng(3).standard_normal(found.vectors.shape)
        return dataclasses.replace(found, vectors=np.linalg.qr(found.vectors + noise)[0])

    assert len(sc.spectral_quality(C, 4).fine) == 4
    message = r"has not converged, with a residual .* times norm\(L\)\. If a few maps"
    misses = eigensolver, "lowest_pairs", without_the_third, "inertia"
    for module, name, wrong, match in (misses, (smallest, "lowest_eigenpairs", noisy, message)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, wrong)
            with pytest.raises(np.linalg.LinAlgError, match=match):
                sc.spectral_quality(C, 4)


@pytest.mark.parametrize(
    ("n", "small"), [(180, 1e-6), (180, 3e-8), pytest.param(380, 1e-6, marks=pytest.mark.large)]
)
def test_eigenvalues_below_rounding_of_the_laplacian_are_singular_values_of_delta(n, small):
    """Inverse iteration finds them, or the dense solver up to dimension 1600."""
    G = nx.barabasi_albert_graph(n, 2, seed=0)
    hub = max(G, key=G.degree)
    edges = np.array([*G.edges, *((hub, leaf) for leaf in range(n, n + 60))])
    rng = np.random.default_rng(0)
    tails, heads = rng.standard_normal((2, len(edges), 4, 4)) / 2
    U, sigma, V = np.linalg.svd(heads[-1])
    heads[-1] = (U * np.append(sigma[:-1], small)) @ V
    F = sc.CellularSheaf(edges, tails, heads)
    C = sc.coarsen(F, sc.select(F, 48), 4, local_operator="principal")
    expected = np.sort(np.linalg.svd(sc.coboundary(F).toarray(), compute_uv=False))
    found = np.sqrt(sc.spectral_quality(C, 3).fine)
    assert found[0] < 2 * small
    assert_residual(found - expected[: len(found)], expected[-1], n=F.dim_c0)


@pytest.mark.parametrize("weight", [1e3, 1e5])
def test_a_heavy_edge_does_not_hide_small_eigenvalues(weight):
    weights = np.ones(1999)
    weights[999] = weight
    F = sc.CellularSheaf.constant(nx.path_graph(2000), weight=weights)
    Q = sc.spectral_quality(consecutive(F, 100, 1), 5)
    degrees = np.append(weights, 0) + np.append(0, weights)
    exact = scipy.linalg.eigvalsh_tridiagonal(degrees, -weights, select="i", select_range=(1, 5))
    np.testing.assert_allclose(Q.fine, exact, rtol=1e-15 * weight / exact[0])


@pytest.mark.parametrize(("least", "seed", "k"), [(5e-5, 2, 5), (2e-5, 2, 5), (1e-5, 1, 3)])
def test_eigenvalues_near_the_rounding_of_a_hub_are_found(least, seed, k):
    """Residuals of rounding size are .003 or more of the lowest eigenvalue, 6e-13 norm(L)."""
    n, d, rng = 300, 3, np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((n - 1, d, d)))[0] for _ in range(2))
    sigma = np.ones((n - 1, 1, d))
    sigma[:, 0, -1] = least * np.arange(1, n)  # of the maps at the leaves
    hub = rng.standard_normal((n - 1, d, d))
    F = CellularSheaf(nx.star_graph(n - 1).edges, hub, (U * sigma) @ V, [d] * n)
    Q = sc.spectral_quality(consecutive(F, 30, 2), k)
    exact = scipy.linalg.svdvals(sc.coboundary(F).toarray())[::-1][:k] ** 2
    assert Q.kernel_fine == d
    np.testing.assert_allclose(Q.fine, exact, rtol=1e-4)


@pytest.mark.large
def test_fine_pairs_passed_by_the_user_are_reused(sparse):
    F = gallery.bundle(nx.grid_2d_graph(40, 23), 2, noise=0.1, seed=3)
    C, D = consecutive(F, 8, 3), consecutive(F, 8, 2)
    wanted, other = sc.spectral_quality(C, 5), sc.spectral_quality(D, 5)
    modes, rough = (sc.eigenmodes(F, 7, tol=tol) for tol in (1e-12, 1e-5))
    sparse.reset_mock()
    for fine in (other, modes):  # coarse problems are solved densely
        assert_same_quality(sc.spectral_quality(C, 5, fine=fine), wanted)
    sparse.assert_not_called()
    for fine, k in ((modes, 9), (rough, 5)):  # too few or too inaccurate pairs
        Q = sc.spectral_quality(C, k, fine=fine)
        np.testing.assert_allclose(Q.fine, sc.spectral_quality(C, k).fine, rtol=1e-9)
    assert sparse.call_count == 4
    assert wanted.fine_vectors.shape == (1840, len(wanted.fine))


def assert_same_quality(Q, wanted):
    assert Q.kernel_fine == wanted.kernel_fine
    np.testing.assert_allclose(Q.fine, wanted.fine, rtol=1e-9)
    np.testing.assert_allclose(Q.angles, wanted.angles, rtol=1e-8)


def test_fine_pairs_that_split_a_multiplet_are_completed():
    """One vector of a double eigenvalue of a cycle is passed; the other one is computed."""
    F = CellularSheaf.constant(nx.cycle_graph(24))
    C = consecutive(F, 4, 2)
    wanted = sc.spectral_quality(C, 1)
    assert (wanted.kernel_fine, len(wanted.fine)) == (1, 2)
    split, complete = sc.eigenmodes(F, 2), sc.eigenmodes(F, 3)  # with the zero eigenvalue
    assert split.tied > complete.tied
    for fine in (split, complete, wanted):
        assert_same_quality(sc.spectral_quality(C, 1, fine=fine), wanted)


@pytest.mark.large
def test_wheels_have_one_section_and_many_eigenvalues_near_one():
    """The hub determines norm(L), so neighbouring eigenvalues differ by 1e-9 norm(L)."""
    n = 2500
    F = CellularSheaf.constant(nx.wheel_graph(n))
    C = coarsen(F, sc.select(F, n // 12), 2)
    Q = sc.spectral_quality(C, 5)
    assert (Q.kernel_fine, Q.kernel_coarse) == (1, 1)
    j = np.arange(2, len(Q.fine) + 2) // 2
    np.testing.assert_allclose(Q.fine, 3 - 2 * np.cos(2 * np.pi * j / (n - 1)), rtol=1e-6)
    assert 0 < Q.restricted_similarity < 10


@pytest.mark.parametrize(
    ("graph", "size", "value", "k", "message"),
    [
        (nx.star_graph(60), 20, 1, 5, None),
        (nx.star_graph(300), 20, 1, 5, "`k` = 5 splits the eigenvalue 1 of L"),
        (nx.star_graph(1000), 20, 1, 5, "`k` = 5 splits the eigenvalue 1 of L"),
        (nx.disjoint_union_all([nx.path_graph(2)] * 450), 2, 2, 3, "at least 100 more copies"),
    ],
)
def test_a_multiplet_as_large_as_the_graph_is_split_with_a_warning(graph, size, value, k, message):
    """Up to a hundred eigenvalues beyond the k-th are computed."""
    F = CellularSheaf.constant(graph)
    warning, C = sc.SingularProblemWarning, consecutive(F, size, 3)
    with pytest.warns(warning, match=message) if message else contextlib.nullcontext():
        Q = sc.spectral_quality(C, k)
    assert len(Q.fine) == (k if message else F.n_vertices - 2)
    if message:  # pairs that were cut are not reused as if they were complete
        with pytest.warns(warning, match="at least 100 more copies"):
            assert len(sc.spectral_quality(C, k - 1, fine=Q).fine) == k - 1
    np.testing.assert_allclose(Q.fine, value, rtol=1e-9)
    assert Q.kernel_fine == nx.number_connected_components(graph)


def test_an_unclear_number_of_sections_does_not_warn():
    """Two holonomies, of stalks (2, 2), are just below and just above working accuracy."""
    small, large = (gallery.cycle(100, holonomy) for holonomy in (3e-13, 1e-11))
    maps = np.zeros((2, 100, 4, 4))
    for part, F in ((slice(2), small), (slice(2, 4), large)):
        maps[:, :, part, part] = np.reshape([F.tail_data, F.head_data], (2, 100, 2, 2))
    F = CellularSheaf(small.edges, *maps)
    with pytest.warns(sc.SingularProblemWarning, match="rounding errors determine the number"):
        sc.global_sections(F)
    assert sc.spectral_quality(consecutive(F, 20, 8), 4).kernel_fine == 4


@pytest.mark.parametrize("k", [1, 2, 4])
def test_small_eigenvalues_in_single_precision_are_neither_zero_nor_equal(k):
    """Two weak loops, on a path of 300 vertices, replace the two sections by small eigenvalues."""
    n = 300
    edges = [[i, i + 1] for i in range(n - 1)] + [[0, 0]]
    tail, head = np.tile(np.eye(2), (2, n, 1, 1))
    tail[-1], head[-1] = np.diag([1e-4, 1.3e-4]), 0
    F = CellularSheaf(edges, tail, head)
    single = F.with_maps(F.tail_data.astype(np.float32), F.head_data.astype(np.float32))
    exact = sc.spectral_quality(consecutive(F, 100, 4), k)
    C = consecutive(single, 100, 4)
    Q = sc.spectral_quality(C, k)
    assert (Q.kernel_fine, Q.kernel_coarse) == (0, 0)
    assert sc.eigenmodes(single, 2).n_zero == sc.global_sections(single).h0 == 0
    assert len(Q.fine) == len(exact.fine)
    assert len(sc.spectral_quality(C, k, fine=Q).fine) == len(Q.fine)
    assert_residual((Q.fine - exact.fine) / exact.fine, n=1, eps=eps_of(np.float32))
    # singular values of delta R have errors of eps norm(delta), norm(delta) <= 2
    assert_residual(np.sqrt(Q.coarse) - np.sqrt(exact.coarse), 2, n=1, eps=eps_of(np.float32))


def test_progress_is_shown_only_on_request(capsys):
    Q = sc.spectral_quality(ONE, 1)
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(sc.spectral_quality(ONE, 1, progress=True).fine, Q.fine)
    assert re.search("spectra.*2/2", capsys.readouterr().err, re.DOTALL)


PATH, HALVES = CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1])
ONE = sc.coarsen(PATH, HALVES, 1)


def test_the_table_and_the_plot_number_eigenvalues_alike():
    """Both count zeros: with three sections the first positive eigenvalue is the fourth."""
    from matplotlib.figure import Figure

    Q = sc.spectral_quality(consecutive(CellularSheaf.constant(nx.path_graph(12), 3), 4, 6), 3)
    page = Q._repr_html_()
    assert Q.kernel_fine == 3
    assert "relative errors" in repr(Q)
    assert "<td>4</td>" in page
    assert "<td>1</td>" not in page
    assert f"principal angles between the spans</th><td>{Q.angles[0]:.4g}" in page
    assert "zeros lost" not in repr(Q)
    ax = sc.plot.quality(Q, ax=Figure().add_subplot())
    assert ax.lines[0].get_xdata().tolist()[0] == 4
    lossy = consecutive(gallery.bundle(nx.grid_2d_graph(6, 6), 2), 6, 1)
    last = repr(sc.spectral_quality(lossy, 2)).splitlines()[-1]
    assert last.strip().startswith("zeros lost, so pairs are shifted")
    assert last.split()[-1] == "2"


@pytest.mark.parametrize("seed", range(6))
def test_no_error_is_negative_by_rounding(seed):
    """If all modes are retained, coarse and fine eigenvalues agree up to rounding."""
    C = consecutive(CellularSheaf.random(nx.cycle_graph(30), 2, 2, seed=seed), 6, 12)
    errors = sc.spectral_quality(C, 20).relative_errors
    assert (errors >= 0).all()
    assert errors.max() < 1e-10


@pytest.mark.large
def test_pairs_are_refined_on_a_coarse_sheaf_in_another_unit():
    """The unit of the coarse sheaf is not that of R. A weak edge joins two halves."""
    G = nx.disjoint_union(*[nx.grid_2d_graph(100, 40)] * 2)
    edges, weights = np.vstack([np.array(G.edges), [[3999, 4000]]]), np.ones(G.size() + 1)
    weights[-1] = 6e-6
    F = sc.CellularSheaf(edges, *[weights[:, None, None]] * 2)
    Q = sc.spectral_quality(consecutive(F, 4, 1), 1)
    for found in (Q.fine, Q.coarse):
        assert found[0] == pytest.approx(2 * weights[-1] ** 2 / 4000, rel=1e-6)


# ---------------------------------------------------------------- smallest singular values
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


@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
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

    def rough_at_first(problem, method, *rest):
        found = solver(problem, method, *rest)
        noise = 1e-3 * np.random.default_rng(0).standard_normal(found.vectors.shape)
        methods.append(method)
        noise *= len(methods) == 1
        return dataclasses.replace(found, vectors=found.vectors + noise)

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
    found = low_pairs(F.with_maps(maps, maps), 2)
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
    dims, edge_dims = rng.integers(0, 4, len(G)), rng.integers(0, 4, G.number_of_edges())
    F = sc.CellularSheaf.random(G, dims, edge_dims, seed=5, dtype=dtype)
    D, found = sc.coboundary(F), low_pairs(F, 12)
    exact = np.linalg.svd(D.toarray(), compute_uv=False)
    exact = np.append(exact, np.zeros(F.dim_c0 - len(exact)))[::-1]
    assert found.kernel == int((exact < 1e-10).sum())
    sigma, X = found.sigma[: found.end], found.vectors[:, : found.end]
    assert_residual(sigma - exact[found.kernel :][: found.end], exact, n=F.dim_c0)
    assert_residual(X.conj().T @ X - np.eye(found.end), n=F.dim_c0)
    assert_residual(np.linalg.norm(D @ X, axis=0) - sigma, exact, n=F.dim_c0)
