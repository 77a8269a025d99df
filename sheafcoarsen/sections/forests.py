"""Sections of forests, computed from the leaves to the roots and back, accurate for long paths.

The sections on a subtree are stored in orthonormal coordinates, together with their values at its
root; the edge to the root's parent determines which of them extend. Ranks are therefore decided for
single edges, never for products of maps (docs/conventions.md, section 6).
"""

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._support import linalg, ragged
from sheafcoarsen.sections.lifting import is_sparse
from sheafcoarsen.sheaf import CellularSheaf, component_labels, spanning_forest, unit_sheaf


def forest_sections(F: CellularSheaf) -> np.ndarray | scipy.sparse.csr_array | None:
    """Return an orthonormal basis of H^0 of a forest, sparse if it has many columns and entries.

    Returns None if there is a cycle other than a loop, the rank of an edge is unclear, sections of
    a subtree are not determined by their values at its root, or large stalks have many edges.
    """
    loops = F.edges[:, 0] == F.edges[:, 1]
    if len(loops) - loops.sum() >= max(F.n_vertices, 1):
        return None
    labels = component_labels(F.n_vertices, F.edges)
    roots = np.unique(labels, return_index=True)[1]
    if len(loops) - loops.sum() != F.n_vertices - len(roots):
        return None
    dims = F.vertex_dims.astype(float)
    work = (dims[F.edges].sum(axis=1) ** 3).sum()
    if work > max(1e9, 100 * (dims**3).sum()):
        return None
    found, _, parent_edges = spanning_forest(F.n_vertices, F.edges, roots)
    children = found[::-1][parent_edges[found[::-1]] >= 0]  # from leaves to roots
    alone = np.flatnonzero(loops)
    steps = (
        np.concatenate([alone, parent_edges[children]]).astype(np.int64),
        np.concatenate([np.full(len(alone), -1), children]),
    )
    unit = unit_sheaf(F)[0]
    dims, starts, dtype = F.vertex_dims, F.vertex_offsets, np.result_type(F.dtype, np.float64)
    sizes = max(int(dims.max(initial=0)), 1), max(int(F.edge_dims.max(initial=0)), 1)
    values = np.zeros((F.dim_c0, sizes[0]), dtype)
    column = np.arange(F.dim_c0) - np.repeat(starts[:-1], dims)
    values[np.arange(F.dim_c0), column] = 1
    counts = dims.astype(np.int64)
    state = starts, counts, values, np.zeros(F.dim_c0, np.int64)
    shapes = np.zeros((len(steps[0]), 3), np.int64)
    ends = dims[F.edges[steps[0]]]
    factors = np.empty(int((ends.sum(axis=1) * ends.max(axis=1, initial=0)).sum()), dtype)
    maps, eps = (unit.tail_offsets, unit.head_offsets), linalg.eps_of(F.dtype)
    if kernels.join_subtrees(unit.arrays, maps, steps, eps, state, sizes, shapes, factors):
        return None
    ranks = counts[roots]
    width = int(ranks.max(initial=0))
    z, anchors = np.zeros((F.dim_c0, width), dtype), np.zeros(F.n_vertices, np.int64)
    tree, column = np.nonzero(np.arange(width) < ranks[:, None])
    z[starts[roots[tree]] + column, column] = 1
    anchors[roots] = np.arange(len(roots))
    kernels.split_subtrees(unit.arrays, starts, steps, shapes, factors, z, anchors)
    tree = np.repeat(anchors, dims)  # every tree has its own columns
    mine = np.arange(width) < ranks[tree][:, None]
    indices = (ragged.offsets(ranks)[tree][:, None] + np.arange(width))[mine]
    h0 = int(ranks.sum())
    shape = (F.dim_c0, h0)
    basis = scipy.sparse.csr_array((z[mine], indices, ragged.offsets(ranks[tree])), shape=shape)
    if not is_sparse(F, h0):
        basis = basis.toarray()
    # products of n factors are orthogonal up to n eps; a Newton-Schulz step to the polar factor
    return (1.5 * basis - 0.5 * (basis @ (basis.conj().T @ basis))).astype(F.dtype)
