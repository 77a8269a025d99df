"""Scaled plane rotations as complex numbers: real stalks of dimension 2 as complex lines."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._support import eps_of
from sheafcoarsen.sheaf import CellularSheaf, component_labels, trusted_sheaf
from sheafcoarsen.solve.block_matrix import complex_columns, real_columns, real_form


class ComplexLine(NamedTuple):
    """Complex sheaf with stalks of dimension 1 that represents a real sheaf.

    A complex eigenvector z gives two real ones, z and i z.
    """

    sheaf: CellularSheaf
    mirrored: np.ndarray  # shape (n,), bool: vertices whose coordinates are conjugated

    def expand(self, Z: Any) -> Any:
        """Return the real columns (2 n, 2 m) of Z and i Z, interleaved; sparse if Z is sparse."""
        if scipy.sparse.issparse(Z):
            Z = scipy.sparse.csr_array(Z)
            blocks = real_form(Z.data.astype(np.complex128).reshape(-1, 1, 1))
            shape = 2 * Z.shape[0], 2 * Z.shape[1]
            X = scipy.sparse.csr_array(scipy.sparse.bsr_array((blocks, Z.indices, Z.indptr), shape))
            signs = np.ones(shape[0])
            signs[1::2][self.mirrored] = -1
            return X.multiply(signs[:, None]).tocsr()
        X = np.empty((2 * len(Z), Z.shape[1], 2))
        X[..., 0], X[..., 1] = real_columns(Z), real_columns(1j * Z)
        X[1::2][self.mirrored] *= -1
        return X.reshape(len(X), -1)

    def contract(self, X: np.ndarray) -> np.ndarray:
        """Return the complex columns (n, m) for real columns (2 n, m)."""
        Z = complex_columns(X)
        Z[self.mirrored] = Z[self.mirrored].conj()
        return Z


def complex_line(sheaf: CellularSheaf) -> ComplexLine | None:
    """Return the complex sheaf that represents a real sheaf, or None if there is none.

    It exists if reflecting some vertex and edge stalks turns all maps into scaled rotations. Its
    eigenvalues are those of the real sheaf, with half the multiplicities.
    """
    if sheaf.map_shape != (2, 2) or sheaf.dtype.kind == "c":
        return None
    n, ends = sheaf.n_vertices, sheaf.edges.T
    numbers, reflects = [], []
    # Maximum relative deviation of a map from a scaled rotation or reflection, in units of eps
    rounding = 16
    for data in (sheaf.tail_data, sheaf.head_data):
        (a, b), (c, d) = data.reshape(-1, 2, 2).transpose(1, 2, 0)
        # a map is x -> z x + w conj(x), with z the rotation and w the reflection
        rotation, reflection = (a + d + 1j * (c - b)) / 2, (a - d + 1j * (c + b)) / 2
        sizes = np.sort([abs(rotation), abs(reflection)], axis=0)
        if (sizes[0] > rounding * eps_of(sheaf.dtype) * sizes[1]).any():
            return None
        reflects.append(abs(reflection) > abs(rotation))
        numbers.append(np.where(reflects[-1], reflection, rotation))
    mirrored = np.zeros(n, bool)
    joins = (numbers[0] != 0) & (numbers[1] != 0)
    differ = (reflects[0] != reflects[1])[joins]
    if differ.any():  # consistent if the double cover separates both copies of a vertex
        u, v = ends[:, joins]
        there, back = np.where(differ, v + n, v), np.where(differ, v, v + n)
        cover = np.stack([np.concatenate([u, u + n]), np.concatenate([there, back])], axis=1)
        labels = component_labels(2 * n, cover)
        mirrored = labels[:n] > labels[n:]
        if (labels[:n] == labels[n:]).any():
            return None
    maps = [
        np.where(odd ^ mirrored[end], z.conj(), z)
        for z, odd, end in zip(numbers, reflects, ends, strict=True)
    ]
    ones = np.ones_like(sheaf.vertex_dims), np.ones_like(sheaf.edge_dims)
    return ComplexLine(trusted_sheaf(sheaf.edges, *ones, *maps), mirrored)
