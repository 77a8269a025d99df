"""Spectral clustering of a graph."""

import warnings

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from scipy.cluster.vq import kmeans2

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen._support import EPS, single_threaded_blas
from sheafcoarsen.partition.links import Links, grouped_sums

MOST_SPECTRAL = 500
"""Clusters that spectral clustering takes on: it needs as many eigenvectors."""


DENSE_SPECTRAL = 1000
"""Vertices of a component up to which all of its eigenvectors are cheaper than a few."""


def cluster_spectrally(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of spectral clustering, component by component."""
    n = len(links.sizes)
    weights = np.maximum(links.weights, EPS)  # keeps what is linked by zeros together
    matrix = scipy.sparse.csr_array((weights, links.ends, links.starts), shape=(n, n))
    n_components, component = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    labels = component.astype(np.int32)
    if n_components >= n_clusters:
        return labels
    parts = np.empty(n_components, dtype=np.int64)
    weight, limits = grouped_sums(labels, links.sizes), np.bincount(component)
    kernels.apportion(weight, limits, n_clusters, parts, np.empty_like(parts))
    first = np.cumsum(parts) - parts
    for c in range(n_components):  # fewer than MOST_SPECTRAL
        members = np.flatnonzero(component == c)
        labels[members] = first[c] + _spectral_clusters(
            matrix[members][:, members], int(parts[c]), rng
        )
    return labels


@single_threaded_blas()
def _spectral_clusters(
    matrix: scipy.sparse.csr_array, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Cluster a connected graph by its k lowest eigenvectors.

    (von Luxburg, A tutorial on spectral clustering, 2007, after Ng, Jordan and Weiss.)
    """
    n = matrix.shape[0]
    if k in (1, n):
        return np.arange(n) * (k > 1)
    roots = scipy.sparse.diags_array(1 / np.sqrt(matrix.sum(axis=1)))
    normalized = scipy.sparse.csr_array(roots @ matrix @ roots)  # I - the normalized Laplacian
    if n <= DENSE_SPECTRAL or 3 * k > n:
        vectors = scipy.linalg.eigh(normalized.toarray(), subset_by_index=[n - k, n - 1])[1]
    else:
        vectors = _largest_eigenvectors(normalized, k, rng)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = vectors / np.where(norms == 0, 1, norms)
    with warnings.catch_warnings():
        # the repair makes up for it
        warnings.filterwarnings("ignore", "One of the clusters is empty")
        return kmeans2(rows, k, iter=30, minit="++", seed=rng)[1]


def _largest_eigenvectors(
    matrix: scipy.sparse.csr_array, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the k leading eigenvectors by Lanczos.

    Where the eigenvalues are too close for it, as on long paths, the matrix is shifted and
    inverted.
    """
    v0 = rng.standard_normal(matrix.shape[0])
    try:
        return scipy.sparse.linalg.eigsh(matrix, k, which="LA", v0=v0, tol=1e-6, maxiter=100)[1]
    except scipy.sparse.linalg.ArpackNoConvergence:
        return scipy.sparse.linalg.eigsh(matrix.tocsc(), k, sigma=1.001, v0=v0, tol=1e-6)[1]
