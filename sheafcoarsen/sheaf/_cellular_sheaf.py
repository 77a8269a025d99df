"""Cellular sheaves on graphs, stored as flat arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Self

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import ReadOnly, checks, linalg, tables
from sheafcoarsen.sheaf.from_graphs import FromGraphs
from sheafcoarsen.sheaf.graphs import edge_array, same_topology, vertex_names
from sheafcoarsen.sheaf.maps import MapsLike, flat_arrays, flat_maps, stalk_dims
from sheafcoarsen.sheaf.properties import both_ends


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CellularSheaf(FromGraphs, ReadOnly):
    """A vector space on every vertex and edge of a graph, and a linear map for every incident pair.

    The coboundary (``eq:coboundary``) compares the two ends of an edge ``e = (u, v)`` in its
    stalk::

        (delta x)_e = F_{u->e} x_u - F_{v->e} x_v

    and the Laplacian is ``L = delta* delta`` (``eq:sheaf-laplacian``). Vertices and edges are
    numbered from 0. Loops (u = v), parallel edges, isolated vertices, several components and stalks
    of dimension 0 are all allowed.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Row e is (tail u, head v); order and orientation are kept.
    tail_maps, head_maps : array_like, shape (m, d_e, d_v), or sequence of m 2-D arrays
        Map e has shape (d_e, d_u) at the tail and (d_e, d_v) at the head. Integers become float64.
    vertex_dims : array_like of int, shape (n,), optional
        Required for isolated vertices; by default the numbers of columns of the maps.
    vertex_labels : sequence of n hashable names, all different, optional
        In vertex order.

    Attributes
    ----------
    edges : ndarray of int, shape (m, 2)
    vertex_dims, edge_dims : ndarray of int, shape (n,) and (m,)
        Dimensions of the stalks.
    tail_data, head_data : ndarray
        The maps one after the other, each row-major: map e is
        ``tail_data[tail_offsets[e]:tail_offsets[e + 1]]``.
    vertex_labels : tuple or None
        Node names of the graph in vertex order.

    Raises
    ------
    ValueError
        Endpoints out of range, maps whose shapes disagree, entries that are not finite, or a
        largest entry whose square would over- or underflow; a number of names other than n, or a
        repeated name.
    TypeError
        Maps of a scalar type other than float32, float64, complex64, complex128 or integers;
        names that are not hashable.

    Examples
    --------
    Two vertices with stalks of dimension 1 and 2, and an edge with a stalk of dimension 2:

    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf([[0, 1]], [[[1.0], [0.0]]], [[[1.0, 0.0], [0.0, 2.0]]])
    >>> F
    CellularSheaf(n_vertices=2, n_edges=1, dim_c0=3, dim_c1=2, dtype=float64)
    >>> sc.coboundary(F).toarray()
    array([[ 1., -1.,  0.],
           [ 0.,  0., -2.]])
    """

    edges: np.ndarray
    vertex_dims: np.ndarray
    edge_dims: np.ndarray
    tail_data: np.ndarray
    head_data: np.ndarray
    vertex_labels: tuple | None

    def __init__(
        self,
        edges: npt.ArrayLike,
        tail_maps: MapsLike,
        head_maps: MapsLike,
        vertex_dims: npt.ArrayLike | None = None,
        vertex_labels: Iterable[Hashable] | None = None,
    ) -> None:
        edges = edge_array("edges", edges)
        tail, tail_rows, tail_cols = flat_maps("tail_maps", tail_maps, len(edges))
        head, head_rows, head_cols = flat_maps("head_maps", head_maps, len(edges))
        if (e := checks.first_true(tail_rows != head_rows)) is not None:
            raise ValueError(
                f"`tail_maps[{e}]` has {tail_rows[e]} rows and `head_maps[{e}]` has "
                f"{head_rows[e]}: the number of rows of both must be the dimension of the edge's "
                f"stalk"
            )
        dims = stalk_dims(edges, tail_cols, head_cols, vertex_dims)
        labels = None if vertex_labels is None else vertex_names(vertex_labels, len(dims))
        vars(self).update(vars(self._of_arrays(edges, dims, tail_rows, tail, head, labels)))
        self._check_maps()

    @classmethod
    def from_flat(
        cls,
        edges: npt.ArrayLike,
        tail_data: npt.ArrayLike,
        head_data: npt.ArrayLike,
        vertex_dims: npt.ArrayLike,
        edge_dims: npt.ArrayLike,
    ) -> Self:
        """Build a sheaf from flat map data, faster than from m arrays if stalks are ragged.

        Parameters
        ----------
        edges : array_like of int, shape (m, 2)
        tail_data, head_data : array_like, shape (sum of d_e d_v,)
            The maps one after the other in edge order, each row-major.
        vertex_dims, edge_dims : array_like of int, shape (n,) and (m,), or int

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            As the constructor; flat data whose length does not match the dimensions.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.from_flat([[0, 1]], [1.0, 0.0], [1.0, 0.0, 0.0, 2.0], [1, 2], [2])
        >>> F.head_map(0)
        array([[1., 0.],
               [0., 2.]])
        """
        arrays = flat_arrays(edges, tail_data, head_data, vertex_dims, edge_dims, copy=True)
        return cls._of_arrays(*arrays)._check_maps()

    def equals(self, other: Self) -> bool:
        """Return whether another sheaf is identical, bit for bit.

        Compares graph, orientation, stalks, vertex labels, scalar type and every bit of the maps; 0
        and -0 differ.

        Parameters
        ----------
        other : CellularSheaf

        Returns
        -------
        bool
            False for anything but a sheaf.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
        >>> F.equals(sc.from_networkx(sc.to_networkx(F))), F.equals(F.with_labels(["a", "b", "c"]))
        (True, False)
        """
        return (
            isinstance(other, CellularSheaf)
            and self.dtype == other.dtype
            and same_topology(self, other)
            and self.vertex_labels == other.vertex_labels
            and np.array_equal(self.tail_data.view(np.uint8), other.tail_data.view(np.uint8))
            and np.array_equal(self.head_data.view(np.uint8), other.head_data.view(np.uint8))
        )

    def allclose(self, other: Self, rtol: float | None = None) -> bool:
        """Return whether another sheaf is equal up to rounding errors in its maps.

        Graph, orientation, stalks and vertex labels must be the same. A map may differ by ``rtol``
        times its largest absolute value; there is no absolute tolerance, so the result does not
        depend on the scale, and only 0 is close to a map that is 0.

        Parameters
        ----------
        other : CellularSheaf
            May have another scalar type.
        rtol : float, optional
            Default 30 d eps, where d is the largest dimension of a stalk and eps belongs to the
            less precise scalar type.

        Returns
        -------
        bool

        Raises
        ------
        ValueError, TypeError
            For anything but a sheaf, or an ``rtol`` that is negative or not finite.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]], weight=[2.0, 3.0])
        >>> G = sc.CellularSheaf.from_laplacian(sc.laplacian(F), 1)
        >>> F.allclose(G), F.allclose(F.with_maps(1.001 * F.tail_data, F.head_data))
        (True, False)
        """
        checks.kind("other", other, CellularSheaf)
        if rtol is not None:
            rtol = checks.real_number("rtol", rtol)
            if not 0 <= rtol < np.inf:
                raise ValueError(f"`rtol` must be at least 0 and finite, got {rtol:g}")
        if not same_topology(self, other) or self.vertex_labels != other.vertex_labels:
            return False
        if rtol is None:
            d = max(self.vertex_dims.max(initial=1), self.edge_dims.max(initial=1))
            rtol = (
                linalg.RESIDUAL_LIMIT
                * int(d)
                * max(linalg.eps_of(self.dtype), linalg.eps_of(other.dtype))
            )
        for (_, mine, starts), (_, theirs, _) in zip(
            both_ends(self), both_ends(other), strict=True
        ):
            # reduceat cannot skip empty maps, so they are left out
            begins = starts[np.flatnonzero(np.diff(starts))]
            sizes = (np.maximum.reduceat(np.abs(data), begins) for data in (mine, theirs))
            with np.errstate(over="ignore"):
                errors = np.maximum.reduceat(np.abs(mine - theirs), begins)
            if not (errors <= rtol * np.maximum(*sizes)).all():
                return False
        return True

    def __repr__(self) -> str:
        return (
            f"CellularSheaf(n_vertices={self.n_vertices}, n_edges={self.n_edges}, "
            f"dim_c0={self.dim_c0}, dim_c1={self.dim_c1}, dtype={self.dtype})"
        )

    def _repr_html_(self) -> str:
        rows = [
            *sheaf_rows(self),
            ("maps", f"{self.dtype}, largest entry {self.largest_entry:.4g}"),
        ]
        if self.vertex_labels:
            rows.append(("vertex labels", tables.names(self.vertex_labels)))
        return tables.table(rows, caption="CellularSheaf")


trusted_sheaf = CellularSheaf._of_arrays


def checked_sheaf(
    edges: npt.ArrayLike,
    tail_data: npt.ArrayLike,
    head_data: npt.ArrayLike,
    vertex_dims: npt.ArrayLike,
    edge_dims: npt.ArrayLike,
    vertex_labels: tuple | None = None,
) -> CellularSheaf:
    """Return a sheaf that shares flat data, after checking all but labels and the maps' range.

    A coarse sheaf may exceed the range that is allowed for user-supplied maps.
    """
    arrays = flat_arrays(edges, tail_data, head_data, vertex_dims, edge_dims)
    sheaf = trusted_sheaf(*arrays, vertex_labels)
    sheaf._check_finite()
    return sheaf


def check_sheaf(value: object, name: str = "sheaf") -> CellularSheaf:
    """Check that a value is a sheaf, and return it; the error suggests a fix."""
    if isinstance(value, CellularSheaf):
        return value
    remedy = ""
    if isinstance(getattr(value, "sheaf", None), CellularSheaf):
        remedy = ": pass its attribute `sheaf`"
        if hasattr(value, "joint_sheaf"):
            remedy += " (rotations) or `joint_sheaf()` (rotations and positions)"
    elif isinstance(value, nx.Graph | np.ndarray) or scipy.sparse.issparse(value):
        remedy = (
            ": CellularSheaf.constant(graph) makes one of a graph, "
            "CellularSheaf.from_laplacian(L) of a Laplacian"
        )
    raise TypeError(f"`{name}` must be a CellularSheaf, got {type(value).__name__}{remedy}")


def sheaf_rows(sheaf: CellularSheaf) -> list[tuple]:
    """Return the rows (name, value) of the table that describes a sheaf."""
    return [
        ("vertices", sheaf.n_vertices),
        (
            "vertex stalks",
            f"dim {tables.span(sheaf.vertex_dims)}, together dim C^0 = {sheaf.dim_c0:,}",
        ),
        ("edges", sheaf.n_edges),
        ("of them loops", int((sheaf.edges[:, 0] == sheaf.edges[:, 1]).sum())),
        ("edge stalks", f"dim {tables.span(sheaf.edge_dims)}, together dim C^1 = {sheaf.dim_c1:,}"),
    ]
