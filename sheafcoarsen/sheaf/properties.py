"""Arrays, sizes, offsets and single maps of a sheaf, and the comparison of two sheaves."""

from functools import cached_property
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from sheafcoarsen._kernels.arrays import SheafArrays, scan
from sheafcoarsen._support import checks, ragged


class Views:
    """Properties of :class:`CellularSheaf` that derive from its flat arrays."""

    edges: np.ndarray
    vertex_dims: np.ndarray
    edge_dims: np.ndarray
    tail_data: np.ndarray
    head_data: np.ndarray
    vertex_labels: tuple | None
    _columns: np.ndarray | None = None
    """For a sheaf of ``from_edge_index``: columns of the tail and head maps, shape (2, m)."""

    @classmethod
    def _of_arrays(
        cls,
        edges: np.ndarray,
        vertex_dims: np.ndarray,
        edge_dims: np.ndarray,
        tail_data: np.ndarray,
        head_data: np.ndarray,
        vertex_labels: tuple | None = None,
    ) -> Self:
        """Return a sheaf that takes ownership of consistent arrays, without checks or copies."""
        dtype = np.result_type(tail_data.dtype, head_data.dtype)
        sheaf = object.__new__(cls)
        vars(sheaf).update(  # as the class is frozen
            edges=ragged.read_only(edges),
            vertex_dims=ragged.read_only(vertex_dims),
            edge_dims=ragged.read_only(edge_dims),
            tail_data=ragged.read_only(np.ascontiguousarray(tail_data, dtype)),
            head_data=ragged.read_only(np.ascontiguousarray(head_data, dtype)),
            vertex_labels=vertex_labels,
        )
        return sheaf

    @cached_property
    def _scans(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """(index of the first non-finite entry or -1, largest modulus) of tail and of head maps."""
        return scan(self.tail_data), scan(self.head_data)

    @cached_property
    def largest_entry(self) -> float:
        """Largest absolute value of a map entry, used to scale norms."""
        return max(size for _, size in self._scans)

    def _check_finite(self) -> None:
        """Raise an error that names the edge of the first non-finite map entry, if there is one."""
        for end, (bad, _) in zip(("tail", "head"), self._scans, strict=True):
            if bad >= 0:
                data, starts = getattr(self, f"{end}_data"), getattr(self, f"{end}_offsets")
                e = int(np.searchsorted(starts, bad, side="right")) - 1
                u, v = self.edges[e].tolist()
                raise ValueError(
                    f"`{end}_maps[{e}]` (edge {u} -> {v}) must be finite, got {data[bad]}"
                )

    def _check_maps(self) -> Self:
        """Return the sheaf, after checking that map entries are finite and in the allowed range."""
        self._check_finite()
        checks.check_range("tail_maps and head_maps", self.largest_entry, self.dtype)
        return self

    @property
    def n_vertices(self) -> int:
        """Number of vertices n."""
        return len(self.vertex_dims)

    @property
    def n_edges(self) -> int:
        """Number of edges m, loops included."""
        return len(self.edges)

    @property
    def dim_c0(self) -> int:
        """Dimension of C^0 (``eq:zero-cochains``, ``eq:fine_cochain_space``): sum of the d_v."""
        return int(self.vertex_offsets[-1])

    @property
    def dim_c1(self) -> int:
        """Dimension of C^1 (``eq:coboundary-domain``): sum of the d_e."""
        return int(self.edge_offsets[-1])

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the maps."""
        return self.tail_data.dtype

    @cached_property
    def vertex_offsets(self) -> np.ndarray:
        """Offset of each vertex's stalk in C^0, shape (n + 1,)."""
        return ragged.read_only(ragged.offsets(self.vertex_dims))

    @cached_property
    def edge_offsets(self) -> np.ndarray:
        """Offset of each edge's stalk in C^1, shape (m + 1,)."""
        return ragged.read_only(ragged.offsets(self.edge_dims))

    @cached_property
    def tail_offsets(self) -> np.ndarray:
        """Offset of each map in ``tail_data``, shape (m + 1,)."""
        return ragged.read_only(ragged.offsets(self.edge_dims * self.vertex_dims[self.edges[:, 0]]))

    @cached_property
    def head_offsets(self) -> np.ndarray:
        """Offset of each map in ``head_data``, shape (m + 1,)."""
        return ragged.read_only(ragged.offsets(self.edge_dims * self.vertex_dims[self.edges[:, 1]]))

    @cached_property
    def map_shape(self) -> tuple[int, int] | None:
        """(d_e, d_v) if all edges have the same d_e and all vertices the same d_v, or None."""
        dims = self.edge_dims, self.vertex_dims
        if not self.n_edges or any((d != d[0]).any() for d in dims):
            return None
        return int(dims[0][0]), int(dims[1][0])

    @cached_property
    def arrays(self) -> SheafArrays:
        """Arrays of the sheaf as a tuple, which kernels take as one argument."""
        return SheafArrays(*(getattr(self, name) for name in SheafArrays._fields))

    def _map(self, e: int, data: np.ndarray, starts: np.ndarray, end: int) -> np.ndarray:
        e = checks.item_index("e", e, "edge", self.n_edges)
        shape = (self.edge_dims[e], self.vertex_dims[self.edges[e, end]])
        return data[starts[e] : starts[e + 1]].reshape(shape)

    def tail_map(self, e: int) -> np.ndarray:
        """Return F_{u->e} (``eq:restriction-map``) of edge ``e = (u, v)``, read-only.

        Parameters
        ----------
        e : int
            Index of the edge; negative indices count from the end.

        Returns
        -------
        ndarray, shape (d_e, d_u)
            Read-only.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.CellularSheaf.constant([[0, 1]], dim=2, weight=[4.0]).tail_map(0)
        array([[2., 0.],
               [0., 2.]])
        """
        return self._map(e, self.tail_data, self.tail_offsets, 0)

    def head_map(self, e: int) -> np.ndarray:
        """Return F_{v->e} of edge ``e = (u, v)``, read-only.

        Parameters
        ----------
        e : int
            Index of the edge; negative indices count from the end.

        Returns
        -------
        ndarray, shape (d_e, d_v)
            Read-only.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.CellularSheaf.constant([[0, 1]], dim=2, weight=[4.0]).head_map(0)
        array([[2., 0.],
               [0., 2.]])
        """
        return self._map(e, self.head_data, self.head_offsets, 1)


def both_ends(F: Views) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]:
    """Return vertices, maps and offsets of maps, for the tails and for the heads of all edges."""
    tails, heads = F.edges.T
    return (tails, F.tail_data, F.tail_offsets), (heads, F.head_data, F.head_offsets)


