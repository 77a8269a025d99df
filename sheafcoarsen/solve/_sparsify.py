"""Sparsification: a sheaf on fewer edges, with a bound on the change of the Laplacian."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.linalg import eigh_tridiagonal

from sheafcoarsen._support import (
    ReadOnly,
    Seed,
    blocks,
    fraction,
    random_generator,
    read_only,
    single_threaded_blas,
    tables,
)
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sheaf import (
    CellularSheaf,
    check_sheaf,
    component_labels,
    sheaf_like,
    trusted_sheaf,
    unit_sheaf,
)
from sheafcoarsen.solve._leverages import by_edge, own_unit, sketched
from sheafcoarsen.solve._solver import Solver, approximate_inverse, solve_in_range
from sheafcoarsen.solve.deflation import deflated

FIRST = 4.0
"""Initial oversampling times eps^2. In a complete graph each edge is then kept with probability
2 FIRST / (eps^2 n), and L' deviates from L by about 0.7 eps.
"""

MORE = 2.0
"""Factor by which the oversampling is multiplied until L' satisfies the required bounds."""

SKETCH_COLUMNS, SKETCH_TOL = 32, 1e-3
"""Number of columns of the sketch of leverages, and relative residual of its solves. Probabilities
are off by up to a quarter, which is less than the error of rounding them to powers of 1/2.
"""

MOST_HALVINGS = 40
"""Maximum number of rounds that may drop an edge; surviving them all scales its maps by 2**20."""

STEPS = 400
"""Maximum number of Lanczos steps."""

CLOSE = 1e-5
"""Residual, relative to L, at which Lanczos stops. The error of a Ritz value is about the squared
residual divided by the spectral gap: 1e-7 for a network of 5000 vertices.
"""

SOLVE_TOL = 1e-8
"""Relative residual of the solves in the Lanczos iteration."""


