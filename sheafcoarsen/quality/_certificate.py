"""Constants that enclose fine eigenvalues in terms of coarse ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import EPS, checks, linalg, ragged, tables, threads
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.operators import laplacian
from sheafcoarsen.sheaf import edge_subset, unit_sheaf


@dataclass(frozen=True, eq=False)
class Certificate:
    """Constants that enclose eigenvalues of L by those of R* L R (docs/conventions.md, section 8).

    Attributes
    ----------
    gamma : float
        Lower bound on the first discarded eigenvalues of all clusters. It is inf if nothing is
        discarded, and 0 if one of them is zero to working accuracy.
    beta : float
        Upper bound on norm(delta_X), where delta_X consists of the rows of delta of crossing edges.
    kappa : float
        beta^2 / gamma.
    mu : float
        1 + (kappa + sqrt(kappa^2 + 4 kappa)) / 2.
    rounding : float
        Maximum rounding error of a computed eigenvalue of R* L R; the enclosure holds up to this
        error.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
    >>> round(sc.certificate(sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)).gamma, 9)
    2.0
    """

    gamma: float
    beta: float
    kappa: float
    mu: float
    rounding: float

    def _repr_html_(self) -> str:
        enclosure = ("enclosure", "nu / (mu + nu / gamma) <= lambda <= nu")
        return tables.table([enclosure, *vars(self).items()], caption="Certificate")

    def interval(self, nu: npt.ArrayLike) -> tuple:
        """Return nu / (mu + nu / gamma) and nu, which enclose an eigenvalue of L.

        If nu is the i-th eigenvalue of R* L R, they enclose the i-th eigenvalue of L.

        Parameters
        ----------
        nu : float or array_like of float
            Eigenvalues of ``C.galerkin()``, which is the Laplacian of the coarse sheaf if it has
            loops. Zeros that are negative by rounding get the interval [0, 0].

        Returns
        -------
        lower, upper : float or ndarray
            They have the shape of nu.

        Raises
        ------
        ValueError, TypeError
            If nu is not real, not finite, or negative by more than rounding.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.Certificate(2.0, 1.0, 0.5, 2.0, 1e-15).interval(4.0)
        (1.0, 4.0)
        """
        values = checks.real_array("nu", nu, None, "")
        if (values < -self.rounding).any():
            raise ValueError(
                f"`nu` must hold eigenvalues of a semidefinite matrix, got {values.min():.6g}: "
                "pass those of C.galerkin()"
            )
        values = np.maximum(values.astype(np.float64), 0.0)
        with np.errstate(over="ignore"):
            lower = values / (self.mu + values / self.gamma) if self.gamma else 0 * values
        return (float(lower), float(values)) if values.ndim == 0 else (lower, values)


def certificate(C: Coarsening) -> Certificate:
    """Return constants that enclose the lowest eigenvalues of L in terms of coarse ones only.

    With gamma and mu as in :class:`Certificate`, the i-th eigenvalues nu_i of R* L R and lambda_i
    of L satisfy nu_i / (mu + nu_i / gamma) <= lambda_i <= nu_i for every i up to the number of the
    nu_i (docs/conventions.md, section 8). If a cluster discards a local section, gamma and all
    lower bounds are 0: keep all of them, for example by ``ranks.fixed(r).whole_multiplets()``.

    Parameters
    ----------
    C : Coarsening
        A coarsening with internal modes.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If ``C`` has other modes or a basis of your own.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(6))
    >>> C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2)
    >>> B = sc.certificate(C)
    >>> round(B.gamma, 9), round(B.beta**2, 9)
    (3.0, 2.0)
    >>> lower, upper = B.interval(np.linalg.eigvalsh(C.galerkin().toarray()))
    >>> fine = np.linalg.eigvalsh(sc.laplacian(F).toarray())
    >>> bool((lower[1:] <= fine[1:4]).all() and (fine[1:4] <= upper[1:] + 1e-14).all())
    True
    """
    modes = check_coarsening(C).modes
    if modes is None or not modes.operator.spectral:
        what = "a basis of your own" if modes is None else f"{modes.local_operator} modes"
        raise ValueError(
            f"`C` must have internal modes, got {what}: use coarsen(sheaf, P, rank, "
            'local_operator="internal")'
        )
    gap = modes.next_eigenvalues.astype(np.float64)
    level = linalg.zero_energy(C.clusters.dims, C.fine.dtype, modes.operator_norms)
    eps = linalg.eps_of(C.fine.dtype)  # to which the gaps were rounded
    gamma = float(np.maximum(gap * (1 - eps) - level, 0.0).min(initial=np.inf))
    beta = _crossing_norm(C)
    size = float(modes.operator_norms.max(initial=0.0)) + beta * beta  # upper bound on norm(L)
    rounding = linalg.RESIDUAL_LIMIT * C.sheaf.dim_c0 * eps * size
    if gamma == 0:
        return Certificate(0.0, beta, np.inf, np.inf, rounding)
    with np.errstate(over="ignore"):
        kappa = float(np.float64(beta) / gamma * beta)
        mu = float(1 + (kappa + np.sqrt(kappa) * np.sqrt(kappa + 4)) / 2)
    return Certificate(gamma, beta, kappa, mu, rounding)


@threads.single_threaded_blas()
def _crossing_norm(C: Coarsening) -> float:
    """Return an upper bound on norm(delta_X).

    Let N hold the spectral norms of the blocks of delta_X* delta_X. Then norm(delta_X)^2 <= rho(N)
    <= max_i (N y)_i / y_i for any positive y (Collatz and Wielandt); y is found by power iteration.
    """
    X = edge_subset(C.fine, C.clusters.crossing_edges)
    if X.largest_entry == 0:
        return 0.0
    X, unit = unit_sheaf(X)
    L = laplacian(X).tocoo()
    stalk = np.repeat(np.arange(X.n_vertices), X.vertex_dims)
    row, column = (stalk[at] for at in L.coords)
    blocks, index = np.unique(row * X.n_vertices + column, return_inverse=True)
    # sort by block, and row by row in each block; L stores all entries of a block
    entries = L.data[np.argsort(index, kind="stable")]
    rows, columns = blocks // X.n_vertices, blocks % X.n_vertices
    shapes = np.stack([X.vertex_dims[rows], X.vertex_dims[columns]], axis=1)
    norms = np.empty(len(blocks))
    for alike, matrices in ragged.stacks(entries, shapes):
        norms[alike] = np.linalg.norm(matrices, 2, axis=(1, 2))
    N = scipy.sparse.csr_array((norms, (rows, columns)), shape=(X.n_vertices,) * 2)
    y = np.ones(X.n_vertices)
    square = np.inf
    for _ in range(60):
        z = N @ y
        square = min(square, float((z / y).max()))
        y = z / z.max() + y  # add y, so that it stays positive
        y /= y.max()
    most_rows = np.bincount(X.edges.reshape(-1), np.repeat(X.edge_dims, 2), minlength=1).max()
    rounding = 8 * EPS * (most_rows + 2) ** 1.5 * max(int(X.vertex_dims.max()), 1)
    return float(np.sqrt(square * (1 + rounding))) * unit
