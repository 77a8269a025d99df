"""Certificate of optimality for poses: a lower bound on the minimum cost."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from sheafcoarsen._support import EPS, ReadOnly, range_of_blocks, tables
from sheafcoarsen.operators import Factors, Order, coboundary, elimination_order, laplacian
from sheafcoarsen.synchronization.connection import Connection, Poses, agree_to_rounding
from sheafcoarsen.synchronization.refinement import refined_poses, unrefinable

ROUNDING = 8 * EPS
"""Minimum shift relative to the norm of Q on the rows of rotations; exceeds rounding errors."""


@dataclass(frozen=True, repr=False)
class PoseCertificate(ReadOnly):
    """Lower bound on the minimum cost, as computed by ``S.certify()``.

    Attributes
    ----------
    cost, lower_bound : float
        Cost of the poses, and the lower bound on the minimum cost.
    smallest_eigenvalue : float
        Smallest eigenvalue mu of the certificate matrix Q - Lambda on the rows of rotations, or a
        number just below it: nonnegative up to rounding if the relaxation is tight.
    is_optimal : bool
        Whether the gap is at most tol times the cost, or all measurements agree to rounding.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.gallery.bundle(nx.grid_2d_graph(8, 8), dim=3, noise=0.1, seed=0)
    >>> Z = sc.synchronize(F, refine=True).certify()
    >>> Z
    PoseCertificate(optimal, cost=3.44472, lower_bound=3.44472)
    >>> bool(Z.gap <= 1e-6 * Z.cost)
    True
    """

    cost: float
    lower_bound: float
    smallest_eigenvalue: float
    is_optimal: bool

    @property
    def gap(self) -> float:
        """The cost minus the lower bound."""
        return self.cost - self.lower_bound

    def __repr__(self) -> str:
        verdict = "optimal" if self.is_optimal else "not certified"
        numbers = f"cost={self.cost:.6g}, lower_bound={self.lower_bound:.6g}"
        return f"PoseCertificate({verdict}, {numbers})"

    def _repr_html_(self) -> str:
        rows = [
            ("certified optimal", self.is_optimal),
            ("cost", f"{self.cost:.9g}"),
            ("lower bound of all costs", f"{self.lower_bound:.9g}"),
            ("smallest eigenvalue", self.smallest_eigenvalue),
        ]
        return tables.table(rows, caption="PoseCertificate")


def certificate(connection: Connection, poses: Poses, cost: float, tol: float) -> PoseCertificate:
    """Return the certificate from the Lagrange multipliers at the poses, refined if possible.

    With Q the Laplacian of the joint sheaf, X its cochain, Lambda_i the symmetric part of
    (Q X)_i R_i, and S = Q - Lambda, the cost of other poses Z is the sum of the traces of Lambda_i
    plus tr(Z* S Z). After a rigid motion of each component, Z - X is zero at its root. If S is
    positive definite on such cochains, every cost is therefore at least that of X minus tr(E* S^-1
    E), E = S X: a bound of second order in the gradient. Otherwise the bound is the sum of the
    traces plus n d mu, with mu the smallest eigenvalue of S after minimization over the rows of
    positions (Rosen et al. 2019). Poses that agree with all measurements to rounding are optimal.
    """
    agree = agree_to_rounding(connection, poses)
    if unrefinable(connection, poses.rotations) is None:
        poses = refined_poses(connection, poses)
    n, d, sheaf, X = connection.n_vertices, connection.dim, connection.sheaf, poses.cochain
    stalk, starts, roots = int(sheaf.vertex_dims[0]), sheaf.vertex_offsets, connection.roots
    marked = np.zeros(len(X), bool)  # mask of the rows of rotations
    marked[: n * stalk].reshape(n, stalk)[:, :d] = True
    delta, Q = coboundary(sheaf), laplacian(sheaf)
    residuals = delta @ X
    QX = delta.conj().T @ residuals  # more accurate than Q @ X if residuals are small
    multipliers = QX[marked].reshape(n, d, d) @ poses.rotations
    multipliers = (multipliers + multipliers.conj().swapaxes(1, 2)) / 2
    blocks = np.zeros((n, stalk, stalk), multipliers.dtype)
    blocks[:, :d, :d] = multipliers
    Lambda = scipy.sparse.bsr_array((blocks, np.arange(n), np.arange(n + 1))).tocsr()
    Lambda.resize(Q.shape)
    norm = float(abs(Q[marked][:, marked]).sum(axis=1).max(initial=0.0))
    M, E = scipy.sparse.csr_array(Q - Lambda), QX - Lambda @ X
    free = np.ones(len(X), bool)
    free[range_of_blocks(starts, roots)] = False
    factors = _positive(M[free][:, free], marked[free], -ROUNDING * norm) if free.any() else None
    if factors is not None or not free.any():
        mu = 0.0 if factors is None else -float(np.vdot(E[free], factors.solve(E[free])).real)
        bound = float(np.vdot(residuals, residuals).real) + mu
    else:
        free[:] = True
        if stalk > d:  # fix one position per component: ker M contains translations
            free[starts[roots + 1] - 1] = False
        mu, certain = _smallest(M[free][:, free], marked[free], ROUNDING * norm)
        bound = float(np.einsum("vii->", multipliers).real) + n * d * min(certain, 0.0)
    bound = min(max(0.0, bound), cost)
    return PoseCertificate(cost, bound, mu, bool(cost - bound <= tol * cost or agree))


def _positive(
    M: scipy.sparse.csr_array, marked: np.ndarray, shift: float, order: Order | None = None
) -> Factors | None:
    """Return the factors of M + shift B, or None if it is not positive definite.

    B is the diagonal matrix of the mask ``marked``.
    """
    shifted = scipy.sparse.csr_array(M + scipy.sparse.diags_array(shift * marked, format="csr"))
    try:
        factors = Factors(shifted, 0.0, order or elimination_order(shifted))
    except np.linalg.LinAlgError:
        return None
    return factors if factors.count_negative() == 0 else None


def _smallest(M: scipy.sparse.csr_array, marked: np.ndarray, shift: float) -> tuple[float, float]:
    """Return the smallest eigenvalue t of M x = t B x, and a proven lower bound on it.

    Positive factors of M + shift B, with B as in `_positive`, prove that no eigenvalue is below
    -shift. They are used for inverse iteration, whose result may be too high; a bound just below it
    is proved in the same way.
    """
    order, count = elimination_order(M), int(marked.sum())
    while (factors := _positive(M, marked, shift, order)) is None:
        shift *= 100

    def inverse(x: np.ndarray) -> np.ndarray:
        padded = np.zeros(len(marked), M.dtype)
        padded[marked] = x
        return factors.solve(padded)[marked]

    if count < 3:  # too small for ARPACK
        return -shift, -shift
    start = np.random.default_rng(0).standard_normal(count).astype(M.dtype)
    operator = LinearOperator((count, count), matvec=inverse, dtype=M.dtype)
    try:
        largest = eigsh(operator, 1, which="LA", return_eigenvectors=False, tol=1e-6, v0=start)
    except ArpackError:
        return -shift, -shift
    above = float(1 / largest[0])  # distance of the eigenvalue from -shift
    tight = shift - 0.999 * above
    proved = tight > 0 and _positive(M, marked, tight, order) is not None
    return above - shift, -tight if proved else -shift
