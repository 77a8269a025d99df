"""Step (a), equilibration: edges get norm 1, then stacked maps at a vertex become an isometry."""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels.operators import multiply_maps
from sheafcoarsen._support import linalg, ragged, threads
from sheafcoarsen.coarsening import SERIAL_BELOW
from sheafcoarsen.operators import degree_factors
from sheafcoarsen.sheaf import CellularSheaf, both_ends, component_labels, trusted_sheaf


class Stalks(NamedTuple):
    """Bases and weights of equilibrated stalks.

    The weight of every coordinate of v is the squared norm of the scaled maps at v divided by d_v;
    of a loop, both maps and their difference count.
    """

    sheaf: CellularSheaf
    V: scipy.sparse.csr_array  # orthonormal basis of the stalks
    W: scipy.sparse.csr_array  # basis in which the stacked maps at every vertex are an isometry
    metric: np.ndarray  # blocks of V* W in sequence
    alone: scipy.sparse.csr_array  # orthonormal basis of sections supported at single vertices
    weights: np.ndarray  # (dim_c0,)


def vertex_scales(F: CellularSheaf) -> tuple[np.ndarray, np.ndarray]:
    """Return positive scales s of the vertices, and the norms of [A s_u | -B s_v] for all edges.

    Dividing edges by their norms does not suffice if scales of vertices differ. In components where
    they do, s are the inverse norms of stacked maps times a constant; elsewhere they are 1.
    """
    (u, v), m, n = F.edges.T, F.n_edges, F.n_vertices
    a, b = (linalg.ragged_norms(data, starts) for _, data, starts in both_ends(F))
    compared, labels = (a > 0) & (b > 0) & (u != v), component_labels(n, F.edges)

    def largest(values: np.ndarray, component: np.ndarray) -> np.ndarray:
        found = np.zeros(n)
        np.maximum.at(found, component, values)
        return found[labels]

    def stacked(t: np.ndarray) -> np.ndarray:
        D = linalg.scaled_norms(np.concatenate([t * a, t * b]), np.concatenate([u, v]), n)
        return D.clip(min=(1e-100 * largest(D, labels)).clip(min=1e-300))

    D = stacked(np.ones(m))
    ones, s = np.ones(n), largest(D, labels) / D
    imbalances = []
    for scales in (s, ones):
        D = stacked(1 / np.hypot(a * scales[u], b * scales[v]).clip(min=1e-300))
        logs = np.log2(np.stack([a, b])[:, compared]) - np.log2(D[F.edges[compared]].T)
        imbalances.append(largest(np.abs(logs[0] - logs[1]), labels[u[compared]]))
    better = imbalances[0] + 10 < imbalances[1]  # by a factor of 1000
    s = np.where(better, s, ones)
    return s, np.hypot(a * s[u], b * s[v])


def equilibrate(F: CellularSheaf, eps: float) -> tuple[CellularSheaf, Stalks]:
    """Return the equilibrated sheaf, in double precision, and the bases of its stalks.

    Every [A | -B] is divided by its norm, or that of [A s_u | -B s_v] for the ``vertex_scales`` s,
    and every map F_{v->e} is multiplied by a matrix W_v.
    """
    dims, (u, v), dtype = F.vertex_dims, F.edges.T, np.result_type(F.dtype, np.float64)
    loop, (s, norms) = u == v, vertex_scales(F)
    norms[norms == 0] = 1
    tail, head = (data.astype(dtype) for _, data, _ in both_ends(F))
    for array, (_, _, first) in zip((tail, head), both_ends(F), strict=True):
        # divide as reals: numpy's complex division multiplies by a reciprocal, which may overflow
        numbers = array.view(np.float64)
        numbers /= np.repeat(norms, np.diff(first) * (1 + (dtype.kind == "c")))
    here, there = (np.repeat(loop, np.diff(starts)) for _, _, starts in both_ends(F))
    tail[here] -= head[there]  # the coboundary contains only this difference
    head[there] = 0
    sheaf = trusted_sheaf(F.edges, dims, F.edge_dims, tail, head)
    begins, factors = degree_factors(sheaf)
    sizes = np.bincount(u[loop], minlength=F.n_vertices) / s**2  # squared norms of the maps at v
    V, W, scales = np.empty_like(factors), np.empty_like(factors), np.zeros(F.dim_c0)
    for vertices, R in ragged.stacks(factors, np.stack([dims, dims], axis=1)):
        if not R.size:
            continue
        _, sigma, adjoint = np.linalg.svd(R)
        sizes[vertices] += (sigma**2).sum(axis=1)
        zero = sigma <= 10 * R.shape[1] * eps * np.sqrt(sizes[vertices])[:, None]
        inverse = np.where(zero, 0, 1 / np.where(zero, 1, sigma))
        where = ragged.range_of_blocks(begins, vertices)
        right = adjoint.conj().swapaxes(1, 2)
        V[where], W[where] = right.ravel(), (right * inverse[:, None]).ravel()
        scales[ragged.range_of_blocks(F.vertex_offsets, vertices)] = inverse.ravel()
    used = scales > 0
    ranks = ragged.read_only(np.diff(ragged.offsets(used)[F.vertex_offsets]))
    starts = tuple(ragged.offsets(F.edge_dims * ranks[end]) for end in (u, v))
    maps = np.empty(int(starts[0][-1]), dtype), np.empty(int(starts[1][-1]), dtype)
    f, bases, costs = sheaf.arrays, (begins, ranks, W), F.edge_dims * dims[F.edges].sum(axis=1)
    threads.run_ranges(
        lambda lo, hi: multiply_maps(lo, hi, f, bases, starts, maps),
        costs + 1.0,
        serial_below=SERIAL_BELOW,
    )
    metric, every = ragged.identities(ranks), ragged.block_diagonal(V, dims)
    metric[metric > 0] = scales[used]
    stalks = Stalks(
        F,
        every[:, used],
        ragged.block_diagonal(W, dims)[:, used],
        metric,
        every[:, ~used],
        np.repeat(sizes / np.maximum(dims, 1), dims),
    )
    return trusted_sheaf(F.edges, ranks, F.edge_dims, *maps), stalks
