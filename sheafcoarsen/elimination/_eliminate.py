"""Elimination of vertices: the generalized Schur complement as a sheaf, and back substitution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels.elimination import Record
from sheafcoarsen._support import CochainLike, ReadOnly, Vertices, checks, labels, ragged, tables
from sheafcoarsen.elimination.factorization import check_connection, factorize
from sheafcoarsen.elimination.substitution import FreeSections, Substitution, free_sections
from sheafcoarsen.operators import as_columns, count_nonzeros
from sheafcoarsen.sheaf import CellularSheaf, check_same_topology, check_sheaf


class Sizes(NamedTuple):
    """Counts for the fine and the reduced sheaf, as pairs.

    ``by_neighbors[k]`` is the number of vertices that had k neighbours at their elimination.
    """

    vertices: tuple[int, int]
    edges: tuple[int, int]
    loops: tuple[int, int]
    dim_c0: tuple[int, int]
    dim_c1: tuple[int, int]
    nonzeros: tuple[int, int]
    by_neighbors: tuple[int, ...]

    @property
    def rows(self) -> list[tuple]:
        """Rows of the HTML table, with the columns name, fine and reduced."""
        names = "vertices", "edges", "of them loops", "dim C^0", "dim C^1", "nonzeros of L"
        table: list[tuple] = [(name, *pair) for name, pair in zip(names, self, strict=False)]
        return table + [(f"eliminated: {text}", "", "") for text in self.eliminated]

    @property
    def remark(self) -> str:
        """One line on the eliminated vertices, for the table of a hierarchy."""
        fine, reduced = self.vertices
        words = ", ".join(self.eliminated) or "nothing"
        what = f"{fine - reduced} of {fine} vertices eliminated exactly ({words})"
        return f"{what}; dim C^0 {self.dim_c0[0]} -> {self.dim_c0[1]}"

    @property
    def eliminated(self) -> list[str]:
        """Phrases such as "11 in chains" that count the eliminated vertices."""
        none, one, two, *more = *self.by_neighbors, *[0] * 3
        texts = {"without neighbours": none, "leaf" if one == 1 else "leaves": one}
        texts |= {"in chains": two, "with 3 or more neighbours": sum(more)}
        return [f"{count} {text}" for text, count in texts.items() if count]


@dataclass(frozen=True, eq=False, repr=False)
class Elimination(ReadOnly):
    """A sheaf reduced to the kept vertices, computed by :func:`eliminate`.

    The Laplacian of ``sheaf`` is the generalized Schur complement of the fine Laplacian L: systems
    with L reduce to systems with it, and its global sections are the restrictions of those of the
    fine sheaf, one to one unless a section vanishes on all kept vertices (``is_determined``). Maps
    at an end of an edge count as zero if they are below 4 n eps times those at its other end, for
    n rows stacked at the vertex. Eigenvalues differ, because the eliminated vertices have no mass.

    Attributes
    ----------
    fine : CellularSheaf
    sheaf : CellularSheaf
        The sheaf on the kept vertices. Its edges are sorted by (a, b), at most one per pair, and
        followed by loops sorted by a. Edges that no elimination changed have their original maps up
        to sign, unless they were parallel or had more rows than columns; loops have new maps. Minus
        the block (a, b) of its Laplacian, the conductance between two buses of a network, is
        ``tail_map(e).conj().T @ head_map(e)`` for the edge e = (a, b).
    kept : ndarray of int
        Indices in ``fine`` of the vertices of ``sheaf``, ascending.
    max_neighbors : int
        Maximum number of neighbours of a vertex at its elimination.
    steps : NamedTuple of arrays
        The eliminated vertices in order, and the maps that determine their values from their
        neighbours.

    Examples
    --------
    Keep two corners of a square with a leaf; their effective resistance is preserved:

    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3], [3, 0], [2, 4]])
    >>> K = sc.eliminate(F, keep=[0, 2])
    >>> K
    Elimination(5 -> 2 vertices: 1 leaf, 2 in chains; dim C^0 5 -> 2, 5 -> 1 edges + 0 loops)
    >>> sc.laplacian(K.sheaf).toarray().round(12)
    array([[ 1., -1.],
           [-1.,  1.]])
    >>> x = K.extend([0.0, 1.0])
    >>> x.round(12)
    array([0. , 0.5, 1. , 0.5, 1. ])

    The values of x on the kept vertices, from the mask of their stalk coordinates:

    >>> import numpy as np
    >>> x[np.repeat(np.isin(np.arange(F.n_vertices), K.kept), F.vertex_dims)].round(12)
    array([0., 1.])
    """

    fine: CellularSheaf
    sheaf: CellularSheaf
    kept: np.ndarray
    max_neighbors: int
    steps: Record

    def __post_init__(self) -> None:
        fine, kept, record = check_sheaf(self.fine, "fine"), self.kept, self.steps
        check_sheaf(self.sheaf, "sheaf")
        if not isinstance(record, Record):
            raise TypeError(
                f"`steps` must be the steps of an elimination, got {type(record).__name__}"
            )
        n, wrong = fine.n_vertices, "the elimination is inconsistent: "
        counts = np.zeros(n, np.int64)
        for name, vertices in (("kept", kept), ("steps.vertices", record.vertices)):
            if vertices.ndim != 1 or vertices.min(initial=0) < 0 or vertices.max(initial=-1) >= n:
                raise ValueError(f"{wrong}`{name}` must hold vertex indices in 0 .. {n - 1}")
            counts += np.bincount(vertices, minlength=n)
        if (counts != 1).any() or (np.diff(kept) <= 0).any():
            raise ValueError(
                f"{wrong}every vertex must be listed once as kept or eliminated, kept ones "
                f"ascending, got {len(kept)} kept and {len(record.vertices)} eliminated vertices "
                f"of {n}"
            )
        if not np.array_equal(fine.vertex_dims[kept], self.sheaf.vertex_dims):
            raise ValueError(f"{wrong}the stalks of `sheaf` are not those of the kept vertices")
        steps, starts, around = len(record.vertices), record.starts, record.neighbors
        if (
            len(starts) != steps + 1
            or starts[0] != 0
            or (np.diff(starts) < 0).any()
            or starts[-1] != len(around)
            or around.min(initial=0) < 0
            or around.max(initial=-1) >= n
        ):
            raise ValueError(
                f"{wrong}`steps.starts` and `steps.neighbors` must be lists of neighbours"
            )
        step_of = np.full(n, steps)
        step_of[record.vertices] = np.arange(steps)
        at = np.repeat(np.arange(steps), np.diff(starts))
        if (step_of[around] <= at).any():
            raise ValueError(f"{wrong}a step refers to a vertex that was eliminated before it")
        dims = fine.vertex_dims[record.vertices]
        sizes = int((dims[at] * fine.vertex_dims[around]).sum()), int((dims**2).sum())
        if (record.blocks.shape, record.inverses.shape) != ((sizes[0],), (sizes[1],)):
            raise ValueError(
                f"{wrong}`steps.blocks` and `steps.inverses` must have sizes {sizes[0]} and "
                f"{sizes[1]}"
            )
        if not (np.isfinite(record.blocks).all() and np.isfinite(record.inverses).all()):
            raise ValueError(f"{wrong}`steps` must be finite")

    @cached_property
    def eliminated(self) -> np.ndarray:
        """The vertices of ``fine`` that were eliminated, ascending."""
        return ragged.read_only(np.sort(self.steps.vertices).astype(np.int64))

    @cached_property
    def sizes(self) -> Sizes:
        """Numbers of vertices, edges, loops and dimensions before and after the elimination."""
        counts = [
            (F.n_vertices, F.n_edges, int(loops.sum()), F.dim_c0, F.dim_c1, int(count_nonzeros(F)))
            for F in (self.fine, self.sheaf)
            for loops in [F.edges[:, 0] == F.edges[:, 1]]
        ]
        by_neighbors = tuple(np.bincount(np.diff(self.steps.starts)).tolist())
        return Sizes._make([*zip(*counts, strict=True), by_neighbors])

    def solution_from(
        self, right: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return extend(solve(reduce(right)), right) for validated columns if ``is_determined``.

        It needs only one forward and one back substitution. If sections vanish on all kept
        vertices, they are not projected out, so that the norm is not minimal.

        Parameters
        ----------
        right : ndarray, shape (dim_c0, h)
            Right-hand sides.
        solve : callable
            Solver of the reduced system, (dim, h) -> (dim, h).

        Returns
        -------
        ndarray, shape (dim_c0, h)

        Examples
        --------
        >>> import networkx as nx
        >>> import numpy as np
        >>> import sheafcoarsen as sc
        >>> K = sc.eliminate(sc.CellularSheaf.constant(nx.path_graph(5)), keep=[0, 4])
        >>> K.solution_from(np.ones((5, 1)), lambda b: np.zeros_like(b)).round(12).ravel()
        array([0. , 1.5, 2. , 1.5, 0. ])
        """
        plain = self._plain
        reduced = plain.forward(right)
        x = np.zeros_like(reduced)
        x[plain.kept] = solve(reduced[plain.kept])
        return plain.extend(x, reduced)

    @cached_property
    def is_determined(self) -> bool:
        """Whether z and b determine ``extend(z, b)``: no L_vv is singular at its elimination."""
        return self._plain.kernel().shape[1] == 0

    @cached_property
    def growth(self) -> float:
        """Estimated factor by which forward substitution enlarges right-hand sides and errors.

        It is modest for connections. If maps expand along hundreds of edges of a tree, extended
        values have relative errors of ``growth`` eps, or are infinite.
        """
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.fine.dim_c0, 1))
        with np.errstate(over="ignore", invalid="ignore"):
            largest = float(np.abs(self._plain.forward(signs)).max(initial=1.0))
        return largest if np.isfinite(largest) else np.inf

    @cached_property
    def _plain(self) -> Substitution:
        starts = self.fine.vertex_offsets
        kept = ragged.range_of_blocks(starts, self.kept)
        return Substitution(self.fine.vertex_dims, starts, self.steps, kept)

    @cached_property
    def _projected(self) -> Substitution | FreeSections:
        """Substitution for L_vv^+, that is, for the minimum norm."""
        return free_sections(self._plain) or self._plain

    def extend(self, z: CochainLike, b: CochainLike | None = None) -> np.ndarray:
        """Extend z from the kept vertices to the minimum-norm fine cochain of minimum energy.

        With a right-hand side b, x_v = L_vv^+ (b_v - L_vk z) on the eliminated vertices: if z
        solves the reduced system with ``reduce(b)``, x solves L x = b. Values along a tree are
        computed one from another, so values and rounding errors grow by the factor ``growth`` if
        maps expand over hundreds of edges. The norm is minimal up to relative errors of ``growth``
        eps, unless sections on eliminated vertices are parallel up to rounding. If there are such
        sections, ``is_determined`` is False, and L x = b requires b to be orthogonal to them;
        another b is projected first, without a warning.

        Parameters
        ----------
        z : array_like, shape (dim,) or (dim, h)
            A cochain of ``sheaf``; dim is the dimension of its C^0.
        b : array_like, shape (dim_c0,) or (dim_c0, h), optional
            Right-hand side, of which only the values at eliminated vertices are used.

        Returns
        -------
        ndarray, shape (dim_c0,) or (dim_c0, h)

        Raises
        ------
        ValueError, TypeError
            If arrays have another shape or entries that are not finite.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> K = sc.eliminate(sc.CellularSheaf.constant(nx.path_graph(5)), keep=[0, 4])
        >>> K.extend([0.0, 1.0]).round(12)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
        """
        z = checks.cochain(self.sheaf, z, "z", " of the reduced sheaf")
        dtype, reduced = z.dtype, None
        if b is not None:
            right = checks.cochain(self.fine, b, "b", " of the fine sheaf", right_side=True)
            if right.shape[1:] != z.shape[1:]:
                raise ValueError(
                    f"`b` must have as many columns as `z`, of shape {z.shape}, got shape "
                    f"{right.shape}"
                )
            dtype = np.result_type(dtype, right.dtype)
            double = np.result_type(dtype, np.float64)
            reduced = self._projected.forward(as_columns(right).astype(double, copy=False))
        columns = as_columns(z)
        x = np.zeros((self.fine.dim_c0, columns.shape[1]), np.result_type(dtype, np.float64))
        x[self._plain.kept] = columns
        x = self._projected.extend(x, reduced)
        return x.reshape(len(x), *z.shape[1:]).astype(dtype, copy=False)

    def reduce(self, b: CochainLike) -> np.ndarray:
        """Return the right-hand side b_kept - L_kv L_vv^+ b_v of the reduced system.

        Parameters
        ----------
        b : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        ndarray, shape (dim,) or (dim, h)
            Here dim is the dimension of C^0 of ``sheaf``.

        Raises
        ------
        ValueError, TypeError
            If the array has another shape or entries that are not finite.

        Examples
        --------
        A current that enters a path at an inner vertex leaves at the ends:

        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> K = sc.eliminate(sc.CellularSheaf.constant(nx.path_graph(5)), keep=[0, 4])
        >>> K.reduce([0.0, 1.0, 0.0, 0.0, 0.0]).round(12)
        array([0.75, 0.25])
        """
        right = checks.cochain(self.fine, b, "b", " of the fine sheaf", right_side=True)
        out = self._projected.forward(as_columns(right))[self._plain.kept]
        return out.reshape(len(out), *right.shape[1:]).astype(right.dtype, copy=False)

    @cached_property
    def prolongation(self) -> scipy.sparse.csr_array:
        """The harmonic prolongation P, z -> extend(z), shape (dim_c0, dim).

        P* L P is the Laplacian of ``sheaf``, and L P vanishes in the rows of eliminated vertices.
        """
        P = self._projected.prolongation().astype(self.fine.dtype, copy=False)
        for array in (P.data, P.indices, P.indptr):
            ragged.read_only(array)
        return P

    def refresh(self, sheaf: CellularSheaf) -> Elimination:
        """Return the elimination of the same vertices of another sheaf on the same graph.

        Parameters
        ----------
        sheaf : CellularSheaf
            A sheaf on the graph of ``fine`` with stalks of the same dimensions; its scalar type
            may differ.

        Returns
        -------
        Elimination
            It has the same ``kept`` vertices, or more of them if star-mesh is not exact for the
            new maps, or maps that were zero are not.

        Raises
        ------
        ValueError
            If the graph or the stalks differ.

        Notes
        -----
        All steps are repeated, as in :func:`eliminate`.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(5))
        >>> K = sc.eliminate(F, keep=[0, 4])
        >>> sc.laplacian(K.refresh(F.with_maps(2 * F.tail_data, 2 * F.head_data)).sheaf).toarray()
        array([[ 1., -1.],
               [-1.,  1.]])
        """
        check_same_topology(
            self.fine,
            check_sheaf(sheaf),
            "the graph and the stalks of the original sheaf",
            "use eliminate for another graph",
        )
        return eliminate(sheaf, self.kept, self.max_neighbors)

    def __repr__(self) -> str:
        S = self.sizes
        (fine, reduced), loops = S.vertices, S.loops[1]
        which = f": {', '.join(S.eliminated)}" if S.eliminated else ""
        return (
            f"Elimination({fine} -> {reduced} vertices{which}; dim C^0 {S.dim_c0[0]} -> "
            f"{S.dim_c0[1]}, {S.edges[0]} -> {S.edges[1] - loops} edges + {loops} loops)"
        )

    def _repr_html_(self) -> str:
        return tables.table(self.sizes.rows, head=("", "fine", "reduced"), caption="Elimination")


