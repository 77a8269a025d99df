"""Gauss-Newton refinement of poses by least squares, and a lower bound on the minimum cost.

In the sheaf of linearized residuals, a pose has the stalk (omega, v): a rotation R exp(omega) and a
translation t + l R v in its own frame, l a unit of length. A landmark has the stalk v. The residual
of an edge's rotation is sqrt(8 kappa) times the vector part sin(angle / 2) axis of the quaternion
of U^T R_i^T R_j: its square is kappa norm(R_j - R_i U)_F^2. Other residuals are translations.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from scipy.spatial.transform import Rotation

from sheafcoarsen._support import EPS, ReadOnly, checks, ragged, tables
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import Factors, Order, coboundary, elimination_order, laplacian
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf
from sheafcoarsen.solve import Solver, solve_in_range
from sheafcoarsen.synchronization.connection import Connection, Poses, costs_of, edge_turns

LENGTHS = 20
"""Maximum number of lengths tried for a step, each half of the one before."""


class PoseSheaf:
    """Sheaf of the derivatives of all residuals, whose maps are updated for given poses.

    Formulas are those of space; in the plane only the last coordinate of omega and the first two of
    v remain. A translation by ``length``, the unit of v, changes residuals about as much as a
    rotation by one radian.
    """

    def __init__(self, connection: Connection) -> None:
        n, m, d = connection.n_vertices, len(connection.edges), connection.dim
        self.connection, self.n_angles = connection, 1 if d == 2 else 3
        self.stalk = self.n_angles + connection.points.shape[1]
        dims = np.repeat([self.stalk, d], [n, connection.n_landmarks])
        edge_dims = np.repeat([self.stalk, d], [m, len(connection.ends) - m])
        tail, head = map(np.zeros, edge_dims @ dims[connection.ends])
        self.sheaf = trusted_sheaf(connection.ends, dims, edge_dims, tail, head)
        # in space, U^T exp(w) U = exp(back w) for transports U
        self.back = np.tile(np.eye(3), (m, 1, 1))
        self.back[:, :d, :d] = connection.transports.swapaxes(1, 2)
        self.back *= connection.signs[:, None, None]
        self.rotation_roots = np.sqrt(8 * connection.weights)
        self.translation_roots = np.sqrt(connection.tau)
        sizes = self.translation_roots * np.linalg.norm(connection.points, axis=1)
        turns, total = self.rotation_roots.sum() / 2 + sizes.sum(), self.translation_roots.sum()
        self.length = float(2.0 ** np.round(np.log2(turns / total))) if turns > 0 < total else 1.0

    def at(self, poses: Poses) -> tuple[CellularSheaf, np.ndarray]:
        """Return the sheaf and the residuals r at given poses; a step x changes r by -delta x."""
        connection, rotations, positions = self.connection, poses.rotations, poses.positions
        m, a, k, d = len(connection.edges), self.n_angles, self.stalk, connection.dim
        (tail, head), residual = np.zeros((2, m, k, k)), np.zeros((m, k))
        turns = np.tile(np.eye(3), (m, 1, 1))
        turns[:, :d, :d] = edge_turns(connection, rotations)
        turns[connection.weights == 0] = np.eye(3)  # these edges may contain reflections
        quaternions = np.zeros((m, 4))
        if m:  # scipy before 1.16 refuses an empty array
            quaternions = Rotation.from_matrix(turns).as_quat()
        sines, cosines = quaternions[:, :3], quaternions[:, 3, None, None]
        half = self.rotation_roots[:, None, None] / 2
        bent, straight = _cross(sines), cosines * np.eye(3)
        tail[:, :a, :a] = (half * (straight - bent) @ self.back)[:, 3 - a :, 3 - a :]
        head[:, :a, :a] = (half * (straight + bent))[:, 3 - a :, 3 - a :]
        residual[:, :a] = self.rotation_roots[:, None] * sines[:, 3 - a :]
        if not connection.has_positions:
            return self.sheaf.with_maps(tail.ravel(), head.ravel()), residual.ravel()
        i, j = connection.ends.T
        back = rotations[i].swapaxes(1, 2)
        seen = np.einsum("eij,ej->ei", back, positions[j] - positions[i])
        roots = self.translation_roots[:, None]
        moves = roots * (seen - connection.points)
        near = np.zeros((len(seen), d, k))
        near[:, :, :a] = -roots[:, :, None] * _cross(seen)[:, :d, 3 - a :]
        near[:, :, a:] = self.length * roots[:, :, None] * np.eye(d)
        far = self.length * roots[:, :, None] * back
        residual[:, a:], tail[:, a:] = moves[:m], near[:m]
        head[:, a:, a:] = far[:m] @ rotations[j[:m]]
        sheaf = self.sheaf.with_maps(np.append(tail, near[m:]), np.append(head, far[m:]))
        return sheaf, np.append(residual, moves[m:])

    def after(self, poses: Poses, step: np.ndarray) -> Poses:
        """Return the poses and landmarks after a step."""
        (rotations, positions, *_), d, a = poses, self.connection.dim, self.n_angles
        n, k = len(rotations), self.stalk
        steps = step[: n * k].reshape(n, k)
        omegas = np.zeros((n, 3))
        omegas[:, 3 - a :] = steps[:, :a]
        rotated = rotations @ Rotation.from_rotvec(omegas).as_matrix()[:, :d, :d]
        if not self.connection.has_positions:
            return Poses(rotated, positions)
        moves = np.einsum("vij,vj->vi", rotations, steps[:, a:])
        marks = step[n * k :].reshape(-1, d)
        return Poses(rotated, positions + self.length * np.concatenate([moves, marks]))


def _cross(vectors: np.ndarray) -> np.ndarray:
    """Return the matrix of x -> v cross x for each vector v of the plane or of space."""
    x, y, z = np.pad(vectors, [(0, 0), (0, 3 - vectors.shape[1])]).T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)


def refined_poses(connection: Connection, poses: Poses, steps: int = 100) -> Poses:
    """Return poses of lower cost by Gauss-Newton; the first pose of every component is fixed.

    Every step minimizes norm(delta x - r) and is halved until the cost does not increase.
    """
    if bad := unrefinable(connection, poses.rotations):
        raise ValueError(f"`refine` requires {bad}: use refine=False, which only rounds the frames")
    problem = PoseSheaf(connection)
    sheaf, r = problem.at(poses)
    costs, converged, decrease = [float(r @ r)], False, 0.0
    solve = Solver(sheaf, fixed=connection.roots)
    for step in range(steps):
        if step:
            solve.update(sheaf)
        try:
            # steps need not be exact; near an optimum the right-hand side may be mostly rounding,
            # outside the range of L
            x, solved = solve_in_range(solve, coboundary(sheaf).T @ r, 1e-6), True
        except NotConverged as error:  # the inexact solution may still reduce the cost
            x, solved = np.asarray(error.result), False
        for length in 0.5 ** np.arange(LENGTHS):
            there = problem.after(poses, length * x)
            sheaf, r = problem.at(there)
            new_cost = float(r @ r)
            if new_cost <= costs[-1]:
                break
        else:
            converged = solved
            break
        poses, before, decrease = there, decrease, costs[-1] - new_cost
        costs.append(new_cost)
        ratio = decrease / before if length == 1 and before > 0 else 1.0
        little = 1e-9 * new_cost  # compared with the further decrease, for geometric decreases
        if decrease <= little or decrease * ratio <= little * (1 - ratio):
            converged = True
            break
    return poses._replace(costs=tuple(costs), converged=converged)


def unrefinable(connection: Connection, rotations: np.ndarray) -> str | None:
    """Return the requirement of Gauss-Newton that is violated, or None."""
    if connection.dim not in (2, 3) or connection.transports.dtype.kind == "c":
        return f"rotations of the plane or of space, got {connection.group}"
    signs = connection.signs * np.linalg.det(rotations)[connection.edges].prod(axis=1)
    if (bad := checks.first_true((signs < 0) & (connection.weights > 0))) is not None:
        u, v = connection.edges[bad].tolist()
        edge = f"{bad} ({u} -> {v})"
        return f"frames that agree with every edge up to a rotation, but edge {edge} reflects"
    return None


@dataclass(frozen=True, repr=False)
class PoseCertificate(ReadOnly):
    """Lower bound on the minimum cost, as computed by ``S.certify()``.

    Attributes
    ----------
    cost, lower_bound : float
        Cost of the poses, and the lower bound on the minimum cost.
    smallest_eigenvalue : float
        If the certificate matrix S = Q - Lambda is positive definite apart from rigid motions of
        the components, which is usual: -tr(E* S^-1 E) with E = S X, in units of the cost, by which
        the bound is below the cost of the poses, refined if possible. Otherwise the smallest
        eigenvalue of S on the rows of rotations, or a number just below it. It is 0 up to rounding
        if the poses are optimal and the relaxation is tight.
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
        verdict = "optimal"
        if not self.is_optimal:
            verdict = f"not certified, gap {100 * self.gap / self.cost:.2g} % of the cost"
        numbers = f"cost={self.cost:.6g}, lower_bound={self.lower_bound:.6g}"
        return f"PoseCertificate({verdict}, {numbers})"

    def _repr_html_(self) -> str:
        rows = [("certified optimal", self.is_optimal), ("cost", f"{self.cost:.9g}")]
        rows += [("lower bound of all costs", f"{self.lower_bound:.9g}")]
        return tables.table(rows, caption="PoseCertificate")


