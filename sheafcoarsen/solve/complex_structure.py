"""Plane rotations as complex numbers: real sheaves that are sheaves of complex lines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._support import linalg
from sheafcoarsen.sheaf import CellularSheaf, component_labels, trusted_sheaf
from sheafcoarsen.solve.block_matrix import complex_columns, real_columns


class ComplexLine(NamedTuple):
    """Complex sheaf with stalks of dimension 1 that represents a real sheaf.

    A complex eigenvector z gives two real ones, z and i z.
    """

    sheaf: CellularSheaf
    mirrored: np.ndarray  # shape (n,), bool: vertices whose coordinates are conjugated

    def expand(self, Z: Any) -> Any:
        """Return the real columns (2 n, 2 m) of Z and i Z, interleaved; sparse if Z is sparse."""
        signs = np.stack([np.ones(Z.shape[0]), np.where(self.mirrored, -1.0, 1.0)], axis=1).ravel()
        if scipy.sparse.issparse(Z):
            one, i = scipy.sparse.eye_array(2), scipy.sparse.csr_array([[0.0, -1.0], [1.0, 0.0]])
            X = scipy.sparse.kron(Z.real, one) + scipy.sparse.kron(Z.imag, i)
            return scipy.sparse.csr_array(scipy.sparse.diags_array(signs) @ X)
        X = np.stack([real_columns(Z), real_columns(1j * Z)], axis=2)
        return X.reshape(len(X), -1) * signs[:, None]

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
    for data in (sheaf.tail_data, sheaf.head_data):
        (a, b), (c, d) = data.reshape(-1, 2, 2).transpose(1, 2, 0)
        # a map is x -> z x + w conj(x), with z the rotation and w the reflection
        rotation, reflection = (a + d + 1j * (c - b)) / 2, (a - d + 1j * (c + b)) / 2
        sizes = np.sort([abs(rotation), abs(reflection)], axis=0)
        if (sizes[0] > 16 * linalg.eps_of(sheaf.dtype) * sizes[1]).any():
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