@dataclass(frozen=True, eq=False, repr=False)
class Sparsification(ReadOnly):
    """Sheaf with larger maps on some of the edges of a sheaf, computed by :func:`sparsify`.

    Attributes
    ----------
    fine : CellularSheaf
    sheaf : CellularSheaf
        On all vertices of ``fine`` and some of its edges, in their order.
    edges : ndarray of int
        The edges of ``sheaf`` as edges of ``fine``, ascending.
    weights : ndarray
        At least 1: the maps of edge ``edges[i]`` are multiplied by ``sqrt(weights[i])``.
    eps : float or None
        The ``eps`` of :func:`sparsify`, or None if it is unknown.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> Z = sc.sparsify(sc.CellularSheaf.constant(nx.complete_graph(100)), 0.5)
    >>> Z.sheaf.n_edges < 2500
    True
    >>> lo, hi = Z.bounds()
    >>> 0.5 < lo < hi < 1.5
    True
    """

    fine: CellularSheaf
    sheaf: CellularSheaf
    edges: np.ndarray
    weights: np.ndarray
    eps: float | None = None

    def __post_init__(self) -> None:
        check_sheaf(self.fine, "fine")
        check_sheaf(self.sheaf, "sheaf")
        wrong = "the sparsification is inconsistent: "
        edges, weights = self.edges, self.weights
        if edges.shape != (self.sheaf.n_edges,) or weights.shape != edges.shape:
            raise ValueError(
                f"{wrong}`edges` and `weights` must have shape ({self.sheaf.n_edges},), one entry "
                f"per edge of `sheaf`, got {edges.shape} and {weights.shape}"
            )
        if len(edges) and (
            edges[0] < 0 or edges[-1] >= self.fine.n_edges or (np.diff(edges) <= 0).any()
        ):
            raise ValueError(
                f"{wrong}`edges` must be ascending indices of the {self.fine.n_edges} edges of "
                f"`fine`"
            )
        if not ((weights > 0) & (weights < np.inf)).all():
            raise ValueError(f"{wrong}`weights` must be positive and finite")
        if self.eps is not None:
            fraction("eps", self.eps)
        if not np.array_equal(self.fine.edges[edges], self.sheaf.edges) or not (
            np.array_equal(self.fine.vertex_dims, self.sheaf.vertex_dims)
            and np.array_equal(self.fine.edge_dims[edges], self.sheaf.edge_dims)
        ):
            raise ValueError(f"{wrong}`sheaf` must have the stalks of `fine` and its edges `edges`")

    @property
    def prolongation(self) -> scipy.sparse.csr_array:
        """The identity, because the vertices and their stalks are those of ``fine``."""
        return scipy.sparse.eye_array(self.fine.dim_c0, dtype=self.fine.dtype, format="csr")

    def bounds(self) -> tuple[float, float]:
        """Return the extreme generalized eigenvalues of (L', L) on the range of L.

        L and L' are the Laplacians of ``fine`` and ``sheaf``: lo x* L x <= x* L' x <= hi x* L x for
        every x. The bounds are computed once, by Lanczos iterations with L^+ L' to a residual of
        1e-5; their error is about its square. They are (1, 1) if L = 0.

        Returns
        -------
        tuple of float

        Raises
        ------
        NotConverged
            If the residual is not reached; ``result`` of the error is the pair.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> lo, hi = sc.sparsify(sc.CellularSheaf.constant(nx.complete_graph(50)), 0.9).bounds()
        >>> 0.1 < lo < 0.9 < 1.1 < hi < 1.9
        True
        """
        known = self.__dict__.get("_bounds")
        if known is None:
            known = extreme_ratios(self.fine, self.sheaf, Solver(own_unit(self.fine)))
            self.__dict__["_bounds"] = known
        return known

    @property
    def remark(self) -> str:
        """The number of edges of both sheaves, and the bounds if they were computed."""
        known = self.__dict__.get("_bounds")
        bounds = ", {:.3g} L <= L' <= {:.3g} L".format(*known) if known else ""
        return f"{self.fine.n_edges} -> {self.sheaf.n_edges} edges{bounds}"

    def __repr__(self) -> str:
        return f"Sparsification({self.remark})"

    def _repr_html_(self) -> str:
        known = self.__dict__.get("_bounds")
        rows: list[tuple] = [
            ("edges", self.fine.n_edges, self.sheaf.n_edges),
            ("dim C^1", self.fine.dim_c1, self.sheaf.dim_c1),
            ("largest weight", 1, f"{self.weights.max(initial=1):.4g}"),
        ]
        if known:
            rows.append(("eigenvalues of (L', L)", 1, "{:.4g} .. {:.4g}".format(*known)))
        return tables.table(rows, head=("", "fine", "sparse"), caption="Sparsification")