def certificate(connection: Connection, poses: Poses, cost: float, tol: float) -> PoseCertificate:
    """Return the certificate from the Lagrange multipliers at the poses, refined if possible.

    With Q the Laplacian of the joint sheaf, X its cochain, Lambda_i the symmetric part of
    (Q X)_i R_i, and S = Q - Lambda, the cost of other poses Z is the sum of the traces of Lambda_i
    plus tr(Z* S Z). After a rigid motion of each component, Z - X is zero at its root. If S is
    positive definite on such cochains, every cost is at least that of X minus tr(E* S^-1 E), E =
    S X. Otherwise the bound is the sum of the traces plus n d mu, with mu the smallest eigenvalue
    of S after minimization over positions (Rosen et al. 2019).
    """
    turns, moves = costs_of(connection, poses)
    unit, points = (30 * EPS) ** 2, [*poses.positions[connection.ends.T], connection.points]
    sizes = sum(np.square(x).sum(axis=1) for x in points)
    agree = (turns <= 4 * unit * connection.dim * connection.weights).all()
    agree &= (moves <= unit * connection.tau * sizes).all()
    if len(poses.costs) < 2 and unrefinable(connection, poses.rotations) is None:
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
    norm = float((abs(Q) @ marked)[marked].max(initial=0.0))
    M, E = scipy.sparse.csr_array(Q - Lambda), QX - Lambda @ X
    free = np.ones(len(X), bool)
    free[ragged.range_of_blocks(starts, roots)] = False
    # Minimum shift relative to the norm of Q on the rows of rotations; exceeds rounding errors
    rounding = 8 * EPS
    factors = _positive(M[free][:, free], marked[free], -rounding * norm) if free.any() else None
    if factors is not None or not free.any():
        mu = 0.0 if factors is None else -float(np.vdot(E[free], factors.solve(E[free])).real)
        bound = float(np.vdot(residuals, residuals).real) + mu
    else:
        free[:] = True
        if stalk > d:  # fix one position per component: ker M contains translations
            free[starts[roots + 1] - 1] = False
        mu, certain = _smallest(M[free][:, free], marked[free], rounding * norm)
        bound = float(np.einsum("vii->", multipliers).real) + n * d * min(certain, 0.0)
    bound = min(max(0.0, bound), cost)
    return PoseCertificate(cost, bound, mu, bool(cost - bound <= tol * cost or agree))


