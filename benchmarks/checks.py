"""Checks of answers: errors must be below 30 n eps times the product of the factors' norms."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

LIMIT = 30.0
EPS = np.finfo(np.float64).eps


class WrongAnswerError(Exception):
    """An answer is wrong, so that its time is meaningless."""


def require(what, errors, sizes):
    """Raise WrongAnswerError unless all errors are below LIMIT eps times their sizes."""
    worst = (
        float(
            np.max(np.asarray(errors) / np.maximum(sizes, np.finfo(np.float64).tiny), initial=0.0)
        )
        / EPS
    )
    if not worst < LIMIT:  # also true for nan
        raise WrongAnswerError(f"{what}: error of {worst:.3g} n eps norm, above {LIMIT:g}")


def same_products(what, A, B, terms):
    """Compare two matrices X* X entry by entry.

    A sum of ``terms`` products is at most the geometric mean of the two diagonal entries.
    """
    difference = scipy.sparse.coo_array(scipy.sparse.csr_array(A) - scipy.sparse.csr_array(B))
    roots = np.sqrt(B.diagonal())
    rows, columns = difference.coords
    require(what, abs(difference.data), terms * roots[rows] * roots[columns])


def same_coarse(what, coarse, galerkin, L, n):
    """Compare two matrices R* L R entry by entry.

    The columns of R have norm 1 and at most n entries.
    """
    difference = abs(scipy.sparse.csr_array(coarse) - scipy.sparse.csr_array(galerkin))
    require(what, difference.max(), n * abs(L).sum(axis=0).max())


def same_spectra(what, found, wanted, blocks):
    """Compare the lowest eigenvalues of dense blocks."""
    for ours, theirs, A in zip(found, wanted, blocks, strict=True):
        require(what, abs(ours - theirs[: len(ours)]), len(A) * np.linalg.norm(A))


def local_modes(M, internal):
    """Check norm(L_a U - U Lambda) and norm(U* U - I) for every cluster.

    ``internal`` is the direct sum of all L_a.
    """
    R, clusters = M.prolongation, M.clusters
    column_cluster = np.repeat(np.arange(len(M.ranks)), M.ranks)

    def norms(matrix, cluster):
        matrix = scipy.sparse.coo_array(matrix)
        return np.sqrt(
            np.bincount(cluster[matrix.coords[1]], abs(matrix.data) ** 2, minlength=len(M.ranks))
        )

    sizes = norms(internal, np.repeat(clusters.labels, M.sheaf.vertex_dims))
    residuals = norms(internal @ R - R @ scipy.sparse.diags_array(M.scores), column_cluster)
    require("residual of the local modes", residuals, clusters.dims * sizes)
    gram = R.T @ R - scipy.sparse.eye_array(R.shape[1])
    require("orthogonality of the local modes", norms(gram, column_cluster), clusters.dims)


def connected(P, edges):
    """Check that every cluster is connected."""
    inner = edges[P.labels[edges[:, 0]] == P.labels[edges[:, 1]]]
    graph = scipy.sparse.coo_array(
        (np.ones(len(inner)), (inner[:, 0], inner[:, 1])), shape=(P.n_vertices,) * 2
    )
    pieces = connected_components(graph, directed=False)[0]
    if pieces != P.n_clusters:
        raise WrongAnswerError(f"{P.n_clusters} clusters have {pieces} connected components")