def sparsify(sheaf: CellularSheaf, eps: float, *, seed: Seed = 0) -> Sparsification:
    """Return a sheaf on some of the edges with (1 - eps) L <= L' <= (1 + eps) L.

    Edges are kept with probabilities proportional to their leverages, and the maps of kept edges
    are divided by the square roots of these probabilities. More edges are drawn until the extreme
    generalized eigenvalues of (L', L) are in the interval. So the bounds always hold, global
    sections are the same, and energies differ by a factor between 1 - eps and 1 + eps.

    Parameters
    ----------
    sheaf : CellularSheaf
    eps : float
        Above 0 and below 1.
    seed : None, int or numpy Generator

    Returns
    -------
    Sparsification
        With all edges and weights 1 if fewer edges do not suffice.

    Raises
    ------
    ValueError, TypeError
        If eps is outside (0, 1) or ``sheaf`` is not a sheaf.
    NotConverged
        If the solver or the eigenvalue iteration does not converge.

    Notes
    -----
    Probabilities are powers of 1/2, because edges are halved repeatedly: in each round the edges at
    a vertex are paired at random, the pairs link edges to chains, and every second edge of a chain
    is kept. So every edge is kept with its probability, and the number of edges at a vertex is
    halved up to one edge. Independent draws would need about twice as many edges for the same
    bounds, because some vertices would lose too many edges. The initial oversampling is 4 / eps^2.
    It needs no logarithm as in Spielman and Srivastava's proof (SIAM J. Comput. 40, 2011; for
    sheaves Hansen and Ghrist 2019), because the bounds are computed.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.gallery.bundle(nx.complete_graph(60), 2, noise=0.3, seed=0)
    >>> Z = sc.sparsify(F, 0.6)
    >>> Z.sheaf.n_edges < F.n_edges / 2, sc.verify(Z).passed
    (True, True)
    """
    check_sheaf(sheaf)
    eps = fraction("eps", eps)
    rng = random_generator("seed", seed)
    F = own_unit(sheaf)
    solve = Solver(F)
    delta = coboundary(unit_sheaf(F)[0])
    with single_threaded_blas():
        shares = by_edge(F, sketched(solve, delta, SKETCH_COLUMNS, SKETCH_TOL, rng))
    # a leverage is at most the rank of the edge's rows: scale to shares of at most 1
    shares /= np.minimum(F.edge_dims, F.vertex_dims[F.edges].sum(axis=1)).clip(min=1)
    oversampling = FIRST / eps**2
    limits = 1 - eps + CLOSE, 1 + eps - CLOSE
    while True:
        edges, halvings = _drawn(sheaf, oversampling * shares, rng)
        Z = _thinned(sheaf, edges, np.exp2(halvings), eps)
        everything = len(edges) == np.count_nonzero(shares) and not halvings.any()
        bounds = (1.0, 1.0)
        if not everything:
            bounds = extreme_ratios(sheaf, Z.sheaf, solve, limits)
        if limits[0] <= bounds[0] and bounds[1] <= limits[1]:
            Z.__dict__["_bounds"] = bounds
            return Z
        oversampling *= MORE


