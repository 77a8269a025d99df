"""The lowest positive singular values, however many zeros lie below them."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen.quality import low_pairs as room
from sheafcoarsen.quality.low_pairs import low_pairs

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
EPS = np.finfo(float).eps


def many_components(count, dim=3):
    """Return the constant sheaf on a grid and many small paths, as citation graphs have them."""
    trees = [nx.path_graph(2 + i % 2) for i in range(count)] + [nx.grid_2d_graph(12, 11)]
    return sc.CellularSheaf.constant(nx.disjoint_union_all(trees), dim)


@pytest.mark.parametrize("count", [170, 300])
def test_positive_values_above_many_zeros(count):
    F = many_components(count)
    D = sc.coboundary(F)
    Z = sc.global_sections(F).basis
    found = low_pairs(D, 12, 10 * EPS, EPS, kernel_of=lambda: Z)
    exact = np.linalg.svd(D.toarray(), compute_uv=False)[::-1]
    exact = np.append(np.zeros(F.dim_c0 - len(exact)), exact)
    assert found.kernel == 3 * (count + 1)
    np.testing.assert_allclose(
        found.sigma[: found.end], exact[found.kernel :][: found.end], rtol=1e-9
    )
    assert found.end >= 12
    residual = D.T @ (D @ found.vectors) - found.vectors * found.sigma**2
    assert abs(residual[:, : found.end]).max() < 1e-9
    assert abs(found.vectors.T @ Z).max() < 1e-9


def test_what_is_no_kernel_is_not_taken_for_one(monkeypatch):
    F = many_components(170)
    D = sc.coboundary(F)
    wrong = np.linalg.qr(np.random.default_rng(3).standard_normal((F.dim_c0, 513)))[0]
    found = low_pairs(D, 2, 10 * EPS, EPS, kernel_of=lambda: wrong)
    assert found.kernel == 513


def test_quality_of_a_sheaf_with_many_zeros(monkeypatch):
    """Neither the fine nor the coarse zeros are left to Lanczos, nor to a dense solver."""
    F = many_components(200)
    C = sc.coarsen(F, sc.select(F, 450), 2, loops=False)
    monkeypatch.setattr(room, "MAX_DENSE", 1000)
    Q = sc.spectral_quality(C, 6)
    assert Q.kernel_fine == 603
    L = sc.laplacian(F).toarray()
    G = C.galerkin().toarray()
    fine, coarse = (np.linalg.eigvalsh(matrix) for matrix in (L, G))
    k = len(Q.fine)
    np.testing.assert_allclose(Q.fine, fine[603 : 603 + k], rtol=1e-9)
    np.testing.assert_allclose(Q.coarse, coarse[603 : 603 + k], rtol=1e-9)


def test_few_zeros_are_left_to_lanczos():
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(40, 30))

    def never():
        raise AssertionError("one zero needs no solver of its own")

    found = low_pairs(scipy.sparse.csr_array(sc.coboundary(F)), 4, EPS, EPS, kernel_of=never)
    assert found.kernel == 1