def _positive(
    M: scipy.sparse.csr_array, marked: np.ndarray, shift: float, order: Order | None = None
) -> Factors | None:
    """Return the factors of M + shift diag(marked), or None if it is not positive definite."""
    shifted = scipy.sparse.csr_array(M + scipy.sparse.diags_array(shift * marked, format="csr"))
    try:
        factors = Factors(shifted, 0.0, order or elimination_order(shifted))
    except np.linalg.LinAlgError:
        return None
    return factors if factors.count_negative() == 0 else None


def _smallest(M: scipy.sparse.csr_array, marked: np.ndarray, shift: float) -> tuple[float, float]:
    """Return the smallest eigenvalue t of M x = t B x, B = diag(marked), and a lower bound.

    Positive factors of M + shift B prove that no eigenvalue is below -shift. The result of inverse
    iteration with them may be too high; a bound just below it is proved in the same way.
    """
    order, count = elimination_order(M), int(marked.sum())
    while (factors := _positive(M, marked, shift, order)) is None:
        shift *= 100

    def inverse(x: np.ndarray) -> np.ndarray:
        padded = np.zeros(len(marked), M.dtype)
        padded[marked] = x
        return factors.solve(padded)[marked]

    if count < 3:  # too small for ARPACK
        largest = np.linalg.eigvalsh([inverse(x) for x in np.eye(count)])[-1:]
    else:
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