def _drawn(
    F: CellularSheaf, wanted: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw edges with about the wanted probabilities; return them and their numbers of halvings."""
    with np.errstate(divide="ignore"):
        rounds = np.rint(-np.log2(np.minimum(wanted, 1)))
    rounds = np.minimum(rounds, MOST_HALVINGS).astype(np.int64)
    kept = wanted > 0  # probability 0 is wanted only if the maps are zero
    for step in range(1, int(rounds[kept].max(initial=0)) + 1):
        alive = np.flatnonzero(kept & (rounds >= step))
        kept[alive] = _every_second(F.edges[alive], rng)
    edges = np.flatnonzero(kept)
    return edges, rounds[edges]


def _every_second(edges: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Pair up the edges at each vertex, drop one of each pair, and return a mask of the others.

    Pairs link edges to chains and cycles; a random bit for each decides which half of it is kept.
    In the double cover by (edge, kept) and (edge, not kept), where each pair links opposite states,
    an even cycle has two components. An odd cycle has one, and is opened at one pair.
    """
    m = len(edges)
    loops = edges[:, 0] == edges[:, 1]
    edge = np.concatenate([np.arange(m), np.flatnonzero(~loops)])
    vertex = np.concatenate([edges[:, 0], edges[~loops, 1]])
    order = rng.permutation(len(edge))
    order = order[np.argsort(vertex[order], kind="stable")]
    edge, vertex = edge[order], vertex[order]
    # pair the first and second, the third and fourth, ... edge of every vertex
    first = np.flatnonzero(np.diff(vertex, prepend=-1))
    place = np.arange(len(edge)) - np.repeat(first, np.diff(np.append(first, len(edge))))
    a = np.flatnonzero((place[:-1] % 2 == 0) & (vertex[:-1] == vertex[1:]))
    pairs = np.stack([edge[a], edge[a + 1]], axis=1)
    for _ in range(2):
        cover = np.concatenate([np.add(pairs, (0, m)), np.add(pairs, (m, 0))])
        labels = component_labels(2 * m, cover).reshape(2, m)
        odd = labels[0] == labels[1]
        if not odd.any():
            break
        cycle = labels[0, pairs[:, 0]]
        opened = np.unique(np.where(odd[pairs[:, 0]], cycle, -1), return_index=True)[1]
        opened = opened[odd[pairs[opened, 0]]]
        pairs = np.delete(pairs, opened, axis=0)
    coins = rng.integers(0, 2, 2 * m).astype(bool)
    return (labels[0] < labels[1]) ^ coins[labels.min(axis=0)]


def _thinned(
    F: CellularSheaf, edges: np.ndarray, weights: np.ndarray, eps: float
) -> Sparsification:
    """Return the sparsification with given edges and weights."""
    tail, head = (
        blocks(data, starts, edges)
        * np.repeat(np.sqrt(weights), np.diff(starts)[edges]).astype(data.real.dtype)
        for data, starts in ((F.tail_data, F.tail_offsets), (F.head_data, F.head_offsets))
    )
    dims = F.vertex_dims, F.edge_dims[edges]
    G = trusted_sheaf(F.edges[edges], *dims, tail, head, F.vertex_labels)
    return Sparsification(F, G, read_only(edges), read_only(weights), eps)


def extreme_ratios(
    F: CellularSheaf,
    G: CellularSheaf,
    solve: Solver,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[float, float]:
    """Return the extreme eigenvalues of L^+ L' on the range of L, by Lanczos iterations.

    In the inner product of L the operator is Hermitian; residuals are measured in its norm, so that
    an eigenvalue lies within the residual of each Ritz value. Ritz values lie between the extreme
    eigenvalues, so that the iteration ends as soon as one is outside the limits.

    Parameters
    ----------
    F, G : CellularSheaf
        On the same vertices; L and L' are their Laplacians.
    solve : Solver
        The solver of ``own_unit(F)``.
    """
    fine, unit = unit_sheaf(F)
    with single_threaded_blas():
        L = laplacian(fine)
        ratio = [data.astype(fine.dtype) / unit for data in (G.tail_data, G.head_data)]
        A = laplacian(sheaf_like(G, *ratio))
        kernel = approximate_inverse(solve)[1]
        inside = deflated(lambda X: X, *([] if kernel is None else [kernel]))
        rng = np.random.default_rng(0)
        x = rng.standard_normal((L.shape[0], 1)).astype(L.dtype)
        q = solve_in_range(solve, L @ x, SOLVE_TOL)

        def energy_norm(y: np.ndarray) -> float:
            return float(np.sqrt(max(np.vdot(y, L @ y).real, 0.0)))

        size = energy_norm(q)
        if size == 0:  # L = L' = 0: all bounds hold
            return 1.0, 1.0
        Q: list[np.ndarray] = []
        LQ: list[np.ndarray] = []
        alpha: list[float] = []
        beta: list[float] = []
        for _ in range(STEPS):
            q = q / size
            p = L @ q
            Q.append(q[:, 0])
            LQ.append(p[:, 0])
            right = A @ q
            alpha.append(float(np.vdot(q, right).real))
            w = solve_in_range(solve, right, SOLVE_TOL)
            basis, dual = np.array(Q), np.array(LQ)
            for _repeat in range(2):
                w = w - basis.T @ (dual.conj() @ w)
                w = inside(w)  # else components in ker L would grow from step to step
            size = energy_norm(w)
            values, vectors = eigh_tridiagonal(alpha, beta)
            beta.append(size)
            residual = size * max(abs(vectors[-1, 0]), abs(vectors[-1, -1]))
            lo, hi = float(values[0]), float(values[-1])
            if residual <= CLOSE or lo < limits[0] or hi > limits[1]:
                return lo, hi
            q = w
    raise NotConverged(
        f"the extreme eigenvalues of (L', L) have residuals of {residual:.2g}, above {CLOSE:g}, "
        f"after {STEPS} steps",
        (lo, hi),
    )
