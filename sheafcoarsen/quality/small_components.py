"""Dense decomposition of small connected components."""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._support import ranges
from sheafcoarsen.sheaf import CellularSheaf, component_labels
from sheafcoarsen.solve import grounded

SMALL = 100
"""Maximum dimension of a component to be decomposed densely, of at most ``4 * SMALL`` rows."""


class Group(NamedTuple):
    """Connected components whose matrices have the same shape."""

    coordinates: np.ndarray  # (components, d): indices in C^0
    vectors: np.ndarray  # (components, d, d): right singular vectors as rows


class SmallComponents(NamedTuple):
    """Singular values of all small components, ascending, with the indices of their vectors."""

    sigma: np.ndarray  # (N,)
    indices: np.ndarray  # (N, 3): group, component and row
    groups: list[Group]
    dim: int

    def vectors(self, which: np.ndarray) -> np.ndarray:
        """Return the singular vectors ``which`` as columns, shape (dim, len(which))."""
        X = np.zeros((self.dim, len(which)), self.groups[0].vectors.dtype)
        group, component, row = self.indices[which].T
        for g, (coordinates, vectors) in enumerate(self.groups):
            here = np.flatnonzero(group == g)
            X[coordinates[component[here]], here[:, None]] = vectors[
                component[here], row[here]
            ].conj()
        return X


def split_components(
    D: scipy.sparse.csr_array, sheaf: CellularSheaf
) -> tuple[SmallComponents, np.ndarray, CellularSheaf] | None:
    """Return the small components of D, a mask of other coordinates, and the sheaf on the others.

    Returns None if there are no small components. The columns of D are those of the coboundary.
    """
    labels = component_labels(sheaf.n_vertices, sheaf.edges)
    count = int(labels.max(initial=-1)) + 1
    dims = np.bincount(labels, sheaf.vertex_dims, count).astype(np.int64)
    label = np.repeat(labels, sheaf.vertex_dims)
    entries = D.tocoo()
    row_label = np.full(D.shape[0], -1)
    row_label[entries.coords[0]] = label[entries.coords[1]]
    rows = np.bincount(row_label[row_label >= 0], minlength=count)
    small = (dims <= SMALL) & (rows <= 4 * SMALL)
    if not small.any():
        return None
    order = np.argsort(label, kind="stable")
    starts = np.concatenate([[0], np.cumsum(dims)])
    inside = np.empty(len(label), np.int64)
    inside[order] = np.arange(len(label)) - starts[label[order]]
    by_row = np.argsort(row_label, kind="stable")
    row_starts = np.searchsorted(row_label[by_row], np.arange(count))
    row_inside = np.empty(D.shape[0], np.int64)
    row_inside[by_row] = np.arange(D.shape[0]) - np.append(row_starts, 0)[row_label[by_row]]
    groups: list[Group] = []
    sigma, indices = [], []
    of_entry = row_label[entries.coords[0]]
    for d, r in np.unique(np.stack([dims, rows], axis=1)[small & (dims > 0)], axis=0).tolist():
        members = np.flatnonzero((dims == d) & (rows == r))
        number = np.full(count, -1)
        number[members] = np.arange(len(members))
        mine = np.flatnonzero(number[of_entry] >= 0)
        blocks = np.zeros((len(members), r, d), D.dtype)
        at = [coordinate[mine] for coordinate in entries.coords]
        blocks[number[of_entry[mine]], row_inside[at[0]], inside[at[1]]] = entries.data[mine]
        _, computed, vectors = np.linalg.svd(blocks, full_matrices=True)
        values = np.zeros((len(members), d))
        values[:, : computed.shape[1]] = computed
        coordinates = order[ranges(starts[members], dims[members])].reshape(-1, d)
        which = np.indices(values.shape).reshape(2, -1).T
        indices.append(np.column_stack([np.full(len(which), len(groups)), which]))
        sigma.append(values.ravel())
        groups.append(Group(coordinates, vectors))
    if not groups:
        return None
    sigmas, where = np.concatenate(sigma), np.concatenate(indices)
    ascending = np.argsort(sigmas, kind="stable")
    small_ones = SmallComponents(sigmas[ascending], where[ascending], groups, D.shape[1])
    return small_ones, ~small[label], grounded(sheaf, small[labels])
