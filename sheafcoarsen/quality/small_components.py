"""Dense decomposition of small connected components."""

import numpy as np
import scipy.sparse

from sheafcoarsen._support import offsets, ranges
from sheafcoarsen.sheaf import CellularSheaf, component_labels
from sheafcoarsen.solve import grounded


def split_components(
    D: scipy.sparse.csr_array, sheaf: CellularSheaf
) -> tuple[np.ndarray, scipy.sparse.csc_array, np.ndarray, CellularSheaf] | None:
    """Return the pairs of small components, a mask of other coordinates, and the sheaf on these.

    Small components have at most 100 columns and 400 rows. The pairs are the singular values,
    ascending, and right singular vectors as columns. Returns None if there are no small components.
    The columns of D are those of the coboundary.
    """
    labels = component_labels(sheaf.n_vertices, sheaf.edges)
    count = int(labels.max(initial=-1)) + 1
    dims = np.bincount(labels, sheaf.vertex_dims, count).astype(np.int64)
    label = np.repeat(labels, sheaf.vertex_dims)
    entries = D.tocoo()
    row_label = np.full(D.shape[0], -1)
    row_label[entries.coords[0]] = label[entries.coords[1]]
    rows = np.bincount(row_label[row_label >= 0], minlength=count)
    small = (dims <= 100) & (rows <= 400)
    if not (small & (dims > 0)).any():
        return None
    order, by_row = np.argsort(label, kind="stable"), np.argsort(row_label, kind="stable")
    starts = offsets(dims)
    inside, row_inside = np.empty(len(label), np.int64), np.empty(D.shape[0], np.int64)
    inside[order] = np.arange(len(label)) - starts[label[order]]
    row_starts = np.searchsorted(row_label[by_row], np.arange(count))
    row_inside[by_row] = np.arange(D.shape[0]) - np.append(row_starts, 0)[row_label[by_row]]
    sigma, coordinates, vectors, lengths = [], [], [], []
    of_entry = row_label[entries.coords[0]]
    for d, r in np.unique(np.stack([dims, rows], axis=1)[small & (dims > 0)], axis=0).tolist():
        members = np.flatnonzero((dims == d) & (rows == r))
        number = np.full(count, -1)
        number[members] = np.arange(len(members))
        mine = np.flatnonzero(number[of_entry] >= 0)
        blocks = np.zeros((len(members), r, d), D.dtype)
        at = [coordinate[mine] for coordinate in entries.coords]
        blocks[number[of_entry[mine]], row_inside[at[0]], inside[at[1]]] = entries.data[mine]
        _, computed, adjoints = np.linalg.svd(blocks, full_matrices=True)
        values = np.zeros((len(members), d))
        values[:, : computed.shape[1]] = computed
        sigma.append(values.ravel())
        here = order[ranges(starts[members], dims[members])].reshape(-1, d)
        coordinates.append(np.repeat(here, d, axis=0).ravel())
        vectors.append(adjoints.conj().ravel())
        lengths.append(np.full(values.size, d))
    sigmas, starts = np.concatenate(sigma), offsets(np.concatenate(lengths))
    data = np.concatenate(vectors), np.concatenate(coordinates), starts
    V = scipy.sparse.csc_array(data, shape=(D.shape[1], len(sigmas)))
    ascending = np.argsort(sigmas, kind="stable")
    return sigmas[ascending], V[:, ascending], ~small[label], grounded(sheaf, small[labels])
