"""D_v^{-1/2} and what normalizing by it gives, found piece by piece."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.verification import cluster_batches, normalization
from sheafcoarsen.verification.normalization import inverse_roots
from sheafcoarsen.verification.residuals import Evidence
from tests.support.helpers import assert_residual

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

LABELS = {"fact-5", "fact-6"}


def ratios(C):
    return {check.label: check.ratio for check in sc.verify(C).checks if check.label in LABELS}


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_inverse_roots_of_semidefinite_matrices(scale):
    A = np.random.default_rng(3).standard_normal((5, 4, 3))
    A[2, :, 2] = A[2, :, 0]  # of rank 2
    D = A.swapaxes(1, 2) @ A
    R = np.linalg.qr(A)[1]
    roots = inverse_roots(R * np.sqrt(scale), np.finfo(float).eps, np.zeros(5))
    projection = D @ np.linalg.pinv(D, rtol=1e-12)
    for root, block, wanted in zip(roots, D * scale, projection, strict=True):
        assert_residual(root @ block @ root - wanted, root, block, root, n=4)


@pytest.mark.parametrize("size", [30, 10**9])
def test_catches_a_wrong_normalization(C, size, monkeypatch):
    monkeypatch.setattr(cluster_batches, "PIECE", size)
    assert max(ratios(C).values()) < 5

    def wrong(F):
        G = sc.normalize(F)
        return G.with_maps(G.tail_data * (1 + 1e-6), G.head_data)

    monkeypatch.setattr(normalization, "normalize", wrong)
    assert min(ratios(C).values()) > 30


def test_roots_of_ragged_stalks_stand_where_their_vertices_do():
    F = sc.CellularSheaf.random(nx.path_graph(5), [2, 0, 3, 1, 2], 2, seed=5)
    C = sc.coarsen(F, sc.Partition([0, 1, 0, 1, 0]), 2)
    degrees = Evidence(C, 0).degrees
    roots = degrees.root_matrix(np.arange(5)).toarray()
    L = sc.laplacian(F).toarray()
    vertex = np.repeat(np.arange(5), F.vertex_dims)
    D = np.where(vertex[:, None] == vertex, L, 0)
    assert_residual(D @ roots @ roots @ D - D, D, roots, roots, D, n=3)
    assert_residual(roots - roots.T, roots, n=3)


def test_what_rounding_leaves_of_maps_that_cancel_has_no_root():
    R = np.array([[[1e-17]], [[2.0]]])
    assert inverse_roots(R, 2e-16, np.ones(2)).reshape(-1).tolist() == [0, 0.5]