def eliminate(
    sheaf: CellularSheaf, keep: Vertices | None = None, max_neighbors: int = 2
) -> Elimination:
    """Eliminate vertices with few neighbours; the Schur complement is the new sheaf's Laplacian.

    Stack the rows of all edges and loops at a vertex v as A_u x_u + A_w x_w - M x_v, and let Q be
    an orthonormal basis of the complement of im M. The minimum energy over x_v is norm(Q* A_u x_u +
    Q* A_w x_w)^2, which for any maps is the energy of an edge between the neighbours u and w, or of
    a loop at a single neighbour. The minimizer is x_v = M^+ (A_u x_u + A_w x_w). Leaves and chains
    are eliminated until all other vertices have more than two neighbours or are in ``keep``. The
    resulting Laplacian does not depend on the order (docs/conventions.md, section 12).

    Parameters
    ----------
    sheaf : CellularSheaf
    keep : array_like of int or bool, or sequence of names, optional
        Vertices that are never eliminated: their indices or names, or a mask of shape (n,).
        Integers alone are indices.
    max_neighbors : int
        Maximum number of neighbours of an eliminated vertex. Values above 2 are allowed only for
        connections, whose maps are scaled isometries. Star-mesh then replaces a vertex by edges of
        weight w_i w_j / sum w between its neighbours, which is exact for stalks of dimension 1
        and rotations of the plane. In other connections a vertex is kept if two of its parallel
        edges, given or made by eliminations, or a loop have transports that disagree. Vertices
        with the fewest neighbours are eliminated first.

    Returns
    -------
    Elimination

    Raises
    ------
    ValueError, TypeError
        If vertices are out of range or not whole numbers, a mask has another length, or
        ``max_neighbors`` is above 2 for maps that are not a connection.

    Notes
    -----
    With ``max_neighbors`` = 2 the time is linear in the number of edges. Above 2 it grows with the
    cube of the numbers of neighbours that occur: if more than about a thousand vertices get densely
    joined, a dense Schur complement computed by numpy is faster.

    Rows are stacked and reduced by Householder reflections in double precision, which does not
    square the condition number of the maps. The rank of M is decided row by row, relative to the
    original maps; otherwise rows that cancel up to rounding would count as nonzero.

    Examples
    --------
    Trees are eliminated entirely, but cycles are not:

    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> sc.eliminate(sc.CellularSheaf.constant(nx.balanced_tree(3, 4))).sheaf.n_vertices
    0
    >>> sc.eliminate(sc.CellularSheaf.constant(nx.karate_club_graph()))
    Elimination(34 -> 22 vertices: 1 leaf, 11 in chains; dim C^0 34 -> 22, 78 -> 56 edges + 0 loops)

    Star-mesh, for a connection:

    >>> star = sc.CellularSheaf.constant(nx.star_graph(4))
    >>> K = sc.eliminate(star, keep=[1, 2, 3, 4], max_neighbors=4)
    >>> sc.laplacian(K.sheaf).toarray().round(12)
    array([[ 0.75, -0.25, -0.25, -0.25],
           [-0.25,  0.75, -0.25, -0.25],
           [-0.25, -0.25,  0.75, -0.25],
           [-0.25, -0.25, -0.25,  0.75]])
    """
    check_sheaf(sheaf)
    mask = labels.vertex_mask("keep", () if keep is None else keep, sheaf)
    most = checks.whole_number("max_neighbors", max_neighbors, at_least=0)
    if most > 2:
        check_connection(sheaf, most)
    steps, reduced, kept = factorize(sheaf, mask, most)
    K = object.__new__(Elimination)  # skip validation: the parts are consistent by construction
    K.__dict__.update(fine=sheaf, sheaf=reduced, kept=kept, max_neighbors=most, steps=steps)
    return K


def dim_of_few_edges(sheaf: CellularSheaf) -> int:
    """Return the total stalk dimension of vertices with at most two half-edges, except loops."""
    ends = sheaf.edges[sheaf.edges[:, 0] != sheaf.edges[:, 1]]
    few = np.bincount(ends.reshape(-1), minlength=sheaf.n_vertices) <= 2
    return int(sheaf.vertex_dims[few].sum())