# ---------------------------------------------------------------- comparison


class Topology(NamedTuple):
    """Edges and stalk dimensions of a sheaf, without its maps."""

    edges: np.ndarray
    vertex_dims: np.ndarray
    edge_dims: np.ndarray


HasTopology: TypeAlias = Views | Topology


def same_array(mine: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two index arrays are equal; an array is not compared with itself."""
    return mine is other or np.array_equal(mine, other)


def same_topology(F: HasTopology, G: HasTopology) -> bool:
    """Return whether two sheaves have the same edges, in the same order, and the same stalks."""
    return all(same_array(getattr(F, name), getattr(G, name)) for name in Topology._fields)


def check_same_topology(F: HasTopology, sheaf: Views, wanted: str, remedy: str) -> None:
    """Raise an error unless a sheaf has the edges and stalks of F, described by ``wanted``."""
    for name in Topology._fields:
        mine, other = getattr(F, name), getattr(sheaf, name)
        if same_array(mine, other):
            continue
        if len(mine) != len(other):
            what = f"there are {len(other)} of them, not {len(mine)}"
        else:
            i = int(np.argmax((mine != other).reshape(len(mine), -1).any(axis=1)))
            what = f"first at index {i}, with {other[i].tolist()} instead of {mine[i].tolist()}"
        raise ValueError(f"`sheaf` must have {wanted}, but its {name} differ, {what}: {remedy}")


def close_maps(mine: np.ndarray, other: np.ndarray, starts: np.ndarray, rtol: float) -> bool:
    """Return whether all pairs of maps agree to within ``rtol`` times their largest entry."""
    # reduceat cannot skip empty maps, so they are left out
    begins = starts[np.flatnonzero(np.diff(starts))]
    sizes = np.maximum(*(np.maximum.reduceat(np.abs(data), begins) for data in (mine, other)))
    with np.errstate(over="ignore"):
        errors = np.maximum.reduceat(np.abs(mine - other), begins)
    return bool((errors <= rtol * sizes).all())
